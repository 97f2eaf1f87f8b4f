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
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.connect.jobs.plugin_archive import ship_plugins
from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.engine.delta.log_store import SCHEMES, is_s3, with_log_store_settings
from barnabas.engine.errors import NeedsDecision, brief
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
S3 = "spark.hadoop.fs.s3a."  # settings of Hadoop's S3
ICEBERG = "iceberg."  # Iceberg's files are written without Spark
DEFAULT_MASTER = "local[*]"
KILL_S = 10.0


def settings_of(worker: Mapping[str, str], config: Mapping[str, str]) -> SparkSettings:
    """Settings of the session for jobs of a connector: its own settings, then those of the worker."""
    given = {**of_spark(worker), **of_spark(config)}
    if MASTER in config and REMOTE not in config:
        given.pop(REMOTE, None)
    master, remote = given.pop(MASTER, DEFAULT_MASTER), given.pop(REMOTE, "")
    return SparkSettings(master, remote, {**OURS, **given})


def needs_s3(settings: SparkSettings, config: Mapping[str, str]) -> bool:
    """Whether jobs read or write at S3 by Hadoop, whose jars are not Spark's own."""
    if settings.remote:
        return False  # the server has its own jars and settings
    has_settings = any(name.startswith(S3) for name in settings.settings)
    return has_settings or any(is_s3(each) for name, each in config.items() if not name.startswith(ICEBERG))


def with_s3(settings: SparkSettings) -> SparkSettings:
    """With a log store for tables that a task and its successor may write at the same moment."""
    found: Mapping[str, Any] = settings.settings
    for scheme in SCHEMES:
        found = with_log_store_settings(f"{scheme}://", found)
    return replace(settings, settings=found)


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
        self._has_s3 = False

    @property
    def is_started(self) -> bool:
        return self._spark is not None

    def open(self, config: Mapping[str, str]) -> SparkSession:
        """A session for one task. ConnectError: Spark cannot start, or computes elsewhere in this worker."""
        wanted = settings_of(self._worker, config)
        with self._lock:
            if self._spark is not None and self._given is None and not is_alive(self._spark):
                self._discard()
            is_at_s3 = needs_s3(wanted, config)
            if self._spark is None:
                self._start(wanted, is_at_s3=is_at_s3)
            assert self._spark is not None
            where = (wanted.master, wanted.remote)
            if self._where is not None and self._where != where:
                raise ConnectError(
                    f"the Spark session of this worker computes at {self._where[1] or self._where[0]}, this"
                    f" connector wants {wanted.remote or wanted.master}: give all connectors of a worker the"
                    f" same {MASTER}, or run another worker"
                )
            if is_at_s3 and not self._has_s3 and self._given is None:
                raise ConnectError(
                    "the Spark session of this worker began without the jars of S3: put a setting of"
                    f" {S3}… into the worker's settings, such as {S3}endpoint.region, and restart it"
                )
            found = apart(self._spark)
        for name, value in of_spark(config).items():
            if name.startswith(OWN_SESSION):
                found.conf.set(name, value)
        return found

    def _start(self, wanted: SparkSettings, *, is_at_s3: bool) -> None:
        where = wanted.remote or wanted.master
        log.info("Spark starts at %s", where)
        try:
            given, sets = (with_s3(wanted), ("delta", "s3")) if is_at_s3 else (wanted, ("delta",))
            self._spark = session(given, sets, name="barnabas-connect")
            self._has_s3 = is_at_s3
            ship_plugins(self._spark, self._worker.get("plugin.path", "").split(","))
        except ConnectError:
            raise
        except (SessionError, JarError, NeedsDecision) as error:
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
