"""The Spark session of a worker: one for all of its connectors, started when the first job needs it.

In: `spark.*` settings of the worker and of the connector that comes first. Out: a session for each task, with
settings of its own, on the same cluster. A session whose Java process died is replaced. A worker without
Spark jobs starts no Java. Does not know: tasks.
"""

from __future__ import annotations

import logging
import subprocess
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.connect.jobs.plugin_archive import ship_plugins
from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.engine.errors import brief
from barnabas.engine.session import SessionError, apart, close, is_alive, is_remote, session
from barnabas.engine.spark_settings import SparkSettings
from barnabas.spark.jars import JarError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("barnabas.connect")

PREFIX = "spark."
MASTER, REMOTE = "spark.master", "spark.remote"
OWN_SESSION = "spark.sql."  # settings that each session may have for itself
OURS: Mapping[str, str] = {
    "spark.scheduler.mode": "FAIR",  # jobs of several connectors share the executors
    "spark.speculation": "false",  # a second copy of a writing task could not join the transaction
}
DEFAULT_MASTER = "local[*]"
KILL_S = 10.0


def settings_of(worker: Mapping[str, str], config: Mapping[str, str]) -> SparkSettings:
    """Settings of the session for jobs of a connector: its own settings, then those of the worker."""
    given = {**of_spark(worker), **of_spark(config)}
    if MASTER in config and REMOTE not in config:
        given.pop(REMOTE, None)
    master, remote = given.pop(MASTER, DEFAULT_MASTER), given.pop(REMOTE, "")
    return SparkSettings(master, remote, {**OURS, **given})


def of_spark(config: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in config.items() if name.startswith(PREFIX)}


class WorkerSessions:
    """Thread-safe. `given` is a session that somebody else owns, and that is never stopped here."""

    def __init__(self, worker: Mapping[str, str], given: SparkSession | None = None) -> None:
        self._worker = worker
        self._given = given
        self._lock = threading.Lock()
        self._spark: SparkSession | None = given
        self._where: tuple[str, str] | None = None

    @property
    def is_started(self) -> bool:
        return self._spark is not None

    def open(self, config: Mapping[str, str]) -> SparkSession:
        """A session for one task. ConnectError: Spark cannot start, or computes elsewhere in this worker."""
        wanted = settings_of(self._worker, config)
        with self._lock:
            if self._spark is not None and self._given is None and not is_alive(self._spark):
                self._discard()
            if self._spark is None:
                self._start(wanted)
            assert self._spark is not None
            where = (wanted.master, wanted.remote)
            if self._where is not None and self._where != where:
                raise ConnectError(
                    f"the Spark session of this worker computes at {self._where[1] or self._where[0]}, this"
                    f" connector wants {wanted.remote or wanted.master}: give all connectors of a worker the"
                    f" same {MASTER}, or run another worker"
                )
            found = apart(self._spark)
        for name, value in of_spark(config).items():
            if name.startswith(OWN_SESSION):
                found.conf.set(name, value)
        return found

    def _start(self, wanted: SparkSettings) -> None:
        where = wanted.remote or wanted.master
        log.info("Spark starts at %s", where)
        try:
            self._spark = session(wanted, name="barnabas-connect")
            ship_plugins(self._spark, self._worker.get("plugin.path", "").split(","))
        except ConnectError:
            raise
        except (SessionError, JarError) as error:
            raise ConnectError(f"Spark cannot be started at {where}: {error}") from error
        except Exception as error:
            text = brief(error)  # Java is asked for it, so it must be there still
            forget_java()
            raise RetriableError(f"Spark does not start at {where}: {text}") from None
        self._where = (wanted.master, wanted.remote)

    def is_lost(self, spark: SparkSession) -> bool:
        """Whether the Java process or the server of a session is gone."""
        return not is_alive(spark)

    def _discard(self) -> None:
        log.warning("the Java process of Spark is gone: a new one is started")
        spark, self._spark, self._where = self._spark, None, None
        if spark is not None and is_remote(spark):
            return
        forget_java()

    def close(self) -> None:
        with self._lock:
            spark, self._spark = self._spark, None
            if spark is not None and self._given is None:
                try:
                    close(spark)
                except Exception as error:
                    log.debug("closing the session of Spark: %s", error)


def forget_java() -> None:
    """Let pyspark forget its Java process and end it, so that the next session starts a new one."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    classes: list[Any] = [SparkContext, SparkSession]
    context, sessions = classes
    gateway = context._gateway
    context._active_spark_context = None
    context._gateway = context._jvm = None
    sessions._instantiatedSession = None
    sessions._activeSession = None
    if gateway is None:
        return
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.kill()
        try:
            process.wait(KILL_S)
        except subprocess.TimeoutExpired:
            log.warning("the Java process %d of Spark was killed and does not end", process.pid)
    try:
        gateway.shutdown()
    except Exception as error:
        log.debug("closing the gateway of a dead Java process: %s", error)
