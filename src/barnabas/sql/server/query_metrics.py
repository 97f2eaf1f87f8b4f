"""Metrics of persistent queries for Prometheus, on the node that runs them.

In: statuses of queries. Out: a collector: counts and the state of each query, and Kafka Streams' metrics of
its tasks, added up to one value for the query. Does not know: how queries run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from barnabas.engine.catalogue.statuses import together
from barnabas.sql.execution.port import QueryState, QueryStatus

PREFIX = "barnabas_sql_query"
LABELS = ("query", "application")
COUNTS: tuple[tuple[str, str, Callable[[QueryStatus], float]], ...] = (
    ("records_in", "Records that a query has read since it started on this node.", lambda each: each.records),
    ("records_out", "Records that it has written.", lambda each: each.outputs),
    ("dropped", "Rows that it left out.", lambda each: sum(each.dropped.values())),
)


class QueryCollector(Collector):
    def __init__(self, statuses: Callable[[], Sequence[QueryStatus]]) -> None:
        """`statuses`: of the queries that run on this node."""
        self._statuses = statuses

    def collect(self) -> Iterator[Metric]:
        queries = self._statuses()
        yield states(queries)
        for name, text, count in COUNTS:
            counter = CounterMetricFamily(f"{PREFIX}_{name}", text, labels=LABELS)
            for each in queries:
                counter.add_metric(labels_of(each), count(each))
            yield counter
        lag = GaugeMetricFamily(f"{PREFIX}_lag", "Records that wait in the topics of a query.", labels=LABELS)
        for each in queries:
            if each.lag is not None:
                lag.add_metric(labels_of(each), each.lag)
        yield lag
        yield from of_streams(queries)

    def describe(self) -> Iterable[Metric]:
        return ()


def labels_of(status: QueryStatus) -> list[str]:
    return [status.query_id, status.application_id]


def states(queries: Sequence[QueryStatus]) -> Metric:
    family = GaugeMetricFamily(
        f"{PREFIX}_state", "1 for the state that a query is in.", labels=(*LABELS, "state")
    )
    for each in queries:
        for state in QueryState:
            family.add_metric([*labels_of(each), str(state)], float(each.state == state))
    return family


def of_streams(queries: Sequence[QueryStatus]) -> Iterator[Metric]:
    families: dict[str, GaugeMetricFamily | CounterMetricFamily] = {}
    for each in queries:
        for name, parts in each.metrics.items():
            if not parts:
                continue
            family = families.get(name)
            if family is None:
                kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                family = families[name] = kind(name, "Of all tasks of a query.", labels=LABELS)
            family.add_metric(labels_of(each), together(name, list(parts.values())))
    yield from families.values()
