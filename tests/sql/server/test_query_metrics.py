"""Metrics of persistent queries: each query once, values of its tasks added up as their names mean."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.sql.execution.port import QueryState, QueryStatus
from barnabas.sql.server.query_metrics import QueryCollector

STREAM = "kafka_streams_stream_"
METRICS = {
    f"{STREAM}task_metrics_process_total": {"0_0": 3.0, "0_1": 4.0},
    f"{STREAM}thread_metrics_poll_latency_max": {"0": 5.0, "1": 9.0},
    f"{STREAM}thread_metrics_poll_latency_avg": {"0": 2.0, "1": 4.0},
    f"{STREAM}state_metrics_get_rate": {},
}


def page(*queries: QueryStatus) -> dict[str, list[tuple[dict[str, str], float]]]:
    registry = CollectorRegistry()
    registry.register(QueryCollector(lambda: queries))
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_a_query_shows_its_counts_its_state_and_its_tasks_together() -> None:
    running = QueryStatus(
        "CTAS_T_1", QueryState.RUNNING, "app_1", (), 7, 5, {"late": 2, "null key": 1}, 11, METRICS
    )
    failed = QueryStatus("CSAS_S_2", QueryState.ERROR, "app_2")
    found = page(running, failed)
    labels = {"query": "CTAS_T_1", "application": "app_1"}
    for name, value in (("records_in_total", 7), ("records_out_total", 5), ("dropped_total", 3), ("lag", 11)):
        assert (labels, value) in found[f"barnabas_sql_query_{name}"]
    assert len(found["barnabas_sql_query_lag"]) == 1  # of a query that does not run it is not known
    states = {(each["query"], each["state"]): value for each, value in found["barnabas_sql_query_state"]}
    assert [key for key, value in states.items() if value] == [
        ("CTAS_T_1", str(QueryState.RUNNING)),
        ("CSAS_S_2", str(QueryState.ERROR)),
    ]
    assert found[f"{STREAM}task_metrics_process_total"] == [(labels, 7)]
    assert found[f"{STREAM}thread_metrics_poll_latency_max"] == [(labels, 9)]
    assert found[f"{STREAM}thread_metrics_poll_latency_avg"] == [(labels, 3)]
    assert f"{STREAM}state_metrics_get_rate" not in found


def test_a_node_without_queries_has_a_page() -> None:
    assert set(page()) == set()
