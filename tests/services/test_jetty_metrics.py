"""Requests and connections under the names of Confluent's services."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from barnabas.services.jetty_metrics import ConnectionCounts, JettyMetrics

BROKERS = {("GET", "/brokers"): "brokers.list+v2"}


def page_of(metrics: JettyMetrics) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(metrics)
    return {sample.name: sample.value for family in registry.collect() for sample in family.samples}


def test_requests_are_counted_together_and_by_endpoint() -> None:
    times = [0.0]
    connections = ConnectionCounts(opened=3, open=lambda: 2)
    metrics = JettyMetrics("kafka_rest", connections, lambda: 5.0, BROKERS, lambda: times[0])
    metrics.requests_max = 100
    metrics.ended("GET", "/brokers", 200, 0.010, 0, 300)
    metrics.ended("POST", "/topics/{topic}", 422, 0.100, 60, 40)
    connections.opened += 20
    times[0] = 10.0
    found = page_of(metrics)
    assert found["kafka_rest_jersey_metrics_request_count"] == 2
    assert found["kafka_rest_jersey_metrics_request_error_count"] == 1
    assert found["kafka_rest_jersey_metrics_request_rate"] == 0.2
    assert found["kafka_rest_jersey_metrics_brokers_list_v2_response_byte_rate"] == 30
    assert found["kafka_rest_jersey_metrics_brokers_list_v2_request_byte_rate"] == 0
    assert abs(found["kafka_rest_jersey_metrics_request_latency_99"] - 100) < 4
    assert abs(found["kafka_rest_jersey_metrics_brokers_list_v2_request_latency_99"] - 10) < 0.4
    assert found["kafka_rest_jetty_metrics_connections_active"] == 2
    assert found["kafka_rest_jetty_metrics_connections_opened_rate"] == 2
    assert found["kafka_rest_jetty_metrics_thread_pool_usage"] == 0.05


def test_percentiles_forget_what_is_two_minutes_old() -> None:
    times = [0.0]
    metrics = JettyMetrics("kafka_rest", ConnectionCounts(), lambda: 0.0, {}, lambda: times[0])
    metrics.ended("GET", "/", 200, 5.0, 0, 0)
    for second in (61.0, 122.0, 183.0):
        times[0] = second
        metrics.ended("GET", "/", 200, 0.001, 0, 0)
    found = page_of(metrics)
    assert found["kafka_rest_jersey_metrics_request_latency_99"] < 2
    assert found["kafka_rest_jersey_metrics_request_latency_max"] > 4000
