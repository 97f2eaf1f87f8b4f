"""The text of a scrape, read with Prometheus' parser and compared with Kafka's MBeans."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.metrics import Metrics
from barnabas.broker.metrics.kafka_names import counter_name, prometheus_name
from barnabas.broker.metrics.metrics import ROTATE_AFTER_MS, TOPIC_COUNTERS, request_names
from barnabas.protocol import ApiKey
from barnabas.protocol.apis import APIS

# Domain, type and name of the MBeans of Apache Kafka 4.3.1.
MBEANS = {
    tuple(line.split(" ")) for line in (Path(__file__).parent / "kafka_mbeans.txt").read_text().splitlines()
}

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(metrics: Metrics, now_ms: int = 0) -> Samples:
    text = "".join(line for family in metrics.families(now_ms) for line in family.lines())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[name, tuple(sorted(labels.items()))]


def test_traffic_shows_by_topic_and_in_total() -> None:
    metrics = Metrics()
    metrics.topic("a").bytes_in += 100
    metrics.topic("b").bytes_in += 20
    metrics.topic("a").messages_in += 3
    samples = scrape(metrics)
    assert value(samples, "kafka_server_brokertopicmetrics_bytesin_total", topic="a") == 100
    assert value(samples, "kafka_server_brokertopicmetrics_bytesin_total") == 120
    assert value(samples, "kafka_server_brokertopicmetrics_messagesin_total") == 3


def test_totals_keep_the_counts_of_deleted_topics() -> None:
    metrics = Metrics()
    metrics.topic("a").bytes_out += 100
    metrics.forget_topic("a")
    metrics.forget_topic("never there")
    samples = scrape(metrics)
    assert value(samples, "kafka_server_brokertopicmetrics_bytesout_total") == 100
    assert ("kafka_server_brokertopicmetrics_bytesout_total", (("topic", "a"),)) not in samples


def test_the_same_name_gets_the_same_counters() -> None:
    metrics = Metrics()
    assert metrics.topic("a") is metrics.topic("a")
    assert metrics.api(0, 9) is metrics.api(0, 9)
    assert metrics.api(0, 9) is not metrics.api(0, 10)


def test_requests_show_by_version_and_their_times_together() -> None:
    metrics = Metrics()
    metrics.api(ApiKey.PRODUCE, 9).observe(1_000_000)
    metrics.api(ApiKey.PRODUCE, 10).observe(3_000_000)
    samples = scrape(metrics)
    assert value(samples, "kafka_network_requestmetrics_requests_total", request="Produce", version="9") == 1
    assert value(samples, "kafka_network_requestmetrics_totaltimems_count", request="Produce") == 2
    assert value(samples, "kafka_network_requestmetrics_totaltimems_sum", request="Produce") == 4
    p99 = value(samples, "kafka_network_requestmetrics_totaltimems", request="Produce", quantile="0.99")
    assert p99 == pytest.approx(3, rel=0.125)


def test_fetches_show_in_total_and_for_consumers() -> None:
    metrics = Metrics()
    metrics.api(ApiKey.FETCH, 17).observe(1)
    samples = scrape(metrics)
    for request in ("Fetch", "FetchConsumer"):
        assert value(samples, "kafka_network_requestmetrics_totaltimems_count", request=request) == 1


def test_old_times_leave_the_percentiles_and_stay_in_the_count() -> None:
    metrics = Metrics()
    metrics.api(ApiKey.METADATA).observe(10**9)
    for scrapes in range(1, 4):
        samples = scrape(metrics, now_ms=scrapes * ROTATE_AFTER_MS)
    name = "kafka_network_requestmetrics_totaltimems"
    assert value(samples, name, request="Metadata", quantile="0.50") == 0
    assert value(samples, f"{name}_count", request="Metadata") == 1


def test_callbacks_run_at_each_scrape() -> None:
    metrics = Metrics()
    sizes = {"0": 10.0}
    metrics.gauge("kafka.server", "ReplicaManager", "PartitionCount", "Partitions.", lambda: len(sizes))
    metrics.gauges(
        "kafka.log",
        "Log",
        "Size",
        "Bytes of a log.",
        lambda: (({"topic": "t", "partition": index}, size) for index, size in sizes.items()),
    )
    assert value(scrape(metrics), "kafka_server_replicamanager_partitioncount") == 1
    sizes["1"] = 20.0
    samples = scrape(metrics)
    assert value(samples, "kafka_server_replicamanager_partitioncount") == 2
    assert value(samples, "kafka_log_log_size", topic="t", partition="1") == 20


def test_a_counter_by_callback_has_a_counters_name() -> None:
    metrics = Metrics()
    metrics.counter("kafka.server", "ReplicaManager", "IsrShrinksPerSec", "ISRs that shrank.", lambda: 4)
    assert value(scrape(metrics), "kafka_server_replicamanager_isrshrinks_total") == 4


def test_label_values_are_escaped() -> None:
    metrics = Metrics()
    odd = 'a"b\\c\nd'
    metrics.gauges("kafka.log", "LogManager", "x", "Odd.", lambda: [({"logDirectory": odd}, float("inf"))])
    assert value(scrape(metrics), "kafka_log_logmanager_x", logDirectory=odd) == float("inf")


def test_every_topic_counter_is_one_of_kafkas() -> None:
    for name, _ in TOPIC_COUNTERS.values():
        assert ("kafka.server", "BrokerTopicMetrics", name) in MBEANS


def test_requests_are_labelled_as_kafka_labels_them() -> None:
    known = set((Path(__file__).parent / "kafka_requests.txt").read_text().split())
    ours = {name for key in APIS for name in request_names(key)}
    assert ours - known == set()
    assert ("kafka.network", "RequestMetrics", "TotalTimeMs") in MBEANS
    assert ("kafka.network", "RequestMetrics", "RequestsPerSec") in MBEANS


def test_no_two_mbeans_get_the_same_name() -> None:
    names = [
        counter_name(*mbean) if mbean[2].endswith("PerSec") else prometheus_name(*mbean) for mbean in MBEANS
    ]
    assert len(set(names)) == len(names)
