"""The text of a scrape, read with Prometheus' parser and compared with Kafka's MBeans."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from barnabas.broker.metrics import Metrics
from barnabas.broker.metrics.metrics import ROTATE_AFTER_S, TOPIC_COUNTERS
from barnabas.broker.metrics.request_tables import PHASES, request_names
from barnabas.metrics.exposition import Page
from barnabas.protocol import ApiKey
from barnabas.protocol.apis import APIS

# Domain, type and name of the MBeans of Apache Kafka 4.3.1.
MBEANS = {
    tuple(line.split(" ")) for line in (Path(__file__).parent / "kafka_mbeans.txt").read_text().splitlines()
}

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def scrape(metrics: Metrics, dialect: str = "jmx") -> Samples:
    metrics.forget_old_values()
    text = "".join(Page(metrics.registry, dialect).parts())
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
    assert metrics.api(1, 9) is not metrics.api(1, 9, is_follower=True)


def test_requests_show_by_version_and_their_times_together() -> None:
    metrics = Metrics()
    metrics.api(ApiKey.PRODUCE, 9).observe(1_000_000)
    metrics.api(ApiKey.PRODUCE, 10).observe(3_000_000)
    samples = scrape(metrics)
    assert value(samples, "kafka_network_requestmetrics_requests_total", request="Produce", version="9") == 1
    assert value(samples, "kafka_network_requestmetrics_totaltimems_count", request="Produce") == 2
    assert value(samples, "kafka_network_requestmetrics_totaltimems_sum", request="Produce") == 4
    p99 = value(samples, "kafka_network_requestmetrics_totaltimems", request="Produce", quantile="0.99")
    assert p99 == pytest.approx(3, rel=1 / 32)


def test_phases_add_up_and_requests_without_a_phase_count_as_zeros() -> None:
    metrics = Metrics()
    api = metrics.api(ApiKey.JOIN_GROUP, 9)
    for _ in range(9):
        api.observe(2_000_000)
    api.observe_wait(1_000_000, 50_000_000)
    samples = scrape(metrics)
    name = "kafka_network_requestmetrics_"
    for phase in ("totaltimems", "localtimems", "remotetimems", "requestqueuetimems", "throttletimems"):
        assert value(samples, f"{name}{phase}_count", request="JoinGroup") == 10
    assert value(samples, f"{name}totaltimems_sum", request="JoinGroup") == 9 * 2 + 51
    assert value(samples, f"{name}localtimems_sum", request="JoinGroup") == 9 * 2 + 1
    assert value(samples, f"{name}remotetimems_sum", request="JoinGroup") == 50
    assert value(samples, f"{name}remotetimems", request="JoinGroup", quantile="0.50") == 0
    assert value(samples, f"{name}remotetimems", request="JoinGroup", quantile="0.99") == pytest.approx(
        50, rel=1 / 32
    )


def test_errors_show_by_name_and_writes_that_succeeded_count_as_none() -> None:
    metrics = Metrics()
    metrics.api(ApiKey.HEARTBEAT, 4).count_error(0)
    metrics.api(ApiKey.HEARTBEAT, 4).count_error(25, 2)
    metrics.api(ApiKey.PRODUCE, 9).count_error(10)
    topic = metrics.topic("t")
    topic.produce_requests, topic.refused_produce_requests, topic.own_appends = 9, 1, 2
    samples = scrape(metrics)
    name = "kafka_network_requestmetrics_errors_total"
    assert value(samples, name, request="Heartbeat", error="NONE") == 1
    assert value(samples, name, request="Heartbeat", error="UNKNOWN_MEMBER_ID") == 2
    assert value(samples, name, request="Produce", error="NONE") == 6
    assert value(samples, name, request="Produce", error="MESSAGE_TOO_LARGE") == 1


def test_fetches_show_in_total_and_for_consumers_and_followers() -> None:
    metrics = Metrics()
    metrics.api(ApiKey.FETCH, 17).observe(1)
    metrics.api(ApiKey.FETCH, 17, is_follower=True).observe(1)
    samples = scrape(metrics)
    for request, count in (("Fetch", 2), ("FetchConsumer", 1), ("FetchFollower", 1)):
        assert value(samples, "kafka_network_requestmetrics_totaltimems_count", request=request) == count


def test_version_0_of_a_request_that_had_another_name_shows_under_both() -> None:
    metrics = Metrics()
    metrics.api(ApiKey.LIST_CONFIG_RESOURCES, 0).observe(1)
    metrics.api(ApiKey.LIST_CONFIG_RESOURCES, 1).observe(1)
    samples = scrape(metrics)
    for request, count in (("ListConfigResources", 2), ("ListClientMetricsResources", 1)):
        assert value(samples, "kafka_network_requestmetrics_totaltimems_count", request=request) == count


def test_old_times_leave_the_percentiles_and_stay_in_the_count() -> None:
    now_s = [0.0]
    metrics = Metrics(lambda: now_s[0])
    metrics.api(ApiKey.METADATA).observe(10**9)
    for _ in range(3):
        now_s[0] += ROTATE_AFTER_S
        samples = scrape(metrics)
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
    ours = {
        name
        for key in APIS
        for is_follower in (False, True)
        for version in (0, 1)
        for name in request_names(key, is_follower, version)
    }
    assert ours - known == set()
    for name in ("RequestsPerSec", "ErrorsPerSec", *PHASES):
        assert ("kafka.network", "RequestMetrics", name) in MBEANS
