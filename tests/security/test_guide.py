"""The commands of the security guide work as written: a locked cluster, a user, a rule, a client."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

import pytest

from barnabas.cli.node.local_cluster import LocalCluster

GUIDE = (Path(__file__).parents[2] / "docs" / "security.md").read_text()
FIRST = GUIDE.partition("\n## A locked cluster")[2].partition("\n## ")[0]
ADDRESS = "127.0.0.1:9092"
DENIED = 2  # the exit code of `acls --explain`

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def commands() -> list[tuple[str, str]]:
    """Each command with the output that the guide shows."""
    blocks = "".join(re.findall(r"```console\n(.*?)```", FIRST, re.DOTALL))
    found = []
    for part in blocks.split("$ ")[1:]:
        command, _, shown = part.partition("\n")
        found.append((command.partition("  #")[0].strip(), shown))
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    for node in LocalCluster(tmp_path / "cluster").nodes:
        if node.pid is not None:
            os.kill(node.pid, signal.SIGKILL)


def test_the_first_section_leads_to_a_locked_cluster_and_a_client_that_may_write(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = ""  # known when the cluster is up
    variables: dict[str, str] = {}
    for command, shown in commands():
        if command.startswith("export "):
            variables |= dict(word.split("=", 1) for word in shlex.split(command)[1:])
            variables["S"] = variables["S"].replace(ADDRESS, address)
            continue
        if "cluster up" in command:
            command += " --port 0"
        words = shlex.split(command)
        assert words[0] == "barnabas"
        filled = [Template(word).substitute(variables) for word in words[1:]]
        started = [sys.executable, "-m", "barnabas", *filled]
        ran = subprocess.run(started, cwd=folder, capture_output=True, text=True, timeout=120)
        assert ran.returncode == (DENIED if shown.startswith("denied") else 0), (command, ran.stderr)
        assert shown in ran.stdout
        if "cluster up" in command:
            address = LocalCluster(folder / "cluster").nodes[0].address
    client = re.search(r"```python\n(.*?)```", FIRST, re.DOTALL)
    assert client is not None
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(client[1].replace(ADDRESS, address), names)
    reports: list[object] = []
    names["producer"].produce("orders", b"x", on_delivery=lambda error, _: reports.append(error))
    assert names["producer"].flush(60) == 0
    assert reports == [None]
