"""The files of a node in a process of its own: split as Kafka's, and a request log that is switched while it
runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Producer

from barnabas.runtime.tcp_ports import free_ports

DEADLINE_S = 60
REQUEST_LOGGER = "kafka.request.logger"


def until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def set_level(bootstrap: str, logger: str, level: str) -> None:
    names = ["--entity-type", "broker-loggers", "--entity-name", "1", "--add-config", f"{logger}={level}"]
    command = [sys.executable, "-m", "barnabas", "configs", "--bootstrap-server", bootstrap, "--alter"]
    subprocess.run([*command, *names], check=True, capture_output=True, timeout=60)


def test_lines_are_split_and_the_request_log_is_switched_while_it_runs(tmp_path: Path) -> None:
    [port] = free_ports(1)
    logs = tmp_path / "logs"
    process = subprocess.Popen(
        [
            sys.executable, "-m", "barnabas", "start", "--data", str(tmp_path / "data"), "--port", str(port),
            "--log-dir", str(logs), "--override", "barnabas.logs.request.every=2",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        until(lambda: "is ready at" in text(logs / "server.log"), "the node did not start")
        bootstrap = f"127.0.0.1:{port}"
        producer = Producer({"bootstrap.servers": bootstrap, "client.id": "till"})
        producer.produce("orders", b"1")
        assert producer.flush(30) == 0
        until(lambda: "Leader orders-0 starts" in text(logs / "state-change.log"), "no state change")
        assert "leads the quorum" in text(logs / "controller.log")
        assert text(logs / "kafka-request.log") == ""
        set_level(bootstrap, REQUEST_LOGGER, "DEBUG")
        for number in range(4):
            producer.produce("orders", str(number).encode())
            assert producer.flush(30) == 0
        until(lambda: '"PRODUCE"' in text(logs / "kafka-request.log"), "no request was logged")
        line = next(line for line in text(logs / "kafka-request.log").splitlines() if '"PRODUCE"' in line)
        found = json.loads(line.split("Completed request:")[1].rpartition(" (")[0])
        assert found["requestHeader"]["clientId"] == "till"
        assert found["errors"] == {"NONE": 1}
        assert found["totalTimeMs"] >= found["localTimeMs"] > 0
        set_level(bootstrap, REQUEST_LOGGER, "WARN")
        size = len(text(logs / "kafka-request.log"))
        producer.produce("orders", b"last")
        assert producer.flush(30) == 0
        assert len(text(logs / "kafka-request.log")) == size
    finally:
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0
    assert errors.decode() == "", "nothing is left for standard error"
    assert "stopped" in text(logs / "server.log").splitlines()[-1]
