"""An Apache worker joins the group of ours, gets its share of the work, and takes over topics and offsets."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.testing import Broker, maven
from barnabas.testing.ports import free_ports

VERSION = "4.3.1"
NAME = f"apache-connect-{VERSION}"
PARTS = (
    "connect-runtime",
    "connect-file",
    "connect-json",
    "connect-transforms",
    "connect-basic-auth-extension",
)
JARS = (*(f"org.apache.kafka:{part}:{VERSION}" for part in PARTS), "org.slf4j:slf4j-nop:1.7.36")
STRING = "org.apache.kafka.connect.storage.StringConverter"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def call(method: str, url: str, body: object = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"} if body is not None else {}
    request = urllib.request.Request(url, data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            text = response.read()
            return response.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, None
    except OSError:
        return 0, None


def until(condition: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        time.sleep(0.2)


def worker(folder: Path, bootstrap: str, port: int) -> Path:
    topics = "".join(
        f"{each}.storage.topic=connect-{each}\n{each}.storage.replication.factor=1\n"
        for each in ("config", "offset", "status")
    )
    path = folder / f"worker-{port}.properties"
    path.write_text(
        f"bootstrap.servers={bootstrap}\nkey.converter={STRING}\nvalue.converter={STRING}\ngroup.id=both\n"
        f"listeners=http://127.0.0.1:{port}\noffset.flush.interval.ms=500\n{topics}"
        "scheduled.rebalance.max.delay.ms=0\nplugin.discovery=only_scan\n"
    )
    return path


def owners(url: str) -> dict[str, tuple[str, str]]:
    """Of each connector with a running task: the workers of connector and task."""
    found = {}
    for name, entry in (call("GET", f"{url}/connectors?expand=status")[1] or {}).items():
        status = entry.get("status", {})
        parts = [status.get("connector", {}), *status.get("tasks", ())]
        if len(parts) == 2 and all(each.get("state") == "RUNNING" for each in parts):
            found[name] = (parts[0]["worker_id"], parts[1]["worker_id"])
    return found


@pytest.mark.long
def test_an_apache_worker_shares_the_work_and_takes_over(tmp_path: Path) -> None:
    reason = maven.missing(NAME, JARS)
    if reason is not None:
        pytest.skip(reason)
    jars = maven.fetch(NAME, JARS)
    ours, theirs = free_ports(2)
    processes: list[subprocess.Popen[bytes]] = []
    with Broker() as broker:
        files = {port: worker(tmp_path, broker.bootstrap, port) for port in (ours, theirs)}
        url, other = f"http://127.0.0.1:{ours}", f"http://127.0.0.1:{theirs}"
        try:
            command = [sys.executable, "-m", "barnabas", "connect-distributed", str(files[ours])]
            processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            for number in range(4):
                path = tmp_path / f"in{number}.txt"
                path.write_text("one\n")
                config = {"connector.class": SOURCE, "file": str(path), "topic": f"lines{number}"}
                body = {"name": f"s{number}", "config": config}
                until(lambda body=body: call("POST", f"{url}/connectors", body)[0] == 201)  # type: ignore[misc]
            until(lambda: len(owners(url)) == 4)
            java = ["java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars}/*"]
            java += ["org.apache.kafka.connect.cli.ConnectDistributed", str(files[theirs])]
            processes.append(subprocess.Popen(java, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
            shared = sorted([f"127.0.0.1:{ours}"] * 2 + [f"127.0.0.1:{theirs}"] * 2)
            until(lambda: sorted(task for _, task in owners(other).values()) == shared)
            assert owners(url) == owners(other)
            assert call("PUT", f"{other}/connectors/s0/pause")[0] == 202
            until(lambda: call("GET", f"{url}/connectors/s0/status")[1]["connector"]["state"] == "PAUSED")
            assert call("PUT", f"{url}/connectors/s0/resume")[0] == 202
            until(lambda: bool(call("GET", f"{url}/connectors/s0/offsets")[1]["offsets"]))
            stored = call("GET", f"{url}/connectors/s0/offsets")[1]
            processes[0].kill()
            until(lambda: set(owners(other).values()) == {(f"127.0.0.1:{theirs}",) * 2})
            assert len(owners(other)) == 4
            assert call("GET", f"{other}/connectors/s0/offsets")[1] == stored
        finally:
            for process in processes:
                process.terminate()
                process.wait(30)
