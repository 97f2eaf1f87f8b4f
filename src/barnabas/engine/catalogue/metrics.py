"""Metrics of the catalogue for Prometheus.

In: a catalogue. Out: a collector for a registry of prometheus-client, and an endpoint that serves it. Each
scrape reads the catalogue once. Labels are names of applications, programs and queries, which are bounded.
Does not know: HTTP, Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, UnknownMetricFamily
from prometheus_client.registry import Collector

from barnabas.engine.catalogue.catalogue import ApplicationEntry, Catalogue
from barnabas.engine.catalogue.statuses import ApplicationState, QueryState, QueryStatus

PREFIX = "barnabas_engine"
OF_QUERY = ("application", "program", "query")
STREAMS_CLIENT = "kafka_streams_stream_metrics"
DEAD = (QueryState.FAILED, QueryState.LOST)
GAUGES = (
    ("lag_rows", "Rows that wait in the source of a query.", "lag"),
    ("delay_seconds", "Age of the newest event of a query.", "delay_s"),
    ("rows_per_second", "Rows a second in the last batch of a query.", "rows_per_second"),
    ("batch", "Number of the last batch of a query.", "batch"),
    ("last_error_timestamp_seconds", "When a query failed last.", "last_error_at"),
)
COUNTERS = (
    ("rows_in", "Rows that a query has read since its process started.", "rows_in"),
    ("rows_out", "Rows that a query has written since its process started.", "rows_out"),
    ("batches", "Batches of a query since its process started.", "batches"),
    ("errors", "Failures of a query since its process started.", "errors"),
)


class CatalogueCollector(Collector):
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue

    def collect(self) -> Iterator[Metric]:
        entries = self._catalogue.applications()
        yield states_of_applications(entries)
        yield restarts(entries)
        yield states_of_queries(entries)
        for name, text, field in GAUGES:
            gauge = GaugeMetricFamily(f"{PREFIX}_query_{name}", text, labels=OF_QUERY)
            for labels, value in values(entries, field):
                gauge.add_metric(labels, value)
            yield gauge
        for name, text, field in COUNTERS:
            counter = CounterMetricFamily(f"{PREFIX}_query_{name}", text, labels=OF_QUERY)
            for labels, value in values(entries, field):
                counter.add_metric(labels, value)
            yield counter

        yield from metrics_of_queries(entries)
        yield states_of_streams(entries)

    def describe(self) -> Iterable[Metric]:
        return ()  # or the registry would read the catalogue when the collector is registered


def values(entries: list[ApplicationEntry], field: str) -> Iterator[tuple[list[str], float]]:
    for entry in entries:
        for program, query in entry.queries():
            value = getattr(query, field)
            if value is not None:
                yield [entry.name, program.program, query.query], float(value)


def metrics_of_queries(entries: list[ApplicationEntry]) -> Iterator[Metric]:
    """Metrics that queries report under names of their own; those that end with `_total` are counters."""
    families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
    for entry in entries:
        for program, query in entry.queries():
            for name, parts in query.metrics.items():
                family = families.get(name)
                if family is None:
                    kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                    family = families[name] = kind(name, "Reported by a query.", labels=(*OF_QUERY, "part"))
                for part, value in parts.items():
                    family.add_metric([entry.name, program.program, query.query, part], float(value))
    yield from families.values()


def states_of_applications(entries: list[ApplicationEntry]) -> Metric:
    family = GaugeMetricFamily(
        f"{PREFIX}_application_state",
        "1 for the state that an application is in.",
        labels=("application", "host", "state"),
    )
    for entry in entries:
        for state in ApplicationState:
            labels = [entry.name, entry.status.host, str(state)]
            family.add_metric(labels, float(entry.status.state == state))
    return family


def restarts(entries: list[ApplicationEntry]) -> Metric:
    family = CounterMetricFamily(
        f"{PREFIX}_program_restarts", "Restarts of a program by its supervisor.", labels=OF_QUERY[:2]
    )
    for entry in entries:
        for program in entry.status.programs:
            family.add_metric([entry.name, program], entry.restarts_of(program))
    return family


def states_of_queries(entries: list[ApplicationEntry]) -> Metric:
    family = GaugeMetricFamily(
        f"{PREFIX}_query_state", "1 for the state that a query is in.", labels=(*OF_QUERY, "state")
    )
    for entry in entries:
        for program, query in entry.queries():
            for state in QueryState:
                labels = [entry.name, program.program, query.query, str(state)]
                family.add_metric(labels, float(query.state == state))
    return family


def states_of_streams(entries: list[ApplicationEntry]) -> Metric:
    """Applications of Streams under the names that Confluent's rules give to Kafka Streams' clients. A query
    counts as a thread."""
    family = UnknownMetricFamily(STREAMS_CLIENT, "State and threads of a client of Kafka Streams.")
    for entry in entries:
        states = [query.state for _, query in entry.queries() if is_of_streams(query)]
        if not states:
            continue
        client = {"client_id": entry.name}
        failed = sum(state in DEAD for state in states)
        alive = sum(state not in (*DEAD, QueryState.STOPPED) for state in states)
        word = "RUNNING" if alive else "ERROR" if failed else "NOT_RUNNING"
        family.add_sample(STREAMS_CLIENT, {**client, "state": word}, 1)
        family.add_sample(STREAMS_CLIENT, {**client, "application_id": entry.name}, 1)
        family.add_sample(STREAMS_CLIENT, {**client, "alive_stream_threads": str(alive)}, alive)
        family.add_sample(STREAMS_CLIENT, {**client, "failed_stream_threads": str(failed)}, failed)
    return family


def is_of_streams(query: QueryStatus) -> bool:
    return any(name.startswith("kafka_streams_") for name in query.metrics)


def registry_of(catalogue: Catalogue) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(CatalogueCollector(catalogue))
    return registry


def metrics_text(catalogue: Catalogue) -> str:
    """One scrape."""
    return generate_latest(registry_of(catalogue)).decode()


class Endpoint:
    """Serves `GET /metrics` in a thread."""

    def __init__(self, catalogue: Catalogue, host: str, port: int) -> None:
        self._server, self._thread = start_http_server(port, host, registry_of(catalogue))
        self.port = int(self._server.server_port)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
