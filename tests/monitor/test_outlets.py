"""Outlets of a real broker, each with a receiver that speaks its protocol."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until

from .receivers import OtlpReceiver, TcpReceiver, UdpReceiver, opened

RECORDS = 20
BYTES_IN = "kafka_server_brokertopicmetrics_bytesin_total"
MESSAGES = "kafka_server_brokertopicmetrics_messagesin_total"
REPORTERS = (
    "org.apache.kafka.common.metrics.JmxReporter,graphite,statsd,cloudwatch,otlp,"
    f"{__package__}.own_reporter:Remembering"
)


@dataclass
class World:
    broker: Broker
    graphite: TcpReceiver
    statsd: UdpReceiver
    otlp: OtlpReceiver
    emf: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    graphite, statsd, otlp = TcpReceiver(), UdpReceiver(), OtlpReceiver()
    emf = tmp_path_factory.mktemp("emf") / "metrics.jsonl"
    settings = {
        "metric.reporters": REPORTERS,
        "barnabas.outlets.interval.ms": 300,
        "barnabas.outlets.labels": "env=test",
        "barnabas.outlets.exclude": "kafka.log:*;kafka.controller:type=KafkaController,name=Global*",
        "barnabas.graphite.port": graphite.port,
        "barnabas.statsd.port": statsd.port,
        "barnabas.cloudwatch.target": f"file:{emf}",
        "barnabas.otlp.endpoint": f"http://127.0.0.1:{otlp.port}",
        "barnabas.otlp.headers": "api-key=secret,team=a",
    }
    with opened(graphite, statsd, otlp), Broker(overrides=settings) as broker:
        broker.create_topic("orders.eu", partitions=1)
        wait_until(lambda: otlp.metrics, what="the first report")
        producer = Producer({"bootstrap.servers": broker.bootstrap})
        for number in range(RECORDS):
            producer.produce("orders.eu", b"x" * 100, key=str(number))
        producer.flush(10)
        wait_until(lambda: newest(otlp, MESSAGES, "orders.eu") == RECORDS, what="a report with all records")
        yield World(broker, graphite, statsd, otlp, emf)


def newest(otlp: OtlpReceiver, name: str, topic: str) -> float | None:
    metric = otlp.metrics.get(name)
    for point in metric.sum.data_points if metric is not None else ():
        if any(each.key == "topic" and each.value.string_value == topic for each in point.attributes):
            return float(point.as_double)
    return None


def test_opentelemetry_gets_counters_under_the_names_of_prometheus(world: World) -> None:
    found = world.otlp.metrics[BYTES_IN]
    assert found.sum.is_monotonic and found.sum.aggregation_temporality == 2
    assert found.description == "Bytes of records produced."
    point = found.sum.data_points[0]
    assert 0 < point.start_time_unix_nano < point.time_unix_nano
    assert world.otlp.resource["service.name"] == "barnabas"
    assert world.otlp.resource["service.instance.id"] == "1"
    assert len(world.otlp.resource["kafka.cluster.id"]) == 22
    assert world.otlp.resource["env"] == "test"


def test_opentelemetry_gets_percentiles_as_gauges_and_no_excluded_mbean(world: World) -> None:
    times = world.otlp.metrics["kafka_network_requestmetrics_totaltimems"].gauge.data_points
    quantiles = {
        each.value.string_value for point in times for each in point.attributes if each.key == "quantile"
    }
    assert quantiles == {"0.50", "0.75", "0.95", "0.98", "0.99", "0.999"}
    names = set(world.otlp.metrics)
    assert "kafka_controller_kafkacontroller_activecontrollercount" in names
    assert not [
        name for name in names if name.startswith(("kafka_log_", "kafka_controller_kafkacontroller_global"))
    ]
    assert not [name for name in names if name.startswith("kafka_cluster_partition")], "off unless asked for"


def test_headers_of_otlp_requests_are_sent(world: World) -> None:
    assert world.otlp.headers[-1]["api-key"] == "secret"
    assert world.otlp.headers[-1]["team"] == "a"


def test_graphite_gets_paths_of_mbeans(world: World) -> None:
    path = re.compile(
        r"barnabas\.[\w-]{22}\.1\.test\.kafka\.server\.BrokerTopicMetrics\.MessagesInPerSec"
        r"\.orders_eu\.Count (\d+) \d{10}"
    )

    def counts() -> list[int]:
        return [int(found[1]) for line in world.graphite.lines if (found := path.fullmatch(line))]

    wait_until(lambda: counts() and counts()[-1] == RECORDS, what="the count of records in Graphite")
    assert all(re.fullmatch(r"[\w.\-]+ \S+ \d+", line) for line in world.graphite.lines)


def test_statsd_gets_growth_with_datadogs_tags(world: World) -> None:
    def grown() -> list[int]:
        wanted = [
            line for line in world.statsd.lines if line.startswith(MESSAGES) and "topic:orders.eu" in line
        ]
        return [int(line.split(":", 1)[1].split("|")[0]) for line in wanted]

    wait_until(lambda: sum(grown()) == RECORDS, what="growth of all records")
    assert all(len(datagram) <= 1432 for datagram in world.statsd.datagrams)
    gauge = next(line for line in world.statsd.lines if "activecontrollercount" in line)
    assert re.fullmatch(r"[a-z_]+:1\|g\|#cluster:[\w-]{22},node:1,env:test", gauge)


def test_cloudwatch_gets_lines_in_the_embedded_format(world: World) -> None:
    def documents() -> list[Any]:
        return [
            json.loads(line)
            for line in world.emf.read_text().splitlines(keepends=True)
            if line.endswith("\n")
        ]

    def of_topic() -> list[Any]:
        return [each for each in documents() if each.get("topic") == "orders.eu" and MESSAGES in each]

    wait_until(lambda: sum(each[MESSAGES] for each in of_topic()) == RECORDS, what="growth of all records")
    for each in documents():
        [directive] = each["_aws"]["CloudWatchMetrics"]
        assert directive["Namespace"] == "Barnabas" and len(directive["Metrics"]) <= 100
        [dimensions] = directive["Dimensions"]
        assert {"cluster", "node", "env"} <= set(dimensions) and len(dimensions) <= 30
        assert all(isinstance(each[name], str) for name in dimensions)
        assert all(isinstance(each[metric["Name"]], int | float) for metric in directive["Metrics"])


def test_a_reporter_of_ones_own_gets_settings_and_samples(world: World) -> None:
    from .own_reporter import Remembering

    assert Remembering.settings["node.id"] == 1
    assert Remembering.values["kafka.controller:type=KafkaController,name=ActiveControllerCount"] == 1


def test_a_receiver_that_is_away_costs_one_log_line(caplog: pytest.LogCaptureFixture) -> None:
    """The broker serves clients while Graphite is away, and reports again when it is back."""
    graphite = TcpReceiver()
    port = graphite.port
    graphite.close()
    settings = {
        "metric.reporters": "graphite",
        "barnabas.outlets.interval.ms": 100,
        "barnabas.graphite.port": port,
        "barnabas.graphite.protocol": "pickle",
        "barnabas.graphite.tags": "true",
    }
    with Broker(overrides=settings) as broker:
        wait_until(lambda: "the reporter graphite failed" in caplog.text, what="a line about the failure")
        broker.create_topic("still-served")
        graphite = TcpReceiver(port)

        def found() -> list[tuple[str, tuple[float, float]]]:  # a report comes in several parts
            return [each for each in list(graphite.pickles) if "activecontroller" in each[0]]

        with opened(graphite):
            wait_until(found, what="a report after the receiver came back")
            path, (time_s, value) = found()[0]
    assert caplog.text.count("the reporter graphite failed") == 1
    assert re.fullmatch(
        r"barnabas\.kafka_controller_kafkacontroller_activecontrollercount;cluster=[\w-]{22};node=1", path
    )
    assert value == 1 and time_s > 1_600_000_000


def test_metrics_go_over_grpc_too() -> None:
    otlp = OtlpReceiver(over_grpc=True)
    settings = {
        "metric.reporters": "otlp",
        "barnabas.outlets.interval.ms": 100,
        "barnabas.otlp.protocol": "grpc",
        "barnabas.otlp.endpoint": f"http://127.0.0.1:{otlp.port}",
        "barnabas.otlp.headers": "api-key=secret",
    }
    with opened(otlp), Broker(overrides=settings):
        wait_until(lambda: "kafka_controller_kafkacontroller_activecontrollercount" in otlp.metrics)
        assert otlp.headers[-1]["api-key"] == "secret"


def test_metrics_that_clients_push_go_on_to_outlets(world: World) -> None:
    broker = world.broker
    command = "client-metrics --alter --name all --metrics org.apache.kafka --interval 100 --bootstrap-server"
    subprocess.run([sys.executable, "-m", "barnabas", *command.split(), broker.bootstrap], check=True)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "pushing", "log_level": 0})
    producer.produce("orders.eu", b"x")
    producer.flush(10)

    def pushed() -> list[str]:
        found = []
        for name, metric in world.otlp.metrics.items():
            if name.startswith("org_apache_kafka_"):
                points = [*metric.sum.data_points, *metric.gauge.data_points]
                for point in points:
                    given = {each.key: each.value.string_value for each in point.attributes}
                    if given.get("client_id") == "pushing":
                        assert len(given["client_instance_id"]) == 22
                        found.append(name)
        return found

    wait_until(pushed, 30, "metrics of the producer")


def test_an_outlet_may_be_named_while_the_broker_runs() -> None:
    graphite = TcpReceiver()
    settings = {"barnabas.outlets.interval.ms": 100, "barnabas.graphite.port": graphite.port}
    with opened(graphite), Broker(overrides=settings) as broker:
        command = (
            "configs --alter --entity-type brokers --entity-default --add-config metric.reporters=graphite"
        )
        arguments = [*command.split(), "--bootstrap-server", broker.bootstrap]
        subprocess.run([sys.executable, "-m", "barnabas", *arguments], check=True, capture_output=True)
        wait_until(lambda: graphite.lines, what="lines of the new outlet")
