"""Alerts and the page of health on Apache Kafka: they need nothing but the protocol."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing.waiting import wait_until
from monitor.alerts.receiving import hook
from monitor.alerts.test_alert_service import PATIENCE_S, QUICK, Service, barnabas

TOPIC, GROUP = "orders-of-nobody", "billing-without-members"
RECORDS = 100

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def bootstrap(apache_kafka: Any) -> str:
    """A node of Apache Kafka with a group that is behind and has no members."""
    found: str = apache_kafka.bootstrap
    admin = AdminClient({"bootstrap.servers": found})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(30)
    producer = Producer({"bootstrap.servers": found})
    for number in range(RECORDS):
        producer.produce(TOPIC, str(number))
    assert producer.flush(30) == 0
    consumer = Consumer({"bootstrap.servers": found, "group.id": GROUP})
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, 1)], asynchronous=False)
    consumer.close()
    return found


def test_health_names_a_group_without_members(bootstrap: str) -> None:
    page = barnabas("health", "--bootstrap-server", bootstrap)
    assert "GroupWithoutMembers" in page.stdout or f"group {GROUP} has no members" in page.stdout, page.stdout
    assert f"{RECORDS - 1} records behind" in page.stdout
    found = json.loads(barnabas("health", "--bootstrap-server", bootstrap, "--json").stdout)
    assert GROUP in json.dumps(found)


def test_an_alert_about_a_volume_of_its_broker_is_told(bootstrap: str, tmp_path: Path) -> None:
    """Every volume has less than 101 % of its space free, so the rule must fire."""
    with hook() as receiver:
        path = tmp_path / "alerts.yaml"
        path.write_text(
            yaml.safe_dump(
                {
                    "clusters": [{"name": "apache", "properties": {"bootstrap.servers": bootstrap}}],
                    "interval": "1s",
                    "targets": {"hook": {"webhook": {"url": receiver.url}}},
                    "group": {"by": ["alertname"], "wait": "0s", "interval": "1s", "repeat": "1h"},
                    "rules": [{"name": "DiskAlmostFull", "below": 101, "good_at": 101, **QUICK}],
                }
            )
        )
        service = Service(tmp_path, path)
        try:
            service.wait()
            wait_until(
                lambda: "DiskAlmostFull" in receiver.names("firing"), PATIENCE_S, service.log.read_text
            )
            assert service.names() == ["DiskAlmostFull"]
            [alert] = receiver.alerts("firing")
            assert alert["labels"]["cluster"] == "apache"
        finally:
            service.end()
