"""Queries of Structured Streaming report to the catalogue, and references become rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import QueryStatus
from barnabas.engine.checkpoints import checkpoint_of
from barnabas.engine.places.place import FolderPlace
from barnabas.engine.references import Sources, frame_of
from barnabas.engine.session import is_local, parallelism, report_streams
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until


@pytest.fixture
def sources(tmp_path: Path) -> Iterator[Sources]:
    with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        yield Sources({"default": {"bootstrap.servers": broker.bootstrap}}, str(tmp_path / "lake"))


def test_a_stream_from_a_topic_to_a_table_is_seen_from_another_host(
    spark: Any, sources: Sources, tmp_path: Path
) -> None:
    assert is_local(spark) and parallelism(spark) == 2
    place = FolderPlace(tmp_path / "place")
    reporter = Reporter(place, "copies", "main", write_s=0.05)
    listener = report_streams(spark, reporter)
    kafka = {"kafka.bootstrap.servers": sources.clusters["default"]["bootstrap.servers"]}
    rows = spark.range(20).selectExpr("cast(id as string) value")
    rows.write.format("barnabas").options(**kafka, topic="orders").mode("append").save()

    def found(name: str) -> QueryStatus:
        entry = Catalogue(place).application("copies")
        return QueryStatus(name) if entry is None else entry.programs[0].queries.get(name, QueryStatus(name))

    def start(name: str, column: str) -> Any:
        stream = frame_of(
            spark, sources.find("topic:orders"), {"startingOffsets": "earliest"}, streaming=True
        )
        return (
            stream.selectExpr(column)
            .writeStream.queryName(name)
            .format("delta")
            .option("checkpointLocation", checkpoint_of(place.root, "copies", name))
            .trigger(availableNow=True)
            .start(str(tmp_path / "lake" / "raw" / name))
        )

    try:
        start("orders", "value").awaitTermination(120)
        wait_until(lambda: found("orders").state == "stopped", 60)
        orders = found("orders")
        assert (orders.rows_in, orders.lag, orders.last_error) == (20, 0, "")
        assert sum(orders.offsets["orders"].values()) == 20
        start("broken", "cast(raise_error('no luck') AS string) AS value")
        wait_until(lambda: found("broken").state == "failed", 60)
        assert "no luck" in found("broken").last_error
    finally:
        spark.streams.removeListener(listener)
        reporter.close()
    assert frame_of(spark, sources.find("table:raw.orders")).count() == 20
    assert frame_of(spark, sources.find("topic:orders")).count() == 20
