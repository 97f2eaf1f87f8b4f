"""The catalogue: what queries report, and what any host reads of it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client", reason="needs the extra `http`")

from prometheus_client.parser import text_string_to_metric_families

from barnabas.engine.catalogue.catalogue import LOST_S, Catalogue
from barnabas.engine.catalogue.metrics import Endpoint, metrics_text
from barnabas.engine.catalogue.reporter import QUERIES_MAX, Reporter
from barnabas.engine.catalogue.statuses import METRICS_MAX, PLACES_MAX, QueryState
from barnabas.engine.places.place import FolderPlace, Place, PlaceUnavailable, place_at
from barnabas.testing.waiting import wait_until


def some(place: Place, clock: Any = None) -> Reporter:
    found = Reporter(place, "shop", "streaming", write_s=0.01, **({"clock": clock} if clock else {}))
    found.set_state("source/orders", QueryState.RUNNING, kind="source")
    offsets = {"orders": {"0": 50}}
    found.progress("source/orders", batch=7, rows_in=50, rows_out=40, seconds=2.0, lag=9, offsets=offsets)
    found.failed("view/revenue", "the store is away", state=QueryState.WAITING)
    return found


def test_another_host_reads_state_progress_lag_and_last_error(tmp_path: Path) -> None:
    reporter = some(FolderPlace(tmp_path))
    reporter.flush()
    [entry] = Catalogue(place_at(str(tmp_path))).applications()
    found = {query.query: query for _, query in entry.queries()}
    orders, revenue = found["source/orders"], found["view/revenue"]
    assert (orders.state, orders.batch, orders.rows_in, orders.lag) == ("running", 7, 50, 9)
    assert orders.offsets == {"orders": {"0": 50}}
    assert orders.rows_per_second == 25.0
    assert (revenue.state, revenue.last_error, revenue.errors) == ("waiting", "the store is away", 1)
    reporter.close()
    [entry] = Catalogue(place_at(str(tmp_path))).applications()
    assert {query.state for _, query in entry.queries()} == {"stopped"}


def test_a_process_that_reports_no_more_is_lost(tmp_path: Path) -> None:
    now = 1000.0
    reporter = some(FolderPlace(tmp_path), lambda: now)
    reporter.flush()
    catalogue = Catalogue(FolderPlace(tmp_path))
    for later, state in ((LOST_S - 1, "running"), (LOST_S + 1, "lost")):
        entry = catalogue.application("shop", now + later)
        assert entry is not None
        assert entry.programs[0].queries["source/orders"].state == state
    reporter.close()


def test_news_are_written_soon_and_without_a_call(tmp_path: Path) -> None:
    reporter = some(FolderPlace(tmp_path))
    catalogue = Catalogue(FolderPlace(tmp_path))
    wait_until(lambda: catalogue.application("shop") is not None)
    reporter.set_state("source/orders", QueryState.IDLE)

    def is_idle() -> bool:
        entry = catalogue.application("shop")
        return entry is not None and entry.programs[0].queries["source/orders"].state == "idle"

    wait_until(is_idle)
    reporter.close()


class Broken(FolderPlace):
    def write(self, name: str, data: bytes) -> None:
        raise PlaceUnavailable("the bucket is away")


def test_a_place_that_is_away_stops_nobody(tmp_path: Path) -> None:
    reporter = some(Broken(tmp_path))
    assert reporter.flush() is False
    reporter.progress("source/orders", rows_in=1)
    reporter.close()
    assert reporter.failures >= 2


def test_a_file_of_the_catalogue_stays_small(tmp_path: Path) -> None:
    reporter = Reporter(FolderPlace(tmp_path), "shop", "batch")
    for number in range(QUERIES_MAX + 5):
        reporter.set_state(f"query-{number}", QueryState.RUNNING)
    offsets = {"t": {str(number): 1 for number in range(PLACES_MAX + 1)}}
    reporter.progress("query-0", offsets=offsets)
    reporter.failed("query-1", "x" * 100_000)
    reporter.close()
    entry = Catalogue(FolderPlace(tmp_path)).application("shop")
    assert entry is not None
    [program] = entry.programs
    assert len(program.queries) == QUERIES_MAX and program.queries_left_off == 5
    assert program.queries["query-0"].offsets == {"partitions": PLACES_MAX + 1}
    assert len(program.queries["query-1"].last_error) == 500


def test_a_file_of_a_newer_version_is_read(tmp_path: Path) -> None:
    some(FolderPlace(tmp_path)).close()
    path = tmp_path / "catalogue" / "shop" / "programs" / "streaming.json"
    data = json.loads(path.read_text())
    data["new"] = data["queries"]["source/orders"]["new"] = 1
    path.write_text(json.dumps(data))
    entry = Catalogue(FolderPlace(tmp_path)).application("shop")
    assert entry is not None and "source/orders" in entry.programs[0].queries


def test_metrics_of_the_catalogue_are_served(tmp_path: Path) -> None:
    reporter = some(FolderPlace(tmp_path))
    reporter.flush()
    catalogue = Catalogue(FolderPlace(tmp_path))
    endpoint = Endpoint(catalogue, "127.0.0.1", 0)
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{endpoint.port}/metrics") as answer:
            text = answer.read().decode()
    finally:
        endpoint.close()
        reporter.close()
    samples = {
        (sample.name, sample.labels.get("query"), sample.labels.get("state")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["barnabas_engine_query_rows_in_total", "source/orders", None] == 50
    assert samples["barnabas_engine_query_lag_rows", "source/orders", None] == 9
    assert samples["barnabas_engine_query_state", "source/orders", "running"] == 1
    assert samples["barnabas_engine_query_state", "view/revenue", "running"] == 0
    assert "barnabas_engine_query_errors_total" in metrics_text(catalogue)


def test_metrics_of_queries_keep_their_names_and_have_a_bound(tmp_path: Path) -> None:
    reporter = Reporter(FolderPlace(tmp_path), "words", "streams", write_s=0.01)
    processed, latency = "kafka_streams_stream_task_metrics_process_total", "process_latency_avg"
    many = {str(number): 1.0 for number in range(METRICS_MAX)}
    reporter.progress("words-0", metrics={processed: {"0_0": 5.0, "0_1": 7.0}, latency: {"0_0": 0.5}})
    reporter.progress("words-1", metrics={latency: {"1_0": 0.25}, "lag": many})
    reporter.close()
    samples = {
        (sample.name, sample.labels.get("query"), sample.labels.get("part")): sample.value
        for family in text_string_to_metric_families(metrics_text(Catalogue(FolderPlace(tmp_path))))
        for sample in family.samples
    }
    assert samples[processed, "words-0", "0_1"] == 7
    assert samples[latency, "words-0", "0_0"] == 0.5
    assert samples["lag", "words-1", ""] == METRICS_MAX  # too many parts become their sum
