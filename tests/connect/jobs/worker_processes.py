"""A distributed worker in a process of its own, spoken to by REST, and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

START_S = 60.0


class WorkerProcess:
    def __init__(self, folder: Path, bootstrap: str, *, group: str, **more: str) -> None:
        """Workers of one `group` share connectors: those of an earlier test too."""
        folder.mkdir(parents=True, exist_ok=True)
        [self.port] = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "config.storage.topic": f"{group}-configs",
            "status.storage.topic": f"{group}-status",
            "offset.storage.topic": f"{group}-offsets",
            "config.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "exactly.once.source.support": "enabled",
            "scheduled.rebalance.max.delay.ms": "0",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "500",
            "listeners": self.url,
            **{name.replace("_", "."): text for name, text in more.items()},
        }
        self._properties = folder / "worker.properties"
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.output = folder / "output.txt"
        self._start()

    def _start(self) -> None:
        with self.output.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "barnabas.cli.main", "connect", "distributed", str(self._properties)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env=dict(os.environ),
            )
        wait_until(self._answers, START_S)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.text()
        try:
            self.ask("GET", "/connectors")
        except (OSError, urllib.error.URLError):
            return False
        return True

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=90) as response:
            found = response.read()
        return json.loads(found) if found else None

    def create(self, config: dict[str, str]) -> None:
        """Create a connector, again while the workers rebalance (409)."""

        def is_created() -> bool:
            try:
                self.ask("POST", "/connectors", {"name": config["name"], "config": config})
            except urllib.error.HTTPError as error:
                assert error.code == 409, error.read()
                return False
            return True

        wait_until(is_created, START_S)

    def tasks(self) -> dict[str, dict[str, Any]]:
        """What the tasks of this worker tell, by connector; empty while it does not answer."""
        try:
            return {each["connector"]: each for each in self.ask("GET", "/barnabas/tasks")}
        except OSError:
            return {}

    def states(self, name: str) -> set[str]:
        """The states of a connector and its tasks, as REST tells them."""
        found = self.ask("GET", f"/connectors/{name}/status")
        return {found["connector"]["state"], *(task["state"] for task in found["tasks"])}

    def check(self) -> None:
        """No task may have failed."""
        for name in self.ask("GET", "/connectors"):
            for task in self.ask("GET", f"/connectors/{name}/status")["tasks"]:
                assert task["state"] != "FAILED", task["trace"]

    def java(self) -> list[int]:
        """The process ids of the Java processes that this worker started."""
        found = subprocess.run(
            ["ps", "-o", "pid=,comm=", "--ppid", str(self.process.pid)],
            capture_output=True,
            text=True,
            check=False,
        )
        return [int(line.split()[0]) for line in found.stdout.splitlines() if line.split()[1] == "java"]

    def kill_java(self) -> None:
        for pid in self.java():
            os.kill(pid, signal.SIGKILL)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def restart(self) -> None:
        self._start()

    def text(self) -> str:
        return self.output.read_text(errors="replace")[-6000:]

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
