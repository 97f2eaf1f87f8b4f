"""Spark's own Kafka connector as a reference: its jars from Maven Central.

Out: paths for `spark.jars`. Needs Maven the first time; `available()` says what is missing.
"""

from __future__ import annotations

import functools
from pathlib import Path

from barnabas.testing import maven

VERSION = "4.2.0"
NAME = f"spark-kafka-{VERSION}"
ARTIFACTS = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",  # the newest version on Maven Central
)
IN_SPARK = ("org.scala-lang", "org.apache.hadoop", "org.slf4j", "com.google.code.findbugs")


@functools.cache
def available() -> str | None:
    """None if the connector can be used here, otherwise the reason."""
    return maven.missing(NAME, ARTIFACTS, IN_SPARK)


def jars() -> list[Path]:
    return sorted(maven.fetch(NAME, ARTIFACTS, IN_SPARK).glob("*.jar"))
