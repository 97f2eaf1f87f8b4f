"""Nodes of the registry as processes to kill and pause, and writers that note what they were told."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

START_S_MAX = 60.0
SESSION_MS = 6_000


class NodeProcess:
    def __init__(self, broker: str, topic: str, folder: Path, **overrides: str) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        settings = {
            "kafkastore.bootstrap.servers": broker,
            "kafkastore.topic": topic,
            "kafkastore.timeout.ms": "10000",
            "schema.registry.group.id": f"group-{topic}",
            "kafkagroup.session.timeout.ms": str(SESSION_MS),
            "kafkagroup.heartbeat.interval.ms": "300",
            "listeners": self.url,
            "barnabas.http.access.log": "false",
            **overrides,
        }
        self.log = folder / f"node-{self.port}.log"
        self._output = self.log.open("ab")
        self._command = [sys.executable, "-m", "barnabas", "registry", "start", "--log-level", "WARNING"]
        for name, value in settings.items():
            self._command += ["--override", f"{name}={value}"]
        self.process = self._spawn()

    def _spawn(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdout=self._output, stderr=self._output)

    def restart(self) -> None:
        assert self.process.poll() is not None
        self.process = self._spawn()

    def wait_until_ready(self) -> None:
        wait_until(self._is_ready, START_S_MAX, what=lambda: f"the node is ready: {self.log.read_text()}")

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return self.get("/health/ready") is not None

    def get(self, path: str, **query: Any) -> Any:
        """The JSON of a response with status 200, or None."""
        try:
            response = httpx.get(self.url + path, params=query, timeout=5.0)
        except httpx.HTTPError:
            return None
        return response.json() if response.status_code == 200 else None

    def is_primary(self) -> bool:
        try:
            text = httpx.get(f"{self.url}/metrics", timeout=1.0).text
        except httpx.HTTPError:
            return False
        return "barnabas_registry_primary 1.0" in text

    def pause(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()
        self._output.close()


def primary_of(nodes: Iterable[NodeProcess], seconds: float = 60.0) -> NodeProcess:
    found: list[NodeProcess] = []

    def is_there() -> bool:
        found[:] = [node for node in nodes if node.is_primary()]
        return bool(found)

    wait_until(is_there, seconds, what="a node is the primary")
    return found[0]


@dataclass
class Told:
    """A registration that was acknowledged."""

    subject: str
    text: str
    schema_id: int
    node: str


@dataclass
class Writers:
    """Threads that register new schemas on any node, each again and again until it is acknowledged."""

    nodes: Sequence[NodeProcess]
    count: int = 4
    told: list[Told] = field(default_factory=list)
    failures: int = 0
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def start(self) -> Writers:
        self._threads = [threading.Thread(target=self._run, args=(each,)) for each in range(self.count)]
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(120)
            assert not thread.is_alive()

    def wait_for(self, count: int, seconds: float = 120.0) -> None:
        """Wait until so many more registrations are acknowledged."""
        goal = len(self.told) + count
        wait_until(
            lambda: len(self.told) >= goal,
            seconds,
            what=lambda: f"{len(self.told)} of {goal} registrations; {self.failures} failures",
        )

    def _run(self, number: int) -> None:
        rng = random.Random(number)
        with httpx.Client(timeout=httpx.Timeout(3.0, connect=1.0)) as client:
            for index in range(100_000):
                text = json.dumps({"type": "fixed", "name": f"w{number}_{index}", "size": 1 + index % 9})
                subject = f"subject-{number}-{index % 3}"
                while not self._registered(client, rng, subject, text):
                    self.failures += 1
                    if self._stop.is_set():
                        return
                    self._stop.wait(0.05)
                if self._stop.wait(0.03):
                    return

    def _registered(self, client: httpx.Client, rng: random.Random, subject: str, text: str) -> bool:
        node = rng.choice(self.nodes)
        try:
            response = client.post(f"{node.url}/subjects/{subject}/versions", json={"schema": text})
        except httpx.HTTPError:
            return False
        if response.status_code != 200:
            assert response.status_code in (500, 503), response.text
            return False
        self.told.append(Told(subject, text, response.json()["id"], node.url))
        return True


def check_promises(nodes: Sequence[NodeProcess], told: Sequence[Told]) -> None:
    """No id was given twice, none that was acknowledged is lost, and all nodes show the same."""
    by_id: dict[int, str] = {}
    for each in told:
        assert by_id.setdefault(each.schema_id, each.text) == each.text, f"id {each.schema_id} given twice"
    views = [converged(node, nodes[0]) for node in nodes]
    for view in views[1:]:
        assert view == views[0], "nodes do not agree"
    known = {(row["subject"], row["id"]): json.loads(row["schema"]) for row in views[0]}
    for each in told:
        assert (each.subject, each.schema_id) in known, f"{each} is lost"
        assert known[each.subject, each.schema_id] == json.loads(each.text)
    ids = [row["id"] for row in views[0]]
    texts = {row["schema"] for row in views[0]}
    assert len(set(ids)) == len(texts), "one schema has two ids, or two schemas have one"


def converged(node: NodeProcess, other: NodeProcess) -> list[dict[str, Any]]:
    """All versions that a node shows, once it shows as many as the other one."""
    wait_until(lambda: len(all_versions(node)) == len(all_versions(other)), 30, what="both show the same")
    return all_versions(node)


def all_versions(node: NodeProcess) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while True:
        page = node.get("/schemas", offset=len(found), limit=500)
        assert page is not None
        found += page
        if not page:
            break
    keep = ("subject", "version", "id", "schema")
    rows = [{name: row[name] for name in keep} for row in found]
    return sorted(rows, key=lambda row: (row["subject"], row["version"]))
