"""What the report tells, gathered: the timeline, the views as served, the lake's tables, the quarantine.

In: a pipeline; the lake and the serving process as they are now. Out: `report.Facts`. Delta's log is read as
what it is, files of JSON and Parquet, so that a report costs no Spark.
Does not know: how the page looks.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from barnabas.pipeline.lake import Table, Zone
from barnabas.pipeline.lineage.picture import svg
from barnabas.pipeline.lineage.pipeline import graph_of
from barnabas.pipeline.model import Pipeline
from barnabas.pipeline.plots import shown_seconds
from barnabas.pipeline.report import ROWS_MAX, Facts, TableFacts, ViewFacts
from barnabas.pipeline.running.asking import asking
from barnabas.pipeline.running.state import state_folder
from barnabas.pipeline.serving.client import ServingError
from barnabas.pipeline.serving.store import StoreError
from barnabas.pipeline.timeline import Timeline

ENTRIES_MAX = 5000


def facts_of(pipeline: Pipeline, views: Sequence[ViewFacts] = ()) -> Facts:
    timeline = Timeline(state_folder(pipeline))
    return Facts(
        pipeline=pipeline.name,
        lake=pipeline.the_lake.root,
        now=time.time(),
        entries=timeline.entries(limit=ENTRIES_MAX),
        totals=timeline.totals(),
        standings=timeline.standings(),
        views=views,
        tables=list(tables_of(pipeline)),
        quarantine=quarantined(pipeline),
        lineage_svg=svg(graph_of(pipeline)),
    )


def views_of(pipeline: Pipeline) -> list[ViewFacts]:
    """Some rows of every view, as it is served; none where nothing was computed yet."""
    found = []
    try:
        with asking(pipeline) as serving:
            for view in serving.views():
                columns = [column["name"] for column in view["columns"]]
                answer = serving.query(view["name"], [("limit", str(ROWS_MAX))])
                rows = [[row[name] for name in columns] for row in answer["rows"]]
                found.append(
                    ViewFacts(view["name"], columns, rows, view["rows"], fresh_text(answer["freshness"]))
                )
    except (ServingError, StoreError):
        return found  # a report of what is known is better than none
    return found


def fresh_text(freshness: Any) -> str:
    return (
        f"complete up to {shown_seconds(freshness['age_seconds'])} before this page;"
        f" horizon at version {freshness['horizon']['version']}, speed layer at"
        f" {freshness['speed']['version']}"
    )


def table_version(folder: Path) -> int:
    """The newest version of a Delta table, -1 where there is none."""
    found = [int(path.stem) for path in (folder / "_delta_log").glob("*.json") if path.stem.isdigit()]
    return max(found, default=-1)


def tables(pipeline: Pipeline) -> Iterator[Table]:
    """Every table that the pipeline keeps, zone by zone."""
    for source in pipeline.sources:
        yield Table(Zone.RAW, source.name)
    for staging in pipeline.staging:
        yield Table(Zone.STAGING, staging.name)
    for trusted in pipeline.trusted:
        yield Table(Zone.TRUSTED, trusted.name)
    for name in dict.fromkeys(each.name for each in (*pipeline.staging, *pipeline.trusted)):
        yield Table(Zone.QUARANTINE, name)
    for refined in pipeline.refined:
        yield Table(Zone.REFINED, refined.name)


def tables_of(pipeline: Pipeline) -> Iterator[TableFacts]:
    lake = pipeline.the_lake
    if not lake.is_local:
        return
    for table in tables(pipeline):
        folder = Path(lake.path(table))
        if (folder / "_delta_log").is_dir():
            files, version = live_files(folder)
            rows = [rows_of(each) for each in files.values()]
            known = None if None in rows else sum(each for each in rows if each is not None)
            size = sum(int(each.get("size") or 0) for each in files.values())
            yield TableFacts(str(table.zone), table.name, known, len(files), size, version)


def rows_of(file: dict[str, Any]) -> int | None:
    """Of a file's statistics, without the rows that a deletion vector takes away."""
    stats = file.get("stats")
    try:
        found = json.loads(stats)["numRecords"] if isinstance(stats, str) else None
    except (ValueError, KeyError, TypeError):
        return None
    if found is None:
        return None
    vector = file.get("deletionVector") or {}
    return int(found) - int(vector.get("cardinality") or 0)


def live_files(folder: Path) -> tuple[dict[str, dict[str, Any]], int]:
    """The files that a table's newest version is made of, by path, and that version."""
    log = folder / "_delta_log"
    start, files = last_checkpoint(log)
    version = start
    for path in sorted(log.glob("*.json")):
        if not path.stem.isdigit() or int(path.stem) <= start:
            continue
        version = int(path.stem)
        for line in path.read_text().splitlines():
            action = json.loads(line) if line.strip() else {}
            if (added := action.get("add")) is not None:
                files[added["path"]] = added
            elif (removed := action.get("remove")) is not None:
                vector = removed.get("deletionVector")
                current = files.get(removed["path"])
                if current is not None and (current.get("deletionVector") or None) == (vector or None):
                    del files[removed["path"]]
    return files, version


def last_checkpoint(log: Path) -> tuple[int, dict[str, dict[str, Any]]]:
    """The newest checkpoint's version and files; -1 where there is none."""
    found = sorted(log.glob("*.checkpoint*.parquet"))
    if not found:
        return -1, {}
    import pyarrow.parquet as parquet

    version = found[-1].name.split(".")[0]
    files: dict[str, dict[str, Any]] = {}
    for path in log.glob(f"{version}.checkpoint*.parquet"):
        for row in parquet.read_table(path, columns=["add"]).to_pylist():
            if row.get("add") is not None:
                files[row["add"]["path"]] = row["add"]
    return int(version), files


def quarantined(pipeline: Pipeline) -> dict[tuple[str, str], int]:
    """How many rows each rule refused, that were not released since."""
    lake = pipeline.the_lake
    if not lake.is_local:
        return {}
    import pyarrow.parquet as parquet

    counts: Counter[tuple[str, str]] = Counter()
    for table in tables(pipeline):
        folder = Path(lake.path(table))
        if table.zone is not Zone.QUARANTINE or not (folder / "_delta_log").is_dir():
            continue
        for path in live_files(folder)[0]:
            try:
                rows = parquet.read_table(folder / path, columns=["rule", "released_at"]).to_pylist()
            except (OSError, KeyError, ValueError):
                continue  # compacted away between two looks
            counts.update((table.name, str(row["rule"])) for row in rows if row["released_at"] is None)
    return dict(counts)
