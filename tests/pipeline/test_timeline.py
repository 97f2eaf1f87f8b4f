"""The timeline keeps what ran, survives writers that run at once, and feeds status, metrics and report."""

from __future__ import annotations

import multiprocessing
import urllib.request
from pathlib import Path

import pytest

pytest.importorskip("cronsim", reason="needs the extra `pipeline`")

from prometheus_client.parser import text_string_to_metric_families

from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.places.place import FolderPlace
from barnabas.engine.timeline import BestEffortTimeline, Entry, Kind, State, Timeline, TimelineError
from barnabas.pipeline.observe import metrics
from barnabas.pipeline.observe.status import status_lines, table

ORDERS = Entry(
    Kind.SOURCE, "orders", "1", 100.0, 102.0, 50, 40, 4, 6, late=3, bytes_in=5000, lag=7, delay_s=0.5
)


def test_work_recorded_again_after_a_crash_counts_once(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path)
    for _ in range(2):
        timeline.record(ORDERS)
    assert timeline.entries() == [ORDERS]
    [total] = timeline.totals()
    assert (total.runs, total.rows_in, total.quarantined, total.last) == (1, 50, 6, ORDERS)
    assert total.velocity == 25.0


def test_a_state_keeps_its_beginning_until_it_changes(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path)
    timeline.set_state(Kind.SOURCE, "orders", State.WAITING, "the broker is away")
    [first] = timeline.states()
    timeline.set_state(Kind.SOURCE, "orders", State.WAITING, "the broker is away", pid=5)
    assert timeline.states()[0].since == first.since
    timeline.set_state(Kind.SOURCE, "orders", State.RUNNING)
    assert timeline.states()[0].since > first.since


def write_some(folder: Path, name: str) -> None:
    timeline = Timeline(folder)
    for number in range(50):
        timeline.record(Entry(Kind.SOURCE, name, str(number), number, number + 1.0, 1, 1))


def test_processes_write_at_once(tmp_path: Path) -> None:
    writers = [
        multiprocessing.get_context("spawn").Process(target=write_some, args=(tmp_path, name))
        for name in ("one", "two", "three")
    ]
    for each in writers:
        each.start()
    for each in writers:
        each.join()
    assert [(total.name, total.runs) for total in Timeline(tmp_path).totals()] == [
        ("one", 50),
        ("three", 50),
        ("two", 50),
    ]


def test_work_goes_on_if_the_timeline_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    timeline = Timeline(tmp_path / "file")
    with pytest.raises(TimelineError, match="cannot be used"):
        timeline.record(ORDERS)
    recorder = BestEffortTimeline(timeline)
    recorder.record(ORDERS)
    recorder.set_state(Kind.SOURCE, "orders", State.RUNNING)
    assert recorder.missed == 2


def test_metrics_are_prometheus_text(tmp_path: Path) -> None:
    timeline = Timeline(tmp_path)
    timeline.record(ORDERS)
    timeline.record(Entry(Kind.VIEW_SPEED, 'a "view"', "9", 1.0, 2.0, delay_s=1.5, error="no"))
    timeline.set_state(Kind.PROCESS, "batch", State.FAILED, "killed by signal 9")
    reporter = Reporter(FolderPlace(tmp_path), "shop", "streaming")
    reporter.progress("source/orders", rows_in=50, lag=7)
    reporter.close()
    catalogue = Catalogue(FolderPlace(tmp_path))
    endpoint = metrics.Endpoint("shop", timeline, "127.0.0.1", 0, catalogue)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics") as answer:
            text = answer.read().decode()
    finally:
        endpoint.close()
    assert (
        'barnabas_engine_query_lag_rows{application="shop",program="streaming",query="source/orders"} 7'
        in text
    )
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    shop = ("pipeline", "shop")
    rows = "barnabas_pipeline_rows_total"
    assert found[rows, ("outcome", "quarantined"), shop, ("source", "orders")] == 6
    view = (("kind", "view speed"), ("name", 'a "view"'), shop)
    assert found["barnabas_pipeline_runs_total", *view, ("result", "failed")] == 1
    up = ("barnabas_pipeline_up", ("kind", "process"), ("name", "batch"), shop)
    assert (found[*up, ("state", "failed")], found[*up, ("state", "running")]) == (1, 0)


def test_status_shows_everything_with_its_last_run(tmp_path: Path) -> None:
    from rich.console import Console

    timeline = Timeline(tmp_path)
    timeline.record(ORDERS)
    timeline.set_state(Kind.SOURCE, "orders", State.RUNNING)
    timeline.set_state(Kind.SOURCE, "customers", State.WAITING, "connection refused")
    console = Console(width=200, record=True, file=(tmp_path / "unused").open("w"))
    with console.file:
        console.print(table("shop", timeline))
    text = console.export_text()
    assert "shop: not running" in text
    assert "waiting customers: connection refused" in text
    [orders] = [line for line in status_lines(timeline) if line.name == "orders"]
    assert orders.as_json()["velocity"] == 25.0
    assert orders.as_json()["lag"] == 7
