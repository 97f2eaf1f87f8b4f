"""Lineage: from source to view and column, as events and as a picture, without secrets."""

from __future__ import annotations

import json
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

pytest.importorskip("sqlglot", reason="needs the extra `pipeline`")

from barnabas.engine.timeline import Entry, Kind
from barnabas.pipeline.lineage.columns import From, columns_of, tables_of
from barnabas.pipeline.lineage.graph import Column, Use
from barnabas.pipeline.lineage.openlineage import event, plain
from barnabas.pipeline.lineage.pipeline_graph import graph_of
from barnabas.pipeline.observe import lineage_picture

from .shop_pipeline import shop

TABLES = {
    "orders": {"shop": "string", "amount": "double", "at": "timestamp", "customer_id": "bigint"},
    "trusted.customers": {"id": "bigint", "country": "string"},
}
JOINED = (
    "WITH x AS (SELECT c.country, o.amount * 2 AS twice FROM orders o"
    " JOIN trusted.customers c ON o.customer_id = c.id) SELECT country, sum(twice) AS total FROM x GROUP BY 1"
)


def test_columns_are_followed_through_queries() -> None:
    assert tables_of(JOINED) == ["orders", "trusted.customers"]
    assert columns_of(JOINED, TABLES) == {
        "country": {From("trusted.customers", "country"): Use.IDENTITY},
        "total": {From("orders", "amount"): Use.AGGREGATION},
    }
    assert set(columns_of("SELECT * FROM orders", TABLES)) == set(TABLES["orders"])


def test_a_query_that_cannot_be_parsed_has_no_columns() -> None:
    assert columns_of("SELECT FROM WHERE", TABLES) == {}
    assert tables_of("SELECT FROM WHERE )") == []


def test_a_column_of_a_view_comes_from_columns_of_sources(tmp_path: Path) -> None:
    graph = graph_of(shop(tmp_path))
    revenue = Column("view.countries", "revenue")
    assert graph.sources_of(revenue) == [Column("source.orders", "amount")]
    country = Column("view.countries", "country")
    assert graph.sources_of(country) == [Column("source.customers", "country")]
    behind = [node.key for node in graph.behind("source.customers")]
    assert "view.countries" in behind
    assert "view.revenue" not in behind


def test_masked_columns_are_marked(tmp_path: Path) -> None:
    [origin] = graph_of(shop(tmp_path)).nodes["trusted.customers"].origins["email"]
    assert origin.use is Use.MASKED


def test_events_are_openlineage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "sesame")
    graph = graph_of(shop(tmp_path))
    entry = Entry(Kind.VIEW_BATCH, "countries", "7", 1.0, 2.0, rows_out=3)
    found = plain(event(graph, graph.nodes["view.countries"], entry, streaming=False))
    assert found["eventType"] == "COMPLETE"
    assert found["job"]["name"] == "shop.view.countries"
    assert found["inputs"][0]["name"].endswith("/refined/enriched")
    [output] = found["outputs"]
    [field] = output["facets"]["columnLineage"]["fields"]["revenue"]["inputFields"]
    assert (field["field"], field["transformations"][0]["subtype"]) == ("amount", "AGGREGATION")
    assert (
        found["run"]["runId"]
        == plain(event(graph, graph.nodes["view.countries"], entry, streaming=False))["run"]["runId"]
    )
    failed = Entry(Kind.VIEW_BATCH, "countries", "8", 1.0, 2.0, error="no space")
    assert plain(event(graph, graph.nodes["view.countries"], failed, streaming=False))["eventType"] == "FAIL"
    customers = plain(event(graph, graph.nodes["raw.customers"], entry, streaming=False))
    assert customers["inputs"][0] | {"facets": {}, "inputFacets": {}} == {
        "namespace": "postgresql://127.0.0.1",
        "name": "shop.customers",
        "facets": {},
        "inputFacets": {},
    }
    assert "sesame" not in json.dumps([found, customers])
    assert "hidden" not in json.dumps([found, customers])


def test_the_picture_shows_every_table_and_column(tmp_path: Path) -> None:
    graph = graph_of(shop(tmp_path))
    root = xml.fromstring(lineage_picture.svg(graph).replace("<svg ", '<svg xmlns="x" ', 1))
    texts = {(each.text or "") for each in root.iter("{x}text")}
    assert {"orders", "customers", "enriched", "revenue", "countries", "country"} <= texts
    threads = [each.get("data-to") for each in root.iter("{x}path") if each.get("class") == "thread"]
    assert "view.countries/revenue" in threads
    assert lineage_picture.page(graph).count("<script>") == 1
