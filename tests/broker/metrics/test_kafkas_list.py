"""A loaded broker shows what published dashboards query and what Kafka's MBeans have; docs/metrics.md says
what is missing, and why."""

from __future__ import annotations

import fnmatch
import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.metrics import Kind, metric_of
from barnabas.metrics.dialects import DIALECTS
from barnabas.testing import Broker

from ..administration import set_quotas
from .test_prometheus import free_port

HERE = Path(__file__).parent
METRICS_DOC = HERE.parents[2] / "docs" / "metrics.md"
DASHBOARDS: dict[str, dict[str, dict[str, list[str]]]] = json.loads(
    (HERE / "dashboard_names.json").read_text()
)
MBEANS = [
    line
    for name in ("kafka_mbeans.txt", "kafka_attributes.txt")
    for line in (HERE / name).read_text().splitlines()
]
RECORDS = 200


@pytest.fixture(scope="module")
def pages() -> Iterator[dict[str, str]]:
    """The pages of a node, in each dialect, after clients with quotas have produced, consumed and
    committed."""
    port = free_port()
    with Broker(overrides={"barnabas.metrics.port": port}) as broker:
        broker.create_topic("orders", partitions=2)
        set_quotas(
            broker,
            {"client-id": "shop"},
            producer_byte_rate=1e9,
            consumer_byte_rate=1e9,
            request_percentage=1000.0,
            controller_mutation_rate=100.0,
        )
        settings = {"bootstrap.servers": broker.bootstrap, "client.id": "shop"}
        producer = Producer(settings | {"transactional.id": "till"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(RECORDS):
            producer.produce("orders", str(number).encode())
        producer.commit_transaction(30)
        consumer = Consumer(settings | {"group.id": "readers", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        read = 0
        while read < RECORDS:
            read += sum(message.error() is None for message in consumer.consume(RECORDS, 30))
        consumer.commit(asynchronous=False)
        yield {dialect: page(f"http://127.0.0.1:{port}/metrics?dialect={dialect}") for dialect in DIALECTS}
        consumer.close()


def page(url: str) -> str:
    with urllib.request.urlopen(url, timeout=30) as answer:
        return str(answer.read().decode())


def names_of(page: str) -> dict[str, set[str]]:
    """The names of samples, and the labels that they have."""
    found: dict[str, set[str]] = {}
    for line in page.splitlines():
        if match := re.match(r"([a-z_0-9]+)(?:\{(.*)\})? ", line):
            found.setdefault(match[1], set()).update(re.findall(r'(\w+)="', match[2] or ""))
    return found


def documented(heading: str) -> list[str]:
    """The patterns in the first column of a table of docs/metrics.md."""
    section = METRICS_DOC.read_text().split(f"### {heading}\n")[1].split("\n#")[0]
    rows = [line.split(" | ") for line in section.splitlines() if line.startswith("| `")]
    assert all(len(row) == 2 and len(row[1]) > 10 for row in rows), "each row needs a reason"
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row[0])]


@pytest.mark.parametrize("dialect", list(DASHBOARDS))
def test_every_name_that_dashboards_query_is_there_or_has_a_reason(
    pages: dict[str, str], dialect: str
) -> None:
    found = names_of(pages[dialect])
    patterns = documented("Names of dashboards that cannot exist here")
    patterns += documented("Names of dashboards that other pages serve")
    wrong = []
    for dashboard, names in DASHBOARDS[dialect].items():
        for name, labels in names.items():
            is_excused = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
            if name not in found:
                if not is_excused:
                    wrong.append(f"{dashboard}: {name} is missing")
            elif is_excused:
                wrong.append(f"{dashboard}: {name} is there, and docs/metrics.md says that it is not")
            elif not set(labels) <= found[name]:
                wrong.append(f"{dashboard}: {name} has no label {set(labels) - found[name]}")
    assert wrong == []


def test_every_mbean_of_kafka_is_there_or_has_a_reason(pages: dict[str, str]) -> None:
    found, patterns = names_of(pages["jmx"]), documented("MBeans of Kafka that are missing")
    wrong = []
    for mbean in MBEANS:
        domain, type, name = mbean.split(" ")
        shown = any(
            DIALECTS["jmx"].shape(metric_of(domain, type, name, kind, "")).name in found for kind in Kind
        )
        if shown == any(fnmatch.fnmatchcase(mbean, pattern) for pattern in patterns):
            wrong.append(f"{mbean}: {'there, and documented as missing' if shown else 'missing'}")
    assert wrong == []
    for pattern in patterns:
        assert fnmatch.filter(MBEANS, pattern), f"Kafka has no {pattern}"


def test_clients_show_by_id_and_by_software_and_the_broker_runs(pages: dict[str, str]) -> None:
    line = 'barnabas_server_clients_requests_total{clientId="shop",user="ANONYMOUS"}'
    [count] = [row.split(" ")[1] for row in pages["jmx"].splitlines() if row.startswith(line)]
    assert int(count) > 10
    assert "kafka_server_kafkaserver_brokerstate 3\n" in pages["jmx"]
    assert 'barnabas_log_directory_usable_bytes{logDirectory="' in pages["jmx"]
    software = 'clientSoftwareName="confluent-kafka-python"'
    assert f"kafka_server_socket_server_metrics_connections_software{{{software}" in pages["strimzi"]
