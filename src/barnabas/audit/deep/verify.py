"""`barnabas audit verify`: reads two topics with Spark, from any Kafka clusters, and compares them.

In: a Spark master, two topics with the properties of their clients. Out: a `Comparison`. Both topics are
read up to where they end when the comparison begins, committed records only.
Does not know: how records are compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.audit.deep.compare import LIMIT, RANGES, Aspects, compare
from barnabas.audit.deep.difference import Comparison
from barnabas.engine.session import session
from barnabas.engine.spark_settings import SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class TopicAddress:
    bootstrap: str
    topic: str
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, properties: Mapping[str, str]) -> TopicAddress:
        """`host:port,host:port/topic`."""
        bootstrap, slash, topic = text.rpartition("/")
        if not slash or not bootstrap or not topic:
            raise ValueError(f"{text}: write HOST:PORT/TOPIC")
        return cls(bootstrap, topic, properties)


def verify(
    spark: SparkSession,
    source: TopicAddress,
    target: TopicAddress,
    aspects: Aspects,
    *,
    ranges: int = RANGES,
    limit: int = LIMIT,
) -> Comparison:
    ours, theirs = (records_of(spark, each, aspects) for each in (source, target))
    return compare(ours, theirs, aspects, ranges=ranges, limit=limit)


def records_of(spark: SparkSession, address: TopicAddress, aspects: Aspects) -> DataFrame:
    from barnabas.spark.source import BarnabasSource

    spark.dataSource.register(BarnabasSource)
    reader = spark.read.format(BarnabasSource.name())
    for name, value in address.properties.items():
        reader = reader.option(f"kafka.{name}", value)
    columns = ["key", "value", "partition", "offset", "timestamp", *(["headers"] if aspects.headers else [])]
    return (
        reader.option("kafka.bootstrap.servers", address.bootstrap)
        .option("subscribe", address.topic)
        .option("kafka.isolation.level", "read_committed")
        .option("includeHeaders", str(aspects.headers).lower())
        .load()
        .select(*columns)
    )


def open_session(master: str) -> SparkSession:
    return session(SparkSettings(master=master), (), "barnabas-audit", {"spark.sql.shuffle.partitions": "8"})
