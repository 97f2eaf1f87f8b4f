"""`jmx`: the samples that an MBean name selects, and the tool on a real endpoint."""

from collections.abc import Iterator

import pytest

from barnabas.cli.metrics.jmx import now
from barnabas.cli.metrics.prometheus_text import ObjectName, parse_samples
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

from .conftest import RunTool

SCRAPE = """\
# HELP kafka_server_brokertopicmetrics_bytesin_total Bytes of records produced.
# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total 30
kafka_server_brokertopicmetrics_bytesin_total{topic="a"} 10
kafka_server_brokertopicmetrics_bytesin_total{topic="say \\"b\\""} 20
# TYPE kafka_network_requestmetrics_totaltimems summary
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.50"} 1.5
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.999"} 9.5
kafka_network_requestmetrics_totaltimems_sum{request="Produce"} 12
kafka_network_requestmetrics_totaltimems_count{request="Produce"} 4
# TYPE kafka_log_log_size gauge
kafka_log_log_size{topic="a",partition="0"} 77
kafka_server_replicamanager_partitioncount 3
"""


def rows(name: str) -> dict[str, str]:
    query = ObjectName.parse(name)
    return {
        f"{query.shown(sample)}:{sample.attribute}": sample.value
        for sample in parse_samples(SCRAPE)
        if query.matches(sample)
    }


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (
            "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec",
            {"kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec:Count": "30"},
        ),
        (
            "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=a",
            {"kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=a:Count": "10"},
        ),
        (
            "kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=say*",
            {'kafka.server:type=BrokerTopicMetrics,name=BytesInPerSec,topic=say "b":Count': "20"},
        ),
        (
            "kafka.network:type=RequestMetrics,name=TotalTimeMs,*",
            {
                "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce:50thPercentile": "1.5",
                "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce:999thPercentile": "9.5",
                "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce:Sum": "12",
                "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce:Count": "4",
            },
        ),
        (
            "kafka.log:type=Log,name=Size,topic=*,partition=0",
            {"kafka.log:type=Log,name=Size,topic=a,partition=0:Value": "77"},
        ),
        (
            "kafka.server:type=ReplicaManager,*",
            {"kafka_server_replicamanager_partitioncount:Value": "3"},
        ),
        ("kafka.*:type=Log,*", {'kafka_log_log_size{topic="a",partition="0"}:Value': "77"}),
        ("kafka.server:type=ReplicaManager,name=LeaderCount", {}),
    ],
)
def test_names_of_mbeans_find_their_samples(name: str, found: dict[str, str]) -> None:
    assert rows(name) == found


@pytest.mark.parametrize("name", ["", "kafka.server", "kafka.server:", "kafka.server:type", "a:=b"])
def test_a_text_that_is_no_mbean_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no name of an MBean"):
        ObjectName.parse(name)


@pytest.fixture(scope="module")
def metrics_url() -> Iterator[str]:
    [port] = free_ports(1)
    with Broker(overrides={"barnabas.metrics.port": port}) as broker:
        broker.create_topic("measured", 2)
        yield f"http://127.0.0.1:{port}/metrics"


TIME = "RequestMetrics,name=TotalTimeMs"
PARTITIONS = ("--object-name", "kafka.server:type=ReplicaManager,name=PartitionCount", "--one-time")


def test_one_row_and_its_header(metrics_url: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-jmx", "--jmx-url", metrics_url, *PARTITIONS)
    assert ran.status == 0
    header, row = ran.lines
    assert header == '"time","kafka.server:type=ReplicaManager,name=PartitionCount:Value"'
    assert row.split(",")[1] == "2"


@pytest.mark.parametrize(
    ("report_format", "line"),
    [
        ("properties", "kafka.server:type=ReplicaManager,name=PartitionCount:Value=2"),
        ("csv", 'kafka.server:type=ReplicaManager,name=PartitionCount:Value,"2"'),
        ("TSV", "kafka.server:type=ReplicaManager,name=PartitionCount:Value\t2"),
    ],
)
def test_other_formats_print_a_line_for_each_value(
    report_format: str, line: str, metrics_url: str, run_tool: RunTool
) -> None:
    ran = run_tool("kafka-jmx", "--jmx-url", metrics_url, *PARTITIONS, "--report-format", report_format)
    assert ran.lines[0].startswith("time")
    assert ran.lines[1:] == [line]


def test_without_names_everything_is_shown(metrics_url: str, run_tool: RunTool) -> None:
    shown = run_tool(
        "barnabas", "jmx", "--jmx-url", metrics_url, "--reporting-interval", "-1", "--report-format", "tsv"
    ).lines
    assert "kafka.log:type=Log,name=Size,topic=measured,partition=1:Value\t0" in shown
    assert any(line.startswith("kafka.server:type=raft-metrics:current-state\tleader") for line in shown)
    assert len(shown) > 1000


def test_a_meter_and_a_histogram_have_all_attributes(metrics_url: str, run_tool: RunTool) -> None:
    options = "--one-time", "--report-format", "tsv"
    idle = "KafkaRequestHandlerPool,name=RequestHandlerAvgIdlePercent"
    for name in ("BrokerTopicMetrics,name=BytesInPerSec", idle):
        mbean = f"kafka.server:type={name}"
        ran = run_tool("kafka-jmx", "--jmx-url", metrics_url, "--object-name", mbean, *options)
        found = {line.split("\t")[0].rpartition(":")[2] for line in ran.lines[1:]}
        assert found == {
            "Count", "EventType", "RateUnit", "MeanRate", "OneMinuteRate", "FiveMinuteRate",
            "FifteenMinuteRate",
        }  # fmt: skip
    asked = "--object-name", f"kafka.network:type={TIME},*", "--attributes", "Count,Max,999thPercentile"
    ran = run_tool("kafka-jmx", "--jmx-url", metrics_url, *asked, *options)
    name = f"kafka.network:type={TIME},request=CreateTopics:"
    assert {f"{name}{each}" for each in ("Count", "Max", "999thPercentile")} <= {
        line.split("\t")[0] for line in ran.lines
    }


def test_the_page_of_a_jmx_exporter_serves_as_well(metrics_url: str, run_tool: RunTool) -> None:
    """A URL with a query is read as a Prometheus page."""
    ran = run_tool("kafka-jmx", "--jmx-url", f"{metrics_url}?partitions=true", *PARTITIONS)
    assert ran.lines[1].split(",")[1] == "2"


def test_attributes_are_chosen(metrics_url: str, run_tool: RunTool) -> None:
    ran = run_tool(
        "kafka-jmx",
        *(
            "--jmx-url",
            metrics_url,
            "--one-time",
            "--report-format",
            "tsv",
            "--attributes",
            "Count,99thPercentile",
        ),
        *("--object-name", "kafka.network:type=RequestMetrics,name=TotalTimeMs,request=CreateTopics"),
    )
    attributes = [line.split("\t")[0].rpartition(":")[2] for line in ran.lines[1:]]
    assert attributes == ["99thPercentile", "Count"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--object-name", "kafka.server:type=Nothing,name=Here"),
            "No matched attributes for the queried objects",
        ),
        (("--object-name", "nothing"), "--object-name: 'nothing' is no name of an MBean"),
        (
            ("--jmx-url", "service:jmx:rmi:///jndi/rmi://:9999/jmxrmi"),
            "there is no JMX: a broker serves its metrics",
        ),
        (("--jmx-url", "ftp://x"), "--jmx-url ftp://x: the URL must start with http://"),
    ],
)
def test_an_error_is_one_line(
    arguments: tuple[str, ...], problem: str, metrics_url: str, run_tool: RunTool
) -> None:
    ran = run_tool("kafka-jmx", "--jmx-url", metrics_url, "--one-time", *arguments)
    assert ran.status == 1
    assert ran.errors.startswith(problem)


def test_an_unreachable_endpoint_is_reported(run_tool: RunTool) -> None:
    [port] = free_ports(1)
    ran = run_tool("kafka-jmx", "--jmx-url", f"http://127.0.0.1:{port}/metrics", "--one-time")
    assert (ran.status, ran.errors) == (
        1,
        f"Could not connect to http://127.0.0.1:{port}/metrics: connection refused\n",
    )


def test_a_missing_page_is_reported(metrics_url: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-jmx", "--jmx-url", f"{metrics_url}/nothing", "--one-time")
    assert (ran.status, " returned 404 " in ran.errors) == (1, True)


def test_times_have_the_format_of_java() -> None:
    assert len(now("yyyy-MM-dd HH:mm:ss,SSS")) == len("2026-01-01 00:00:00,000")
    assert now(None).isdigit()
