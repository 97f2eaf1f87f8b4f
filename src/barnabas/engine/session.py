"""Spark sessions with Delta Lake, and settings for small batches.

In: where Spark runs, and which sets of jars are needed. Out: a session: local, on a cluster, or of a Spark
Connect server. Does not know: what is run on it.
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

from barnabas.engine.secrets import Secret, Text, revealed
from barnabas.engine.spark_settings import SparkSettings
from barnabas.spark import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REDACTION = "spark.redaction.regex"
REDACTED_BY_SPARK = r"(?i)secret|password|token|access[.]?key"  # Spark's default

_cloned: weakref.WeakSet[Any] = weakref.WeakSet()

# Spark's defaults cost most on small batches: 200 tasks for a shuffle of a few rows, and 50 tasks to read the
# newest version of a table.
SETTINGS: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",  # a row that fails must not fail its batch
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",  # tasks of a vacuum; default 10,000
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    "spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols": "8",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.python.worker.reuse": "true",
}


class SessionError(Exception):
    """Spark cannot be started; the message says what is missing."""


def session(
    spark: SparkSettings,
    sets: Sequence[str] = ("delta",),
    name: str = "barnabas",
    settings: Mapping[str, Text] | None = None,
) -> SparkSession:
    from pyspark.sql import SparkSession

    wanted = with_redaction({**SETTINGS, **spark.settings, **(settings or {})})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own
        if spark.remote:
            check_connect()
            builder = SparkSession.builder.remote(spark.remote)
            # The server has its own jars and static settings.
            static = ("spark.sql.extensions", "spark.sql.catalog.spark_catalog", "spark.ui.", "spark.python.")
            for key, value in wanted.items():
                if not key.startswith(static):
                    builder = builder.config(key, value)
            return builder.getOrCreate()
        check_java()
        # Workers use the driver's interpreter, not the `python3` of the PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        own = [part for part in wanted.pop("spark.jars", "").split(",") if part]
        files = [*own, *(str(path) for path in jars.jars(*sets))]
        builder = (
            SparkSession.builder.master(spark.master).appName(name).config("spark.jars", ",".join(files))
        )
        for key, value in wanted.items():
            builder = builder.config(key, value)
        found = builder.getOrCreate()
        found.sparkContext.setLogLevel("ERROR")
        return found


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
        raise SessionError(f'Spark Connect needs {", ".join(missing)}: pip install "barnabas[connect]"')


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
