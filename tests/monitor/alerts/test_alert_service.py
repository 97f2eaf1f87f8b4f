"""The alert service as processes beside a cluster of three: what is told when a broker dies, and by whom."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from barnabas.testing.cluster import Cluster
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from monitor.alerts.receiving import Hook, hook

PATIENCE_S = 60.0
QUICK = {"for": "1s", "keep": "0s"}


class Service:
    def __init__(self, folder: Path, file: Path) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / f"alerts-{self.port}.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "barnabas", "alerts", "serve", str(file), "--port", str(self.port)],
                stdout=output,
                stderr=output,
            )

    def get(self, path: str) -> Any:
        try:
            response = httpx.get(self.url + path)
        except httpx.HTTPError:
            return None
        return response.json() if response.is_success else None

    def names(self, query: str = "") -> list[str]:
        return [each["labels"]["alertname"] for each in self.get(f"/api/v2/alerts{query}") or ()]

    def wait(self) -> None:
        wait_until(lambda: self.get("/api/v2/status") is not None, PATIENCE_S, self.log.read_text)

    def end(self, number: int = signal.SIGTERM) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(30)


def barnabas(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "barnabas", *arguments], capture_output=True, text=True)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, overrides={"broker.session.timeout.ms": 3000}) as found:
        found.create_topic("orders", 3, 3)
        yield found


@pytest.fixture(scope="module")
def receiver() -> Iterator[Hook]:
    with hook() as found:
        yield found


@pytest.fixture(scope="module")
def file(cluster: Cluster, receiver: Hook, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("alerts") / "alerts.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "main", "properties": {"bootstrap.servers": cluster.bootstrap}}],
                "interval": "1s",
                "targets": {"hook": {"webhook": {"url": receiver.url}}},
                "group": {"by": ["alertname"], "wait": "0s", "interval": "1s", "repeat": "1h"},
                "rules": [
                    {"name": "UnderReplicatedPartitions", **QUICK},
                    {"name": "BrokerGone", **QUICK},
                    {"name": "DiskAlmostFull", "enabled": False},
                ],
            }
        )
    )
    return path


@pytest.fixture(scope="module")
def services(file: Path) -> Iterator[list[Service]]:
    found = [Service(file.parent, file), Service(file.parent, file)]
    try:
        for each in found:
            each.wait()
        wait_until(lambda: len(leaders(found)) == 1, PATIENCE_S)
        yield found
    finally:
        for each in found:
            each.end()


def leaders(services: list[Service]) -> list[Service]:
    return [each for each in services if (each.get("/api/v2/status") or {}).get("is_leader")]


def test_a_dead_broker_is_told_once_and_so_is_its_return(
    cluster: Cluster, services: list[Service], receiver: Hook
) -> None:
    cluster[3].kill()
    wait_until(
        lambda: {"UnderReplicatedPartitions", "BrokerGone"} <= set(receiver.names("firing")), PATIENCE_S
    )
    (found,) = [each for each in receiver.alerts("firing") if each["labels"]["alertname"] == "BrokerGone"]
    assert "3 (" in found["annotations"]["summary"]
    assert "--include-fenced-brokers" in found["annotations"]["command"]
    page = httpx.get(services[0].url).text
    assert "UnderReplicatedPartitions" in page
    health = barnabas("health", "--bootstrap-server", cluster.bootstrap)
    assert health.returncode == 1, health.stderr
    assert "do not answer: 3 (" in health.stdout
    cluster[3].start()
    wait_until(
        lambda: {"UnderReplicatedPartitions", "BrokerGone"} <= set(receiver.names("resolved")), PATIENCE_S
    )
    wait_until(lambda: all(each.names() == [] for each in services), PATIENCE_S)
    assert sorted(receiver.names("firing")) == ["BrokerGone", "UnderReplicatedPartitions"]
    healthy = barnabas("health", "--bootstrap-server", cluster.bootstrap, "--json")
    assert (healthy.returncode, json.loads(healthy.stdout)["problems"]) == (0, [])


def test_the_history_has_every_change_in_order(services: list[Service]) -> None:
    shown = barnabas("alerts", "history", "--service", services[1].url, "--json")
    changes = [(each["rule"], each["state"]) for each in json.loads(shown.stdout)]
    for rule in ("BrokerGone", "UnderReplicatedPartitions"):  # a node that starts may fire once more
        states = [state for name, state in changes if name == rule]
        assert states == ["firing", "resolved"] * (len(states) // 2) != []
    table = barnabas("alerts", "history", "--service", services[1].url).stdout
    assert table.splitlines()[0].split() == ["TIME", "STATE", "SEVERITY", "RULE", "SUMMARY"]


@pytest.mark.long
def test_a_silence_at_one_service_holds_at_the_other(
    cluster: Cluster, services: list[Service], receiver: Hook
) -> None:
    told = len(receiver.names("firing"))
    follower = next(each for each in services if each not in leaders(services))
    begun = barnabas(
        "alerts", "silence", "alertname=~.*", "--for", "10m", "--comment", "test", "--service", follower.url
    )
    identity = begun.stdout.strip()
    assert begun.returncode == 0, begun.stderr
    for each in services:
        wait_until(
            lambda each=each: [one["id"] for one in each.get("/api/v2/silences")] == [identity], PATIENCE_S
        )  # type: ignore[misc]
    amtool = shutil.which("amtool")
    if amtool is not None:
        asked = subprocess.run(
            [amtool, "silence", "query", "-q", f"--alertmanager.url={follower.url}"],
            capture_output=True,
            text=True,
        )
        assert asked.stdout.strip() == identity, asked.stderr
    cluster[2].kill()
    wait_until(lambda: all("BrokerGone" in each.names() for each in services), PATIENCE_S)
    assert services[0].names("?silenced=false") == []
    assert len(receiver.names("firing")) == told
    assert barnabas("alerts", "unsilence", identity, "--service", follower.url).returncode == 0
    wait_until(lambda: receiver.names("firing").count("BrokerGone") == 2, PATIENCE_S)


@pytest.mark.long
def test_another_service_takes_over_and_tells_the_end(
    cluster: Cluster, services: list[Service], receiver: Hook
) -> None:
    (leader,) = leaders(services)
    leader.end(signal.SIGKILL)
    (heir,) = [each for each in services if each is not leader]
    wait_until(lambda: leaders([heir]) == [heir], PATIENCE_S)
    cluster[2].start()
    wait_until(lambda: receiver.names("resolved").count("BrokerGone") == 2, PATIENCE_S)
    assert receiver.names("firing").count("BrokerGone") == 2


def test_metrics_tell_alerts_and_deliveries(services: list[Service]) -> None:
    (leader,) = leaders(services)
    text = httpx.get(f"{leader.url}/metrics").text
    assert "barnabas_alerts_leader 1.0" in text
    assert "barnabas_alerts_deliveries_total" in text


def test_bad_requests_are_answered_with_what_is_wrong(services: list[Service]) -> None:
    (leader,) = leaders(services)
    url = f"{leader.url}/api/v2"
    for body, told in (
        ({}, "the silence has no matchers"),
        ({"matchers": []}, "matchers: give 1 to 50"),
        ({"matchers": [{"name": "a", "value": "(", "isRegex": True}]}, "is no pattern"),
        ({"matchers": [{"name": "a", "value": "b"}], "startsAt": "2020-01-01T00:00:00Z"}, "no endsAt"),
    ):
        response = httpx.post(f"{url}/silences", json=body)
        assert (response.status_code, told in response.json()["message"]) == (400, True), response.text
    assert httpx.delete(f"{url}/silence/nothing").status_code == 404
    assert httpx.get(f"{url}/alerts", params={"filter": "="}).status_code == 400


def test_a_test_alert_reaches_the_targets(file: Path, receiver: Hook) -> None:
    sent = barnabas("alerts", "test", "--file", str(file))
    assert (sent.returncode, sent.stdout) == (0, "hook: accepted\n")
    assert "TestAlert" in receiver.names("firing")
    wrong = barnabas("alerts", "test", "--file", str(file), "--target", "pager")
    assert wrong.returncode == 1
    assert "no target is called pager; known: hook" in wrong.stderr
    rules = barnabas("alerts", "rules", "--file", str(file))
    assert "UnderReplicatedPartitions" in rules.stdout
