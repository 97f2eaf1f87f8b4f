"""One way from a reference to rows: topics, tables, databases, files."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.engine.references import (
    FilesReference,
    JdbcReference,
    Reference,
    Sources,
    TableReference,
    TopicReference,
    WrongReference,
    frame_of,
)
from barnabas.engine.secrets import Secret

EU = {"bootstrap.servers": "eu:9092", "sasl.password": Secret("${env:NO_SUCH_PASSWORD}")}
SOURCES = Sources({"default": {"bootstrap.servers": "here:9092"}, "eu": EU}, lake="s3a://bucket/lake/")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("topic:orders", TopicReference("orders", {"bootstrap.servers": "here:9092"})),
        ("topic:eu/orders", TopicReference("orders", EU)),
        ("kafka://a:1,b:2/orders", TopicReference("orders", {"bootstrap.servers": "a:1,b:2"})),
        ("table:trusted.orders", TableReference("s3a://bucket/lake/trusted/orders")),
        ("table:trusted.orders@12", TableReference("s3a://bucket/lake/trusted/orders", 12)),
        ("delta:/data/t", TableReference("/data/t")),
        ("jdbc:sqlite:/a.db#customers", JdbcReference("jdbc:sqlite:/a.db", "customers")),
        ("files:/data/*.jsonl", FilesReference("/data/*.jsonl", "json")),
        ("files:parquet:/data/orders", FilesReference("/data/orders", "parquet")),
    ],
)
def test_a_reference_names_a_source(text: str, found: Reference) -> None:
    assert SOURCES.find(text) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("orders", "write topic:NAME"),
        ("topic:us/orders", r"no cluster 'us' \(default, eu\)"),
        ("table:orders", "write ZONE.NAME"),
        ("kafka://a:1", "HOST:PORT/TOPIC"),
        ("jdbc:postgresql://u:pw@h/db", "behind a #"),
        ("files:/data/orders", "files:FORMAT:PATH"),
    ],
)
def test_a_wrong_reference_says_how_to_write_it_and_hides_passwords(text: str, words: str) -> None:
    with pytest.raises(WrongReference, match=words) as caught:
        SOURCES.find(text)
    assert "pw" not in str(caught.value)


class Reader:
    """Stands for Spark's reader: keeps what it was told."""

    def __init__(self) -> None:
        self.said: dict[str, Any] = {}

    def format(self, name: str) -> Reader:
        self.said["format"] = name
        return self

    def options(self, **options: Any) -> Reader:
        self.said |= options
        return self

    def load(self, path: str = "") -> dict[str, Any]:
        return {**self.said, "path": path}


class Spark:
    @property
    def read(self) -> Reader:
        return Reader()

    readStream = read


def test_a_topic_is_read_with_the_settings_of_its_cluster_and_options_win() -> None:
    spark: Any = Spark()
    found: Any = frame_of(spark, SOURCES.find("topic:orders"), {"startingOffsets": "earliest"})
    assert found["format"] == "barnabas"
    assert found["kafka.bootstrap.servers"] == "here:9092"
    assert (found["subscribe"], found["startingOffsets"]) == ("orders", "earliest")
    table: Any = frame_of(spark, SOURCES.find("table:raw.orders@3"))
    assert (table["format"], table["versionAsOf"]) == ("delta", 3)
    changes: Any = frame_of(spark, SOURCES.find("table:raw.orders@3"), streaming=True)
    assert changes["startingVersion"] == 3


def test_a_database_is_no_stream() -> None:
    spark: Any = Spark()
    with pytest.raises(WrongReference, match="cannot be read as a stream"):
        frame_of(spark, SOURCES.find("jdbc:sqlite:/a.db#t"), streaming=True)
