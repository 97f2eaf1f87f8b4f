"""Metrics of a pipeline in Prometheus' text format, and their HTTP endpoint.

In: the timeline, the catalogue of the engine. Out: text for a scrape: rows, bytes, runs and seconds of every
source and view, lag, delay, and states; then the engine's. Does not know: how the work is done.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.catalogue.metrics import metrics_text
from barnabas.engine.places.place import PlaceUnavailable
from barnabas.engine.timeline import CurrentState, Kind, State, Timeline, TimelineError, Total

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "barnabas_pipeline"
ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Sample = tuple[Mapping[str, str], float]


def text(pipeline: str, timeline: Timeline) -> str:
    """One scrape."""
    totals, states = timeline.totals(), timeline.states()
    lines: list[str] = []
    for name, kind, help_text, samples in families(totals, states):
        lines.append(f"# HELP {PREFIX}_{name} {help_text}")
        lines.append(f"# TYPE {PREFIX}_{name} {kind}")
        for labels, value in samples:
            lines.append(f"{PREFIX}_{name}{{{labelled({'pipeline': pipeline, **labels})}}} {value:.10g}")
    return "\n".join(lines) + "\n"


def labelled(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{value.translate(ESCAPES)}"' for name, value in labels.items())


def families(
    totals: Iterable[Total], states: Iterable[CurrentState]
) -> Iterator[tuple[str, str, str, list[Sample]]]:
    totals = list(totals)
    sources = [total for total in totals if total.kind == Kind.SOURCE]
    rows: list[Sample] = []
    for total in sources:
        for outcome, count in (
            ("in", total.rows_in),
            ("accepted", total.rows_out),
            ("duplicate", total.duplicates),
            ("quarantined", total.quarantined),
            ("late", total.late),
        ):
            rows.append(({"source": total.name, "outcome": outcome}, count))
    yield "rows_total", "counter", "Rows of a source, by what became of them.", rows
    size: list[Sample] = [({"source": total.name}, total.bytes_in) for total in sources]
    yield "bytes_total", "counter", "Bytes read from a source.", size
    yield "lag_rows", "gauge", "Rows that waited in the source after its last batch.", last(sources, "lag")
    yield (
        "velocity_rows_per_second",
        "gauge",
        "Rows a second in the last batch of a source.",
        last(sources, "velocity"),
    )
    runs: list[Sample] = []
    for total in totals:
        labels = {"kind": total.kind, "name": total.name}
        runs.append(({**labels, "result": "ok"}, total.runs - total.failures))
        runs.append(({**labels, "result": "failed"}, total.failures))
    yield "runs_total", "counter", "Runs of each part.", runs
    seconds: list[Sample] = [({"kind": each.kind, "name": each.name}, each.seconds) for each in totals]
    yield "run_seconds_total", "counter", "Seconds that each part worked.", seconds
    yield (
        "last_run_timestamp_seconds",
        "gauge",
        "When a part ended its last run.",
        [
            ({"kind": each.kind, "name": each.name}, each.last.ended)
            for each in totals
            if each.last is not None
        ],
    )
    views = [total for total in totals if total.kind in (Kind.VIEW_SPEED, Kind.VIEW_BATCH)]
    yield "delay_seconds", "gauge", "Age of the newest event in a view after a run.", last(views, "delay_s")
    yield (
        "up",
        "gauge",
        "1 where a part is in this state.",
        [
            ({"kind": each.kind, "name": each.name, "state": str(state)}, float(each.state == state))
            for each in states
            for state in State
        ],
    )


def last(totals: Iterable[Total], field: str) -> list[Sample]:
    return [
        ({"kind": each.kind, "name": each.name}, float(getattr(each.last, field)))
        for each in totals
        if each.last is not None
    ]


def engine_text(catalogue: Catalogue | None) -> str:
    """Metrics of all applications at the pipeline's place; none while the place does not answer."""
    if catalogue is None:
        return ""
    try:
        return metrics_text(catalogue)
    except PlaceUnavailable:
        return ""


class NoEndpoint(Exception):
    """The endpoint cannot listen; the message says why."""


class Endpoint:
    """Serves `GET /metrics` in a thread."""

    def __init__(
        self, pipeline: str, timeline: Timeline, host: str, port: int, catalogue: Catalogue | None = None
    ) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path.partition("?")[0] not in ("/metrics", "/"):
                    self.send_error(404)
                    return
                try:
                    body = (text(pipeline, timeline) + engine_text(catalogue)).encode()
                except TimelineError as error:
                    self.send_error(503, str(error).encode("ascii", "replace").decode())
                    return
                self.send_response(200)
                self.send_header("Content-Type", CONTENT_TYPE)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Do not log scrapes."""

        try:
            self._server = ThreadingHTTPServer((host, port), Handler)
        except OSError as error:
            raise NoEndpoint(f"metrics cannot be served on {host}:{port}: {error.strerror}") from error
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
