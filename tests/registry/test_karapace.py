"""Karapace and our registry on one topic and in one group: each reads and forwards to the other.

`tests/registry/install_karapace.sh` installs Karapace; without it these tests are skipped.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .processes import NodeProcess

PYTHON = Path.home() / ".cache/barnabas/karapace/venv/bin/python"
PATIENCE_S = 90.0
until = partial(wait_until, seconds=PATIENCE_S)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not PYTHON.exists(), reason="tests/registry/install_karapace.sh was not run"),
]


class Karapace:
    def __init__(self, broker: str, topic: str, folder: Path) -> None:
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        settings = {
            "bootstrap_uri": broker,
            "host": "127.0.0.1",
            "port": self.port,
            "advertised_hostname": "127.0.0.1",
            "topic_name": topic,
            "group_id": f"group-{topic}",
            "karapace_registry": "true",
            "karapace_rest": "false",
            "log_level": "INFO",
            "compatibility": "NONE",
        }
        environment = {f"KARAPACE_{name.upper()}": str(value) for name, value in settings.items()}
        self.log = folder / "karapace.log"
        self._output = self.log.open("wb")
        self._process = subprocess.Popen(
            [str(PYTHON), "-m", "karapace"],
            env={**os.environ, **environment, "PYTHONPATH": ""},
            stdout=self._output,
            stderr=self._output,
            cwd=folder,
        )

    def is_primary(self) -> bool:
        try:
            response = httpx.get(f"{self.url}/master_available", timeout=2.0)
        except httpx.HTTPError:
            return False
        return response.status_code == 200 and bool(response.json().get("master_available"))

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._output.close()


@pytest.fixture
def karapace(broker: str, topic: str, tmp_path: Path) -> Iterator[Karapace]:
    found = Karapace(broker, topic, tmp_path)
    try:
        until(lambda: subjects(found.url) is not None, what=found.log.read_text)
        yield found
    finally:
        found.stop()


@pytest.fixture
def ours(broker: str, topic: str, tmp_path: Path, karapace: Karapace) -> Iterator[NodeProcess]:
    """Started behind Karapace."""
    node = NodeProcess(broker, topic, tmp_path)
    try:
        node.wait_until_ready()
        yield node
    finally:
        node.stop()


def subjects(url: str) -> list[str] | None:
    try:
        response = httpx.get(f"{url}/subjects", timeout=5.0)
    except httpx.HTTPError:
        return None
    return sorted(response.json()) if response.status_code == 200 else None


def register(url: str, subject: str, name: str) -> int:
    """Register a schema, again and again while the registry has no primary."""
    schema = json.dumps({"type": "record", "name": name, "fields": [{"name": "a", "type": "string"}]})
    found: list[httpx.Response] = []

    def attempt() -> bool:
        try:
            response = httpx.post(f"{url}/subjects/{subject}/versions", json={"schema": schema}, timeout=30.0)
        except httpx.HTTPError:
            return False
        found.append(response)
        return response.status_code == 200

    until(attempt, what=lambda: found[-1].text if found else "no response")
    return int(found[-1].json()["id"])


def schema_of(url: str, schema_id: int) -> Any:
    response = httpx.get(f"{url}/schemas/ids/{schema_id}", timeout=5.0)
    return json.loads(response.json()["schema"])["name"] if response.status_code == 200 else None


def test_both_read_and_write_one_topic_and_ids_go_on(karapace: Karapace, ours: NodeProcess) -> None:
    first = register(karapace.url, "a", "FromKarapace")
    until(lambda: schema_of(ours.url, first) == "FromKarapace")
    second = register(ours.url, "b", "FromOurs")
    assert second == first + 1
    until(lambda: schema_of(karapace.url, second) == "FromOurs")
    assert register(ours.url, "c", "FromKarapace") == first
    until(lambda: subjects(karapace.url) == subjects(ours.url) == ["a", "b", "c"])

    deleted = httpx.delete(f"{ours.url}/subjects/b", timeout=30.0)
    assert (deleted.status_code, deleted.json()) == (200, [1])
    until(lambda: subjects(karapace.url) == subjects(ours.url) == ["a", "c"])


def test_the_other_one_goes_on_when_the_primary_stops(karapace: Karapace, ours: NodeProcess) -> None:
    ids = [register(ours.url, f"s{each}", f"Record{each}") for each in range(3)]
    karapace.stop()
    until(ours.is_primary)
    ids.append(register(ours.url, "later", "Later"))
    assert ids == [ids[0], ids[0] + 1, ids[0] + 2, ids[0] + 3]


def test_karapace_forwards_to_our_primary_and_takes_over_from_it(
    broker: str, topic: str, tmp_path: Path
) -> None:
    node = NodeProcess(broker, topic, tmp_path)
    other: Karapace | None = None
    try:
        node.wait_until_ready()
        until(node.is_primary)
        first = register(node.url, "a", "First")
        other = Karapace(broker, topic, tmp_path)
        until(
            lambda: other is not None and subjects(other.url) == ["a"],
            lambda: other and other.log.read_text(),
        )
        assert register(other.url, "b", "Second") == first + 1
        assert schema_of(node.url, first + 1) == "Second"
        node.kill()
        assert register(other.url, "c", "Third") == first + 2
    finally:
        if other is not None:
            other.stop()
        node.stop()
