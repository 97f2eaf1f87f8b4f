"""Sums up the audit topic on Spark, for topics that are too large for one process.

In: a session, the brokers of the audit topic. Out: a ledger. Executors read partitions of the topic and sum
up streams, all messages of a stream at one place; the driver merges their sums. The rules are those of the
ledger in one process, since it is the same code. Does not know: verdicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from barnabas.audit.core.ledger import Ledger
from barnabas.audit.core.messages import MessageError, decode
from barnabas.audit.core.partial import dump, merge
from barnabas.audit.counters.audit_topic import AUDIT_TOPIC

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    from pyspark.sql import SparkSession

GROUPS = 32
KEEP_ALL_MS = 2**60  # the driver forgets what is old


def sum_up(
    spark: SparkSession,
    bootstrap: str,
    topic: str = AUDIT_TOPIC,
    properties: Mapping[str, str] | None = None,
    *,
    groups: int = GROUPS,
) -> Ledger:
    from pyspark.sql import functions as f

    from barnabas.spark.source import BarnabasSource

    spark.dataSource.register(BarnabasSource)
    reader = spark.read.format(BarnabasSource.name())
    for name, value in (properties or {}).items():
        reader = reader.option(f"kafka.{name}", value)
    records = (
        reader.option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", topic)
        .option("kafka.isolation.level", "read_committed")
        .load()
        .select(
            "value",
            (f.unix_millis("timestamp")).alias("arrived_ms"),
            "partition",
            "offset",
            f.pmod(f.xxhash64("key"), f.lit(groups)).alias("streams"),
        )
    )
    ledger = Ledger(keep_ms=KEEP_ALL_MS)
    for row in records.groupBy("streams").applyInPandas(sum_streams, "ledger string").collect():
        merge(ledger, row["ledger"])
    return ledger


def sum_streams(messages: pd.DataFrame) -> pd.DataFrame:
    """One ledger of all messages of some streams."""
    import pandas as pd

    ledger = Ledger(keep_ms=KEEP_ALL_MS)
    for value, arrived_ms in in_order(messages):
        try:
            ledger.apply(decode(value), arrived_ms)
        except MessageError:
            continue
    return pd.DataFrame({"ledger": [dump(ledger)]})


def in_order(messages: pd.DataFrame) -> Iterator[tuple[bytes, int]]:
    ordered = messages.sort_values(["partition", "offset"])
    for value, arrived_ms in zip(ordered["value"], ordered["arrived_ms"], strict=True):
        yield bytes(value), int(arrived_ms)


def sum_on_spark(master: str, bootstrap: str, topic: str, properties: Mapping[str, str]) -> Ledger:
    """The same with a session of its own."""
    from barnabas.engine.session import session
    from barnabas.engine.spark_settings import SparkSettings

    spark = session(SparkSettings(master=master), (), "barnabas-audit")
    try:
        return sum_up(spark, bootstrap, topic, properties)
    finally:
        spark.stop()
