"""Settings of a session, by the place where it computes. Settings of users win over all of ours.

In: the kind of session, settings of users. Out: settings for Spark. Settings for small batches on few cores
are for `local` only: a cluster has its own sizes, and adaptive execution finds the number of partitions.
Does not know: Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.engine.secrets import Text
from barnabas.engine.shipping.archive import LACKING
from barnabas.engine.shipping.archive import NAME as ARCHIVE
from barnabas.engine.spark_settings import SessionKind, SparkSettings

# Only with Delta's jars: without its classes no query would start.
DELTA: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
EVERYWHERE: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "false",  # a row that fails must not fail its batch
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    "spark.databricks.delta.schema.autoMerge.enabled": "false",
    "spark.databricks.delta.properties.defaults.dataSkippingNumIndexedCols": "8",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
}
# Spark's pages keep the plans of the last thousand queries and jobs in the driver's memory: about 5 MB for a
# batch through all zones, 200 MB and more before it ends. An application that runs for months keeps fewer.
KEPT_BY_PAGES: Mapping[str, str] = {
    "spark.sql.ui.retainedExecutions": "50",
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "1000",
    "spark.ui.retainedDeadExecutors": "10",
}
# Spark's defaults cost most on small batches: 200 tasks for a shuffle of a few rows, 50 tasks to read the
# newest version of a table, up to 10,000 to list files for a vacuum.
LOCAL: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
}
# Adaptive execution makes few partitions of small shuffles and many of large ones.
ON_EXECUTORS: Mapping[str, str] = {"spark.sql.adaptive.enabled": "true"}
# Our archive is unpacked beside the work of an executor: libraries that its Python lacks.
ON_A_CLUSTER: Mapping[str, str] = {"spark.executorEnv.PYTHONPATH": f"{ARCHIVE}/{LACKING}"}

SETTINGS: Mapping[SessionKind, Mapping[str, str]] = {
    SessionKind.LOCAL: {**EVERYWHERE, **KEPT_BY_PAGES, **LOCAL},
    SessionKind.CLUSTER: {**EVERYWHERE, **KEPT_BY_PAGES, **ON_EXECUTORS, **ON_A_CLUSTER},
    SessionKind.CONNECT: {**EVERYWHERE, **ON_EXECUTORS},
}
# The server of Spark Connect has its own jars, processes and static settings.
OF_THE_SERVER = (
    "spark.sql.extensions",
    "spark.sql.catalog.spark_catalog",
    "spark.ui.",
    "spark.python.",
    "spark.pyspark.",
    "spark.jars",
    "spark.driver.",
    "spark.executor",
    "spark.cores.",
    "spark.dynamicAllocation.",
)
OWN_PREFIX = "spark.barnabas."
PACKAGE = f"{OWN_PREFIX}package"  # `auto`, `none`, or the path of an archive: see `shipping`


def settings_for(
    spark: SparkSettings, own: Mapping[str, Text] | None = None, *, has_delta: bool = True
) -> dict[str, Text]:
    """All settings of a session. `own` are those of one application, and win over those for all."""
    kind = spark.kind
    delta = DELTA if has_delta else {}
    found: dict[str, Text] = {**delta, **SETTINGS[kind], **spark.settings, **(own or {})}
    if kind is SessionKind.CONNECT:
        found = {name: value for name, value in found.items() if not name.startswith(OF_THE_SERVER)}
    return found
