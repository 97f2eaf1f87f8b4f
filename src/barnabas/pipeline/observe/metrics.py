"""Metrics of a pipeline for Prometheus, and their HTTP endpoint.

In: the timeline, the catalogue of the engine. Out: what a scrape gets, in the format that it asks for: rows,
bytes, runs and seconds of every source and view, lag, delay, and states; then the engine's. Does not know:
how the work is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.catalogue.metrics import CatalogueCollector
from barnabas.engine.places.place import PlaceUnavailable
from barnabas.engine.timeline import Kind, State, Timeline, TimelineError, Total

PREFIX = "barnabas_pipeline"
PATHS = ("/metrics", "/")


def text(pipeline: str, timeline: Timeline) -> str:
    """One scrape, in Prometheus' text format."""
    return generate_latest(registry(pipeline, timeline)).decode()


def registry(pipeline: str, timeline: Timeline, catalogue: Catalogue | None = None) -> CollectorRegistry:
    # Without a first look at the timeline: it may not be there yet.
    found = CollectorRegistry(auto_describe=False)
    found.register(TimelineCollector(pipeline, timeline))
    if catalogue is not None:
        found.register(EngineCollector(catalogue))
    return found


class EngineCollector(CatalogueCollector):
    """Metrics of all applications at the pipeline's place; none while the place does not answer."""

    def collect(self) -> Iterator[Metric]:
        try:
            yield from list(super().collect())
        except PlaceUnavailable:
            return


class TimelineCollector(Collector):
    """Reads the timeline at each scrape: it outlives processes, counters in memory would not."""

    def __init__(self, pipeline: str, timeline: Timeline) -> None:
        self._pipeline = pipeline
        self._timeline = timeline

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        totals = self._timeline.totals()
        sources = [total for total in totals if total.kind == Kind.SOURCE]
        views = [total for total in totals if total.kind in (Kind.VIEW_SPEED, Kind.VIEW_BATCH)]
        yield from self._of_sources(sources)
        runs = self._counter("runs", "Runs of each part.", "kind", "name", "result")
        seconds = self._counter("run_seconds", "Seconds that each part worked.", "kind", "name")
        for total in totals:
            self._add(runs, total.runs - total.failures, total.kind, total.name, "ok")
            self._add(runs, total.failures, total.kind, total.name, "failed")
            self._add(seconds, total.seconds, total.kind, total.name)
        yield runs
        yield seconds
        yield self._last(totals, "last_run_timestamp_seconds", "When a part ended its last run.", "ended")
        yield self._last(views, "delay_seconds", "Age of the newest event in a view after a run.", "delay_s")
        up = self._gauge("up", "1 where a part is in this state.", "kind", "name", "state")
        for each in self._timeline.states():
            for state in State:
                self._add(up, float(each.state == state), each.kind, each.name, str(state))
        yield up

    def _of_sources(self, sources: list[Total]) -> Iterator[Metric]:
        rows = self._counter("rows", "Rows of a source, by what became of them.", "source", "outcome")
        size = self._counter("bytes", "Bytes read from a source.", "source")
        for total in sources:
            self._add(rows, total.rows_in, total.name, "in")
            self._add(rows, total.rows_out, total.name, "accepted")
            self._add(rows, total.duplicates, total.name, "duplicate")
            self._add(rows, total.quarantined, total.name, "quarantined")
            self._add(rows, total.late, total.name, "late")
            self._add(size, total.bytes_in, total.name)
        yield rows
        yield size
        yield self._last(sources, "lag_rows", "Rows that waited in the source after its last batch.", "lag")
        yield self._last(
            sources, "velocity_rows_per_second", "Rows a second in the last batch of a source.", "velocity"
        )

    def _counter(self, name: str, help_text: str, *labels: str) -> CounterMetricFamily:
        return CounterMetricFamily(f"{PREFIX}_{name}", help_text, labels=("pipeline", *labels))

    def _gauge(self, name: str, help_text: str, *labels: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"{PREFIX}_{name}", help_text, labels=("pipeline", *labels))

    def _add(self, family: CounterMetricFamily | GaugeMetricFamily, value: float, *labels: str) -> None:
        family.add_metric((self._pipeline, *(str(each) for each in labels)), value)

    def _last(self, totals: list[Total], name: str, help_text: str, field: str) -> GaugeMetricFamily:
        found = self._gauge(name, help_text, "kind", "name")
        for each in totals:
            if each.last is not None:
                self._add(found, float(getattr(each.last, field)), each.kind, each.name)
        return found


class NoEndpoint(Exception):
    """The endpoint cannot listen; the message says why."""


class Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class Silent(WSGIRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Do not log scrapes."""


class Endpoint:
    """Serves `GET /metrics` in a thread."""

    def __init__(
        self, pipeline: str, timeline: Timeline, host: str, port: int, catalogue: Catalogue | None = None
    ) -> None:
        found = registry(pipeline, timeline, catalogue)

        def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
            encoder, content_type = choose_encoder(environ.get("HTTP_ACCEPT", ""))
            status, body = "200 OK", b""
            if environ["PATH_INFO"] not in PATHS:
                status, content_type, body = "404 Not Found", "text/plain", b"metrics are at /metrics\n"
            else:
                try:
                    body = encoder(found)
                except TimelineError as error:
                    status, content_type = "503 Service Unavailable", "text/plain; charset=utf-8"
                    body = f"{error}\n".encode()
            start_response(status, [("Content-Type", content_type), ("Content-Length", str(len(body)))])
            return [body]

        try:
            self._server = make_server(host, port, app, Server, Silent)
        except OSError as error:
            raise NoEndpoint(f"metrics cannot be served on {host}:{port}: {error.strerror}") from error
        self.port = self._server.server_port
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
