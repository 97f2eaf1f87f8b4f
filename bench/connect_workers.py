"""Workers of Connect as processes, ours and Apache's, with what they cost: time to start, CPU, memory."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from barnabas.testing import maven
from barnabas.testing.apache import VERSION
from barnabas.testing.ports import free_ports
from bench.brokers import cpu_seconds

NAME = f"apache-connect-{VERSION}"
PARTS = ("runtime", "file", "json", "transforms", "basic-auth-extension")
JARS = (*(f"org.apache.kafka:connect-{part}:{VERSION}" for part in PARTS), "org.slf4j:slf4j-nop:1.7.36")
STRING = "org.apache.kafka.connect.storage.StringConverter"
START_S, WAIT_S, LOOK_S, START_LOOK_S = 120.0, 600.0, 0.05, 0.01


class Worker:
    """A distributed worker of its own group."""

    def __init__(self, name: str, folder: Path, bootstrap: str, *, is_apache: bool) -> None:
        self.name = name
        folder.mkdir(parents=True)
        (self.port,) = free_ports(1)
        settings = {
            "bootstrap.servers": bootstrap, "group.id": name, "key.converter": STRING,
            "value.converter": STRING, "listeners": f"http://127.0.0.1:{self.port}",
            "offset.flush.interval.ms": "10000", "scheduled.rebalance.max.delay.ms": "0",
            "offset.storage.partitions": "5",
        }  # fmt: skip
        for each in ("config", "offset", "status"):
            settings |= {f"{each}.storage.topic": f"{name}-{each}", f"{each}.storage.replication.factor": "1"}
        file = folder / "worker.properties"
        command = [sys.executable, "-m", "barnabas", "connect-distributed", str(file)]
        if is_apache:
            jars = maven.fetch(NAME, JARS)
            plugins = folder / "plugins" / "file"
            plugins.mkdir(parents=True)
            shutil.copy(jars / f"connect-file-{VERSION}.jar", plugins)
            settings |= {"plugin.path": str(plugins.parent), "plugin.discovery": "only_scan"}
            path = ":".join(str(jar) for jar in jars.glob("*.jar") if "connect-file" not in jar.name)
            command = ["java", "-Xmx1G", "-XX:+UseG1GC", "-cp", path]
            command += ["org.apache.kafka.connect.cli.ConnectDistributed", str(file)]
        file.write_text("".join(f"{key}={text}\n" for key, text in settings.items()))
        started = time.perf_counter()
        with (folder / "log.txt").open("wb") as out:
            self.process = subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, env=dict(os.environ)
            )
        self.until(lambda: self.call("PUT", "/connectors/none/pause")[0] == 404, START_S)
        self.start_s = time.perf_counter() - started

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"} if data is not None else {}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                text = response.read()
                return response.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, None
        except OSError:
            return 0, None

    def until(self, condition: Any, seconds: float = WAIT_S, look_s: float = LOOK_S) -> None:
        deadline = time.perf_counter() + seconds
        while not condition():
            if time.perf_counter() > deadline or self.process.poll() is not None:
                raise RuntimeError(f"{self.name}: what was awaited did not come")
            time.sleep(look_s)

    def create(self, name: str, config: Mapping[str, str]) -> float:
        """Seconds until a task of it runs."""
        started = time.perf_counter()
        body = {"name": name, "config": dict(config)}
        self.until(lambda: self.call("POST", "/connectors", body)[0] in (201, 409))
        self.until(lambda: self._runs(name), look_s=START_LOOK_S)
        return time.perf_counter() - started

    def _runs(self, name: str) -> bool:
        found = self.call("GET", f"/connectors/{name}/status")[1] or {}
        return [each["state"] for each in found.get("tasks", ())] == ["RUNNING"]

    def delete(self, name: str) -> None:
        self.call("DELETE", f"/connectors/{name}")
        self.until(lambda: self.call("GET", f"/connectors/{name}/status")[0] == 404)

    @property
    def cpu_s(self) -> float:
        return cpu_seconds(self.process.pid)

    @property
    def memory_mib(self) -> float:
        text = Path(f"/proc/{self.process.pid}/statm").read_text().split()
        return int(text[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
