"""The audit topic: denied requests are records of it, written by the node itself."""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.access.audit_topic import QUEUE_MAX, AuditTopic
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.blocking import run
from barnabas.protocol import KafkaError
from barnabas.security.acls.vocabulary import Operation, ResourceType
from barnabas.testing.broker import Broker

from .sasl_broker import USERS, as_admin, client_properties, cluster_of
from .test_refusals_everywhere import SETTINGS

TOPIC = "audit"


def test_denied_requests_become_records() -> None:
    confluent = pytest.importorskip("confluent_kafka")
    with Broker(overrides=SETTINGS | {"barnabas.audit.topic": TOPIC}) as broker:
        with as_admin(broker) as cluster:
            run(Admin(cluster).create_topic(NewTopic(TOPIC, 1, 1)))
        with (
            pytest.raises(KafkaError),
            cluster_of(broker.bootstrap, client_properties("PLAIN", "bob", USERS["bob"])) as cluster,
        ):
            run(Admin(cluster).create_topic(NewTopic("no", 1, 1)))
        consumer = confluent.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": USERS["admin"],
                "group.id": "audit",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.assign([confluent.TopicPartition(TOPIC, 0, 0)])
        found: list[dict[str, Any]] = []
        deadline = time.monotonic() + 30
        while not any(each["decision"] == "denied" for each in found):
            assert time.monotonic() < deadline, found
            message = consumer.poll(0.5)
            if message is not None and not message.error():
                found.append(json.loads(message.value()))
        consumer.close()
    denied = next(each for each in found if each["decision"] == "denied")
    wanted = {"principal": "User:bob", "host": "127.0.0.1", "request": "CreateTopics"}
    assert {name: denied[name] for name in wanted} == wanted
    assert denied["rule"] == "no rule covers the resource"


def test_the_queue_is_bounded_and_ignores_its_own_topic() -> None:
    broker: Any = SimpleNamespace(clock=SimpleNamespace(now_ms=lambda: 5), node_id=1)
    audit = AuditTopic(broker, TOPIC)

    def put(name: str) -> None:
        audit.put(False, "User:x", "h", Operation.READ, ResourceType.TOPIC, name, "Fetch", "none")

    put(TOPIC)
    assert not audit._queue
    for _ in range(QUEUE_MAX + 7):
        put("other")
    assert len(audit._queue) == QUEUE_MAX
    assert audit.dropped == 7
