"""Each dialect names MBeans as the rules that it follows do, and no two of them get the same name."""

from pathlib import Path

import pytest

from barnabas.metrics import Kind, Registry, metric_of
from barnabas.metrics.dialects import DIALECTS, Shape
from barnabas.metrics.exposition import Page

MBEANS = [
    tuple(line.split(" "))
    for line in (Path(__file__).parents[1] / "broker/metrics/kafka_mbeans.txt").read_text().splitlines()
]


def shape(dialect: str, domain: str, type: str, name: str, kind: Kind, *tags: str) -> Shape:
    return DIALECTS[dialect].shape(metric_of(domain, type, name, kind, "Help.", tag_names=tags))


BYTES = ("kafka.server", "BrokerTopicMetrics", "BytesInPerSec", Kind.COUNTER)
IDLE = ("kafka.server", "KafkaRequestHandlerPool", "RequestHandlerAvgIdlePercent", Kind.COUNTER)
PROCESSOR_IDLE = ("kafka.network", "SocketServer", "NetworkProcessorAvgIdlePercent", Kind.GAUGE)
WATERMARK = ("kafka.server", "raft-metrics", "high-watermark", Kind.GAUGE)
STATE = ("kafka.server", "raft-metrics", "current-state", Kind.TEXT)
CONNECTIONS = ("kafka.server", "socket-server-metrics", "connection-count", Kind.GAUGE)
QUOTA = ("kafka.server", "Produce", "byte-rate", Kind.GAUGE)


BOTH_BYTES = "brokertopicmetrics_bytesin_total"
BOTH_IDLE = "kafkarequesthandlerpool_requesthandleravgidle_percent"
CONFLUENT_IDLE = "kafkarequesthandlerpool_requesthandleravgidlepercent_oneminuterate"
BOTH_CONNECTIONS = "socket_server_metrics_connection_count"
RAFT = "raft_metrics_"


@pytest.mark.parametrize(
    ("metric", "names"),
    [
        (BYTES, (BOTH_BYTES, BOTH_BYTES, "brokertopicmetrics_bytesinpersec")),
        (IDLE, (BOTH_IDLE, BOTH_IDLE, CONFLUENT_IDLE)),
        (WATERMARK, (f"{RAFT}high_watermark", "raftmetrics_high_watermark", f"{RAFT}high_watermark")),
        (STATE, (f"{RAFT}current_state_info", "raftmetrics_current_state", f"{RAFT}current_state_info")),
        (CONNECTIONS, (BOTH_CONNECTIONS, BOTH_CONNECTIONS, "socketservermetrics_connection_count")),
        (QUOTA, ("quota_byte_rate", "quota_byte_rate", "produce_byte_rate")),
    ],
    ids=["meter", "idle", "raft", "state", "sockets", "quota"],
)
def test_a_name_follows_the_rules_of_its_dialect(
    metric: tuple[str, str, str, Kind], names: tuple[str, ...]
) -> None:
    assert tuple(shape(dialect, *metric).name for dialect in DIALECTS) == tuple(
        f"kafka_server_{name}" for name in names
    )


def test_percentages_differ() -> None:
    assert [shape(dialect, *PROCESSOR_IDLE).name.rpartition("_")[2] for dialect in DIALECTS] == [
        "networkprocessoravgidlepercent", "percent", "networkprocessoravgidlepercent",
    ]  # fmt: skip


def test_connections_by_software_and_by_cipher_differ_in_strimzis_names() -> None:
    connections = ("kafka.server", "socket-server-metrics", "connections", Kind.GAUGE)
    assert shape("strimzi", *connections, "clientSoftwareName").name.endswith("_connections_software")
    assert shape("strimzi", *connections, "cipher").name.endswith("_connections_tls_info")
    for dialect in ("jmx", "confluent"):
        assert shape(dialect, *connections, "cipher").name.endswith("metrics_connections")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_two_mbeans_get_the_same_name(dialect: str) -> None:
    names = [
        shape(dialect, *mbean, Kind.COUNTER if mbean[2].endswith("PerSec") else Kind.GAUGE).name
        for mbean in MBEANS
    ]
    assert len(set(names)) == len(names)


def page(dialect: str, *names: str, with_details: bool = True) -> str:
    registry = Registry()
    sizes = metric_of("kafka.log", "Log", "Size", Kind.GAUGE, "Bytes.", is_detail=True)
    registry.add(sizes, lambda: [((("topic", "t"), ("partition", "0")), 5)])
    for kind in ("Produce", "Fetch"):
        quota = metric_of("kafka.server", kind, "byte-rate", Kind.GAUGE, "Bytes a second.")
        registry.add(quota, lambda: [((("user", "u"), ("client-id", "c")), 1.5)])
    registry.add(metric_of(*STATE, "State."), lambda: [((), "leader")])
    return "".join(Page(registry, dialect, names=names, with_details=with_details).parts())


def test_metrics_of_one_family_stand_together() -> None:
    assert page("jmx", "kafka_server_quota_byte_rate") == (
        "# HELP kafka_server_quota_byte_rate Bytes a second.\n"
        "# TYPE kafka_server_quota_byte_rate gauge\n"
        'kafka_server_quota_byte_rate{user="u",clientId="c",resource="Produce"} 1.5\n'
        'kafka_server_quota_byte_rate{user="u",clientId="c",resource="Fetch"} 1.5\n'
    )


def test_a_tag_without_a_value_is_no_part_of_an_mbeans_name() -> None:
    """As in Kafka: a quota of a client id has no user."""
    quota = metric_of("kafka.server", "Produce", "byte-rate", Kind.GAUGE, "Bytes a second.")
    assert quota.mbean((("user", ""), ("client-id", "c"))) == "kafka.server:type=Produce,client-id=c"


def test_a_text_is_a_label_of_a_sample_of_one() -> None:
    assert 'raft_metrics_current_state_info{state="leader"} 1\n' in page("jmx")
    assert 'raftmetrics_current_state{current_state="leader"} 1\n' in page("strimzi")


def test_partitions_can_be_left_out_and_asked_for() -> None:
    assert "kafka_log_log_size" in page("jmx")
    assert "kafka_log_log_size" not in page("jmx", with_details=False)
    assert page("jmx", "kafka_log_log_size", with_details=False).count("\n") == 3
