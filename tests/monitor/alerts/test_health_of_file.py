"""`barnabas health --file` and `barnabas alerts rules` on a file with a cluster, a connector and metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.cli.alerts.health_page import Problem, body, not_seen
from barnabas.cli.main import main
from barnabas.monitor.alerts.rule import Severity
from barnabas.monitor.checks.cluster_facts import QUORUM
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

from .endpoints import pages
from .test_cluster_checks import GOOD
from .test_measuring import CONNECTORS, status

ORDERS = "orders"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """A broker with two groups that are behind and have no members."""
    with Broker() as found:
        found.create_topic(ORDERS)
        producer = Producer({"bootstrap.servers": found.bootstrap})
        for number in range(10):
            producer.produce(ORDERS, str(number).encode())
        assert producer.flush(30) == 0
        for group in ("billing", "console-consumer-1"):
            consumer = Consumer({"bootstrap.servers": found.bootstrap, "group.id": group})
            consumer.commit(offsets=[TopicPartition(ORDERS, 0, 1)], asynchronous=False)
            consumer.close()
        yield found


def write(folder: Path, **entries: object) -> str:
    path = folder / "alerts.yaml"
    path.write_text(yaml.safe_dump(entries))
    return str(path)


def cluster(broker: Broker) -> list[object]:
    return [{"name": "main", "properties": {"bootstrap.servers": broker.bootstrap}}]


def test_health_looks_at_all_that_the_file_names(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (closed,) = free_ports(1)
    with pages(**{CONNECTORS: status(jdbc="FAILED", files="RUNNING")}) as connect:
        file = write(
            tmp_path,
            clusters=cluster(broker),
            connect=[connect.url],
            metrics=[f"http://127.0.0.1:{closed}/metrics"],
            consumer_groups={"deny": "^console-consumer-"},
            rules=[{"name": "DiskAlmostFull", "enabled": False}],
        )
        assert main(["health", "--file", file]) == 1
        shown = capsys.readouterr().out
        assert main(["health", "--file", file, "--json"]) == 1
        found = json.loads(capsys.readouterr().out)
    assert "1 broker, " in shown and "active controller 1" in shown
    assert "CRITICAL  connector jdbc: task 0 failed" in shown
    assert "group billing has no members and is 9 records behind" in shown
    assert "console-consumer-1" not in shown
    assert f"metric (instance=127.0.0.1:{closed}): " in shown.partition("Not seen:")[2]
    assert [each["rule"] for each in found["problems"]] == ["ConnectorFailed", "GroupWithoutMembers"]
    assert list(found["clusters"]) == ["main"]


def test_rules_of_the_file_decide(broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = {"name": "DiskAlmostFull", "severity": "critical", "below": 101, "good_at": 101}
    deny = {"deny": "."}
    file = write(tmp_path, clusters=cluster(broker), rules=[everything], consumer_groups=deny)
    assert main(["health", "--file", file]) == 1
    assert "of the volume of" in capsys.readouterr().out
    nothing = {"name": "DiskAlmostFull", "enabled": False}
    file = write(tmp_path, clusters=cluster(broker), rules=[nothing], consumer_groups=deny)
    assert main(["health", "--file", file]) == 0
    assert "Nothing is wrong." in capsys.readouterr().out


def test_many_problems_of_a_kind_fit_on_a_page() -> None:
    found = [Problem(Severity.WARNING, "GroupFarBehind", f"group {number}", "", "") for number in range(50)]
    other = Problem(Severity.WARNING, "DiskAlmostFull", "a disk", "", "")
    shown = list(body([other, *found], {}))
    assert len(shown) < 30
    assert "and 45 more of GroupFarBehind: --json lists all" in shown
    assert "WARNING  a disk" in shown


def test_a_page_on_a_part_of_a_cluster_does_not_say_that_nothing_is_wrong() -> None:
    assert "Nothing is wrong." in list(body([], {}))
    assert "Nothing is wrong in what was seen." in list(body([], {"quorum": "away"}))
    assert not_seen(replace(GOOD, problems={QUORUM: "no answer"})) == {QUORUM: "no answer"}
    refused = not_seen(replace(GOOD, problems={QUORUM: "CLUSTER_AUTHORIZATION_FAILED: no"}))
    assert "only those that this principal may describe" in refused["topics and groups"]


def test_rules_that_look_at_nothing_say_so(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, clusters=cluster(broker), connect=["http://127.0.0.1:1"])
    assert main(["alerts", "rules", "--file", file]) == 0
    problems = capsys.readouterr().out.partition("PROBLEM")[2]
    assert "AuditIncomplete" in problems and "the file has no `audit`" in problems
    assert "ConnectorFailed" not in problems
    assert main(["alerts", "rules", "--file", file, "--json"]) == 0
    rules = {each["name"]: each["problem"] for each in json.loads(capsys.readouterr().out)}
    assert rules["ConnectorFailed"] is None and rules["CertificateEnds"]


def test_a_wrong_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write(tmp_path, consumer_groups={"allow": "("})
    assert main(["health", "--file", file]) == 1
    shown = capsys.readouterr().err
    assert "consumer_groups.allow: '(' is no pattern" in shown
    assert len(shown.splitlines()) == 1
