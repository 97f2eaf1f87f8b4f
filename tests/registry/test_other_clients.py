"""Clients in other languages against the registry: Go (franz-go) and Node (KafkaJS's client of registries).

Their packages come from their registries by their own tools; without tools or network the tests are skipped.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.running import instant, running

pytestmark = pytest.mark.long
PROGRAMS = Path(__file__).with_name("clients")
SR_PACKAGE = "github.com/twmb/franz-go/pkg/sr@v1.8.0"
NODE_PACKAGE = "@kafkajs/confluent-schema-registry@3.9.0"
GO_STEPS = [
    *("registered", "registered again", "by id", "latest", "looked up", "incompatible", "refused", "level"),
    *("second version", "types", "references", "supported types", "read only", "subjects", "soft delete"),
    *("hard delete", "ok"),
]


@pytest.fixture
def url() -> Iterator[str]:
    with running(instant) as found:
        yield found


def prepared(folder: Path, *command: str) -> None:
    """Run a command that needs its tool and the network."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    if done.returncode != 0:
        pytest.skip(f"{' '.join(command)}: {done.stderr[-500:]}")


def lines(folder: Path, *command: str) -> list[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_go(url: str, tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "franz_go.go", tmp_path / "main.go")
    prepared(tmp_path, "go", "mod", "init", "clients")
    prepared(tmp_path, "go", "get", SR_PACKAGE)
    assert lines(tmp_path, "go", "run", ".", url) == GO_STEPS


def test_node(url: str, tmp_path: Path) -> None:
    shutil.copy(PROGRAMS / "kafkajs.js", tmp_path / "main.js")
    prepared(tmp_path, "npm", "install", "--no-audit", "--no-fund", "--silent", NODE_PACKAGE)
    assert lines(tmp_path, "node", "main.js", url) == ["avro", "refused", "json", "protobuf", "ok"]
