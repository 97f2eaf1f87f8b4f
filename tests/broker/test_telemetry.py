"""Metrics of clients: subscriptions, receivers, and the broker's metrics page."""

from __future__ import annotations

import struct
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from barnabas.broker.metrics import otlp
from barnabas.protocol import NULL_UUID, ApiKey, ErrorCode
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from barnabas.protocol.messages.push_telemetry import PushTelemetryRequest
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .administration import alter_configs
from .conversation import Conversation

CLIENT_METRICS = 16
RECEIVER = "barnabas.broker.metrics.client_metrics:ClientMetrics"
TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}


class Watched(Broker):
    def __init__(self) -> None:
        [self.metrics_port] = free_ports(1)
        super().__init__(overrides={"metric.reporters": RECEIVER, "barnabas.metrics.port": self.metrics_port})

    def page(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics") as answer:
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with Watched() as broker:
        yield broker


def announced(broker: Broker) -> set[int]:
    with Conversation(broker) as talk:
        answer = talk.ask(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
    return {each.api_key for each in answer.api_keys}


def subscribe(broker: Broker, name: str, **values: str) -> None:
    alter_configs(broker, name, CLIENT_METRICS, {key.replace("_", "."): v for key, v in values.items()})


def length(data: bytes, field: int) -> bytes:
    return bytes([field << 3 | 2, len(data)]) + data


def payload(name: str, value: float, *, delta: bool = False) -> bytes:
    """MetricsData with one number."""
    point = bytes([4 << 3 | 1]) + struct.pack("<d", value)
    points = length(point, 1) + (bytes([2 << 3, 1]) if delta else b"")
    metric = length(name.encode(), 1) + length(points, 7 if delta else 5)
    return length(length(length(metric, 2), 2), 1)


def test_telemetry_is_not_announced_without_a_receiver(broker: Broker, watched: Watched) -> None:
    assert not announced(broker) & TELEMETRY
    assert announced(watched) >= TELEMETRY


def test_a_client_gets_the_metrics_of_its_subscriptions(watched: Watched) -> None:
    subscribe(watched, "mine", metrics="org.apache.kafka.a.,org.apache.kafka.b.", match="client_id=asked.*")
    subscribe(watched, "others", metrics="*", match="client_id=someone")
    with Conversation(watched, client_id="asked-1") as talk:
        answer = talk.ask(GetTelemetrySubscriptionsRequest(), 0)
    assert answer.client_instance_id != NULL_UUID
    assert answer.requested_metrics == ["org.apache.kafka.a.", "org.apache.kafka.b."]
    assert answer.push_interval_ms == 300_000
    with Conversation(watched, client_id="someone") as talk:
        assert talk.ask(GetTelemetrySubscriptionsRequest(), 0).requested_metrics == ["*"]


def test_pushed_metrics_are_shown_and_deltas_add_up(watched: Watched) -> None:
    subscribe(watched, "pushed", metrics="org.", interval_ms="100", match="client_id=pusher")
    with Conversation(watched, client_id="pusher") as talk:
        asked = talk.ask(GetTelemetrySubscriptionsRequest(), 0)

        def push(metrics: bytes, **more: object) -> int:
            request = PushTelemetryRequest(
                client_instance_id=asked.client_instance_id,
                subscription_id=asked.subscription_id,
                metrics=metrics,
                **more,
            )
            return int(talk.ask(request, 0).error_code)

        assert push(payload("org.example.total", 5, delta=True)) == ErrorCode.NONE
        wait_until(lambda: push(payload("org.example.total", 7, delta=True)) == ErrorCode.NONE)
        line = next(line for line in watched.page().splitlines() if "org.example.total" in line)
        assert line.startswith("barnabas_client_metrics_value{") and line.endswith(" 12.0")
        wait_until(lambda: push(b"\xff\xff") == ErrorCode.INVALID_RECORD)
        assert push(payload("org.example.total", 1), terminating=True) == ErrorCode.NONE
        assert push(payload("org.example.total", 1)) == ErrorCode.INVALID_REQUEST
    page = watched.page()
    counts = dict(line.split(" ") for line in page.splitlines() if line.startswith("kafka_server_client_met"))
    names = ("instance_count", "plugin_export_count", "plugin_error_count", "throttle_count")
    instances, exports, errors, throttles = (float(counts[f"kafka_server_client_metrics_{n}"]) for n in names)
    assert instances >= 3 and exports >= 3 and errors == 1 and throttles >= 1
    assert float(counts["kafka_server_client_metrics_plugin_export_time_max"]) > 0


def test_invalid_pushes_are_refused(watched: Watched) -> None:
    subscribe(watched, "wrong", metrics="org.", match="client_id=wrong")
    with Conversation(watched, client_id="wrong") as talk:
        asked = talk.ask(GetTelemetrySubscriptionsRequest(), 0)
        again = GetTelemetrySubscriptionsRequest(client_instance_id=asked.client_instance_id)
        assert talk.ask(again, 0).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        wrong = PushTelemetryRequest(
            client_instance_id=asked.client_instance_id, subscription_id=asked.subscription_id + 1
        )
        assert talk.ask(wrong, 0).error_code == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
        right = PushTelemetryRequest(
            client_instance_id=asked.client_instance_id, subscription_id=asked.subscription_id
        )
        assert talk.ask(right, 0).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert talk.ask(PushTelemetryRequest(), 0).error_code == ErrorCode.INVALID_REQUEST


def test_a_real_client_pushes_metrics(watched: Watched) -> None:
    watched.create_topic("told")
    subscribe(watched, "real", metrics="*", interval_ms="100", match="client_id=real-client")
    producer = Producer({"bootstrap.servers": watched.bootstrap, "client.id": "real-client"})

    def is_told() -> bool:
        producer.produce("told", b"x")
        producer.poll(0.05)
        return "org.apache.kafka.producer" in watched.page()

    wait_until(is_told, 30)
    producer.flush(10)


def test_malformed_metrics_raise_value_error() -> None:
    for broken in (b"\x0a\xff", b"\x0b", b"\xff" * 12):
        with pytest.raises(ValueError):
            list(otlp.points(broken))
