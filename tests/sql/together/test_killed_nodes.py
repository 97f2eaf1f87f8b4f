"""Three nodes as processes: when the one that runs the queries is killed, another one goes on with them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from both_brokers import KEEPS_ALL

PATIENCE_S = 240.0
KEYS, EACH = 5, 8
STATEMENTS = (
    "CREATE STREAM clicks (id STRING KEY, page STRING)"
    " WITH (KAFKA_TOPIC='clicks', VALUE_FORMAT='JSON', PARTITIONS=2);",
    "CREATE TABLE totals AS SELECT id, COUNT(*) AS total FROM clicks GROUP BY id;",
)
pytestmark = [pytest.mark.long, pytest.mark.timeout(1500)]


class Node:
    def __init__(self, bootstrap: str, folder: Path, number: int) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.log = folder / f"node-{number}.log"
        overrides = {
            "listeners": self.url,
            "ksql.service.id": "killed_",
            "ksql.streams.state.dir": str(folder / "state"),
            "ksql.streams.auto.offset.reset": "earliest",
            "ksql.streams.processing.guarantee": "exactly_once_v2",
            "ksql.heartbeat.session.timeout.ms": "6000",
            "barnabas.sql.spark.enabled": "false",
        }
        command = [sys.executable, "-m", "barnabas", "sql", "server", "--bootstrap-server", bootstrap]
        for name, value in overrides.items():
            command += ["--override", f"{name}={value}"]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)

    def get(self, path: str) -> str:
        try:
            return httpx.get(self.url + path, timeout=30).text
        except httpx.HTTPError:
            return ""

    @property
    def is_ready(self) -> bool:
        return '"isHealthy":true' in self.get("/healthcheck").replace(" ", "")

    @property
    def leads(self) -> bool:
        return "\nbarnabas_sql_leading 1.0" in self.get("/metrics")

    def run(self, text: str) -> None:
        response = httpx.post(f"{self.url}/ksql", json={"ksql": text}, timeout=120)
        assert response.status_code == 200, response.text + self.log.read_text()[-3000:]

    def totals(self) -> dict[str, int]:
        try:
            response = httpx.post(f"{self.url}/query", json={"ksql": "SELECT * FROM totals;"}, timeout=60)
        except httpx.HTTPError:
            return {}
        if response.status_code != 200:
            return {}
        return {
            columns[0]: columns[1]
            for entry in json.loads(response.text)
            if (columns := (entry.get("row") or {}).get("columns"))
        }

    def end(self, number: int) -> None:
        if self.process.poll() is None:
            self.process.send_signal(number)
            self.process.wait(60)


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    with Broker(overrides={**KEEPS_ALL, "group.initial.rebalance.delay.ms": 0}, in_process=False) as broker:
        found = [Node(broker.bootstrap, tmp_path, number) for number in range(3)]
        try:
            for each in found:
                wait_until(lambda each=each: each.is_ready, PATIENCE_S, each.log.read_text)
            yield found
        finally:
            for each in found:
                each.end(signal.SIGTERM)


def insert(node: Node, first: int) -> None:
    rows = [(f"user-{number % KEYS}", f"page-{number}") for number in range(first, first + KEYS * EACH)]
    node.run("".join(f"INSERT INTO clicks (id, page) VALUES ('{key}', '{page}');" for key, page in rows))


def test_another_node_continues_the_queries_of_one_that_was_killed(nodes: list[Node]) -> None:
    left = list(nodes)
    for text in STATEMENTS:
        left[0].run(text)
    total = 0
    for _ in range(3):
        insert(left[-1], total)
        total += KEYS * EACH
        wanted = {f"user-{number}": total // KEYS for number in range(KEYS)}
        for each in left:
            wait_until(
                lambda each=each, wanted=wanted: each.totals() == wanted,
                PATIENCE_S,
                lambda each=each: (
                    f"{each.totals()}\n" + "\n".join(one.log.read_text()[-3000:] for one in left)
                ),
            )
        if len(left) == 1:
            break
        wait_until(lambda: sum(each.leads for each in left) == 1, PATIENCE_S)
        [leader] = [each for each in left if each.leads]
        leader.end(signal.SIGKILL)
        left.remove(leader)
