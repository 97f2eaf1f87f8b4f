"""Spark sessions with Delta Lake: local, on a cluster, or of a Spark Connect server.

In: where Spark runs, and which sets of jars are needed. Out: a session whose executors have our package.
Does not know: what is run on it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import sys
import warnings
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.engine.errors import brief_text
from barnabas.engine.secrets import Secret, Text, revealed
from barnabas.engine.session_settings import OWN_PREFIX, PACKAGE, settings_for
from barnabas.engine.shipping.executors import AUTO, PackageError, ship
from barnabas.engine.spark_settings import SessionKind, SparkSettings
from barnabas.spark import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import StreamingQueryListener

    from barnabas.engine.catalogue.reporter import Reporter

REDACTION = "spark.redaction.regex"
REDACTED_BY_SPARK = r"(?i)secret|password|token|access[.]?key"  # Spark's default

PARALLELISM_MAX = 4096

_cloned: weakref.WeakSet[Any] = weakref.WeakSet()


class SessionError(Exception):
    """Spark cannot be started; the message says what is missing."""


def session(
    spark: SparkSettings,
    sets: Sequence[str] = ("delta",),
    name: str = "barnabas",
    settings: Mapping[str, Text] | None = None,
) -> SparkSession:
    """A session of the kind that `spark` names, with our package on its executors. `settings` are those of
    one application; they win over `spark.settings`, and those over ours (`session_settings`)."""
    wanted = with_redaction(settings_for(spark, settings, has_delta="delta" in sets))
    package = wanted.get(PACKAGE, AUTO)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own
        if spark.kind is SessionKind.CONNECT:
            found = connected(spark.connect_server, wanted)
        else:
            found = started(spark, sets, name, wanted)
        if spark.kind is SessionKind.LOCAL:
            return found
        try:
            ship(found, package, is_connect=spark.kind is SessionKind.CONNECT)
        except PackageError as error:
            close(found)
            raise SessionError(str(error)) from error
        return found


def connected(server: str, wanted: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    check_connect()
    builder = SparkSession.builder.remote(server)
    for key, value in wanted.items():
        if not key.startswith(OWN_PREFIX):
            builder = builder.config(key, value)
    return builder.getOrCreate()


def started(spark: SparkSettings, sets: Sequence[str], name: str, wanted: Mapping[str, str]) -> SparkSession:
    from pyspark.sql import SparkSession

    check_java()
    set_workers_python(spark.kind, wanted)
    own = [part for part in wanted.get("spark.jars", "").split(",") if part]
    files = [*own, *(str(path) for path in jars.jars(*sets))]
    builder = SparkSession.builder.master(spark.master).appName(name)
    for key, value in {**wanted, "spark.jars": ",".join(files)}.items():
        builder = builder.config(key, value)
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def set_workers_python(kind: SessionKind, wanted: Mapping[str, str]) -> None:
    """Choose the interpreter of Python workers, unless the user did.

    In `local` it is this one, not the `python3` of the PATH. Executors have other paths: they get the name of
    this version (`python3.11`), and find it in their PATH. The driver's own workers find it in ours, in which
    the folder of this interpreter is put first."""
    if chosen := wanted.get("spark.pyspark.python"):
        os.environ["PYSPARK_PYTHON"] = chosen
    if kind is SessionKind.LOCAL:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        return
    command = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    os.environ.setdefault("PYSPARK_PYTHON", command)
    folder = str(Path(sys.executable).parent)
    paths = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if paths[0] != folder and (Path(folder) / command).exists():
        os.environ["PATH"] = os.pathsep.join([folder, *paths])


def with_redaction(settings: Mapping[str, Text]) -> dict[str, str]:
    """Settings with secrets revealed, and their names among those that Spark's logs and pages hide."""
    hidden = [re.escape(own_name(name)) for name, value in settings.items() if isinstance(value, Secret)]
    found = revealed(settings)
    if hidden:
        found[REDACTION] = "|".join([found.get(REDACTION, REDACTED_BY_SPARK), *hidden])
    return found


def own_name(setting: str) -> str:
    """The name under which Hadoop and Hive know a setting: Spark's logs list it again under that name."""
    return setting.partition("spark.hadoop.")[2] or setting.replace("spark.hive.", "hive.")


def check_connect() -> None:
    if missing := [name for name in ("grpc", "grpc_status", "google.rpc") if not is_there(name)]:
        raise SessionError(f'Spark Connect needs {", ".join(missing)}: pip install "barnabas[spark-connect]"')


def is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java") is None and not (home and (Path(home) / "bin" / "java").exists()):
        raise SessionError(
            "Spark needs Java 17 or newer: install it (on Debian: apt install openjdk-17-jre-headless)"
        )


def is_remote(spark: SparkSession) -> bool:
    """Whether the session belongs to a Spark Connect server."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_local(spark: SparkSession) -> bool:
    """Whether the session computes in this process, on few cores."""
    return not is_remote(spark) and str(spark.sparkContext.master).startswith("local")


def parallelism(spark: SparkSession) -> int:
    """How many tasks the session can run at once, as far as Spark knows now."""
    if not is_remote(spark):
        return max(int(spark.sparkContext.defaultParallelism), 1)
    from pyspark.sql.functions import count_distinct, spark_partition_id

    # Spark Connect has no context; a range without a number of partitions has as many as there are cores.
    row = spark.range(0, PARALLELISM_MAX).agg(count_distinct(spark_partition_id())).first()
    return max(int(row[0]), 1) if row is not None else 1


def report_streams(spark: SparkSession, reporter: Reporter) -> StreamingQueryListener:
    """Report all queries of Structured Streaming of this session to the catalogue; the listener, to remove
    it."""
    from barnabas.engine.catalogue.streaming_listener import CatalogueListener

    listener = CatalogueListener(reporter, brief_text)
    spark.streams.addListener(listener)
    return listener


def apart(spark: SparkSession) -> SparkSession:
    """A session on the same cluster with its own settings and temporary views."""
    if is_remote(spark):
        cloned: SparkSession = spark.cloneSession()  # type: ignore[attr-defined]
        cloned.release_session_on_close = True  # type: ignore[attr-defined]  # Spark does not set it for clones
        _cloned.add(cloned)
        return cloned
    return spark.newSession()


def close(spark: SparkSession) -> None:
    """Stop a session and its clones. An open clone of Spark Connect keeps the process from ending."""
    if is_remote(spark):
        for each in list(_cloned):
            each.stop()
    spark.stop()


def is_alive(spark: SparkSession) -> bool:
    """Whether the session's JVM or server still runs."""
    try:
        if is_remote(spark):
            return spark.conf.get("spark.sql.session.timeZone") is not None
        return not spark.sparkContext._jsc.sc().isStopped()
    except Exception:
        return False
