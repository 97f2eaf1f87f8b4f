"""Collects the facts of the report: the timeline, served views, tables of the lake, the quarantine.

In: a pipeline, its lake and its serving process. Out: `report.Facts`. Tables are read by the library
`deltalake`, so that a report needs no Spark. Does not know: how the page looks.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from barnabas.pipeline.lake.table_files import answer, table_files
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.lineage.pipeline_graph import graph_of
from barnabas.pipeline.observe.lineage_picture import svg
from barnabas.pipeline.observe.other_hosts import timeline_of
from barnabas.pipeline.observe.plots import shown_seconds
from barnabas.pipeline.observe.report import ROWS_MAX, Facts, TableFacts, ViewFacts
from barnabas.pipeline.serving.access import open_queries
from barnabas.pipeline.serving.http.client import ServingError
from barnabas.pipeline.serving.store.port import StoreError
from barnabas.pipeline.spec.model import Pipeline

ENTRIES_MAX = 5000
REFUSED = "SELECT rule, count(*) AS n FROM t WHERE released_at IS NULL GROUP BY rule"


def facts_of(pipeline: Pipeline, views: Sequence[ViewFacts] = ()) -> Facts:
    timeline = timeline_of(pipeline)
    return Facts(
        pipeline=pipeline.name,
        lake=pipeline.lake_location.root,
        now=time.time(),
        entries=timeline.entries(limit=ENTRIES_MAX),
        totals=timeline.totals(),
        states=timeline.states(),
        views=views,
        tables=list(tables_of(pipeline)),
        quarantine=quarantined(pipeline),
        lineage_svg=svg(graph_of(pipeline)),
    )


def views_of(pipeline: Pipeline) -> list[ViewFacts]:
    """Some rows of every served view; none if nothing was computed yet."""
    found = []
    try:
        with open_queries(pipeline) as serving:
            for view in serving.views():
                columns = [column["name"] for column in view["columns"]]
                answer = serving.query(view["name"], [("limit", str(ROWS_MAX))])
                rows = [[row[name] for name in columns] for row in answer["rows"]]
                found.append(
                    ViewFacts(view["name"], columns, rows, view["rows"], fresh_text(answer["freshness"]))
                )
    except (ServingError, StoreError):
        return found  # report what is known
    return found


def fresh_text(freshness: Any) -> str:
    return (
        f"complete up to {shown_seconds(freshness['age_seconds'])} before this page;"
        f" horizon at version {freshness['horizon']['version']}, speed layer at"
        f" {freshness['speed']['version']}"
    )


def tables(pipeline: Pipeline) -> Iterator[TableName]:
    """Every table of the pipeline, zone by zone."""
    for source in pipeline.sources:
        yield TableName(Zone.RAW, source.name)
    for staging in pipeline.staging:
        yield TableName(Zone.STAGING, staging.name)
    for trusted in pipeline.trusted:
        yield TableName(Zone.TRUSTED, trusted.name)
    for name in dict.fromkeys(each.name for each in (*pipeline.staging, *pipeline.trusted)):
        yield TableName(Zone.QUARANTINE, name)
    for refined in pipeline.refined:
        yield TableName(Zone.REFINED, refined.name)


def tables_of(pipeline: Pipeline) -> Iterator[TableFacts]:
    lake = pipeline.lake_location
    if not lake.is_read_by_us:
        return
    for table in tables(pipeline):
        found = table_files(lake.path(table), lake.store)
        if found is not None:
            size, version = found.size_bytes, found.version
            yield TableFacts(str(table.zone), table.name, found.rows, found.files, size, version)


def quarantined(pipeline: Pipeline) -> dict[tuple[str, str], int]:
    """The number of quarantined rows by table and rule, without released ones."""
    lake = pipeline.lake_location
    if not lake.is_read_by_us:
        return {}
    counts: dict[tuple[str, str], int] = {}
    for table in tables(pipeline):
        if table.zone is Zone.QUARANTINE:
            for row in answer(lake.path(table), REFUSED, lake.store):
                counts[table.name, str(row["rule"])] = int(row["n"])
    return counts
