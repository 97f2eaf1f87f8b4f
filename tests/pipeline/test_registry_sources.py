"""A topic whose records name their schemas, through the zones: versions come and go while it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from barnabas.engine.errors import NeedsDecision
from barnabas.pipeline import Drift, Schema
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.spec.model import Format
from pipeline.orders import orders_pipeline, rows
from registry_stub import registry

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]

V1 = {"type": "record", "name": "O", "fields": [{"name": "order_id", "type": "string"}]}
V2 = {**V1, "fields": [*V1["fields"], {"name": "note", "type": "string", "default": "-"}]}


def test_a_newer_version_adds_columns_if_the_level_says_that_it_reads_old_records(
    spark: Any, broker: Any, topic: Callable[..., str], produce: Callable[..., None], lake: str
) -> None:
    name = topic()
    with registry() as there:
        one = there.add(f"{name}-value", V1)
        schema = Schema(registry=there.url)
        source = {"schema": schema, "format": Format.AVRO, "event_time": ""}
        pipeline = orders_pipeline(
            lake,
            broker.bootstrap,
            name,
            source=source,
            staging={"drift": Drift.ADD},
            trusted={"rules": (), "hash": []},
        )
        runner = SourceRunner(spark, pipeline, "orders")
        produce(name, [b"\0\0\0\0%c\x02a" % one, b"\0\0\0\0\x63\x02a"], partition=0)
        batch = runner.step()
        assert batch is not None and (batch.staged, batch.malformed) == (1, 1)
        two = there.add(f"{name}-value", V2)
        produce(name, [b"\0\0\0\0%c\x02b\x02x" % two, b"\0\0\0\0%c\x02c" % one], partition=0)
        batch = runner.step()
        assert batch is not None and (batch.staged, batch.malformed) == (2, 0)
        found = rows(spark, pipeline, "staging", "orders", "order_id", "note")
        assert sorted(found) == [("a", None), ("b", "x"), ("c", "-")]
        there.levels[f"{name}-value"] = "NONE"
        there.add(f"{name}-value", {**V1, "fields": [{"name": "order_id", "type": "int"}]})
        produce(name, [b"\0\0\0\0%c\x02d" % one], partition=0)
        with pytest.raises(NeedsDecision, match="level NONE does not promise"):
            runner.step()
        pinned = replace(pipeline.sources[0], schema=replace(schema, version=2))
        again = SourceRunner(spark, replace(pipeline, sources=(pinned,)), "orders")
        again.step()
        assert ("d", "-") in rows(spark, pipeline, "staging", "orders", "order_id", "note")
