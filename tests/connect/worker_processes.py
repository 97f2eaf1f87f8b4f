"""Distributed workers as processes of their own: ours, and Apache's from Maven Central."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from barnabas.testing import maven
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

VERSION = "4.3.1"
NAME = f"apache-connect-{VERSION}-log4j2"
LOG4J = "2.25.3"
PARTS = (
    "connect-runtime",
    "connect-file",
    "connect-json",
    "connect-transforms",
    "connect-basic-auth-extension",
)
JARS = (
    *(f"org.apache.kafka:{part}:{VERSION}" for part in PARTS),
    *(f"org.apache.logging.log4j:log4j-{part}:{LOG4J}" for part in ("api", "core", "slf4j-impl")),
)
LOGGING = """
appender.c.type=Console
appender.c.name=c
appender.c.target=SYSTEM_ERR
appender.c.layout.type=PatternLayout
appender.c.layout.pattern=%d %p %m (%c)%n
rootLogger.level=INFO
rootLogger.appenderRef.c.ref=c
"""
STRING = "org.apache.kafka.connect.storage.StringConverter"
SIMPLE_HEADERS = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
JSON = "org.apache.kafka.connect.json.JsonConverter"
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
JAVA = ("java", "-Xmx400m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
STOP_S = 30.0


def apache_jars() -> Path:
    """The folder of Apache's jars; the test is skipped where they cannot be had."""
    reason = maven.missing(NAME, JARS)
    if reason is not None:
        pytest.skip(reason)
    return maven.fetch(NAME, JARS)


def plugin_folder(folder: Path) -> Path:
    """A folder for plugin.path with Apache's file connectors: a worker finds them nowhere else."""
    place = folder / "plugins" / "file"
    place.mkdir(parents=True, exist_ok=True)
    jar = apache_jars() / f"connect-file-{VERSION}.jar"
    shutil.copy(jar, place)
    return place.parent


@dataclass(slots=True)
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    text: bytes = b""

    @property
    def body(self) -> Any:
        return json.loads(self.text) if self.text else None


class WorkerProcess:
    """A worker with its REST API on a port of its own."""

    def __init__(self, folder: Path, bootstrap: str, group: str, *, is_apache: bool, **more: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.is_apache = is_apache
        (self.port,) = free_ports(1)
        self.id = f"127.0.0.1:{self.port}"
        settings = worker_settings(bootstrap, group, self.port)
        if is_apache:
            settings |= {"plugin.path": str(plugin_folder(folder)), "plugin.discovery": "only_scan"}
        settings |= {name.replace("__", "."): text for name, text in more.items()}
        self._file = folder / f"worker-{self.port}.properties"
        self._file.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
        self.log = folder / f"worker-{self.port}.log"
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "barnabas", "connect-distributed", str(self._file)]
        if self.is_apache:
            path = ":".join(str(jar) for jar in apache_jars().glob("*.jar") if "connect-file" not in jar.name)
            logs = self._file.with_suffix(".log4j2.properties")
            logs.write_text(LOGGING)
            logs_flag = f"-Dlog4j2.configurationFile={logs}"
            command = [
                *JAVA,
                logs_flag,
                "-cp",
                path,
                "org.apache.kafka.connect.cli.ConnectDistributed",
                str(self._file),
            ]
        with self.log.open("ab") as out:
            return subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, env=dict(os.environ))

    def restart(self) -> None:
        """Start it again after a kill or a stop, with the same settings."""
        assert self.process.poll() is not None
        self.process = self._started()

    def call(
        self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Send a request; status 0 where no worker answers. Bytes are sent as they are, else JSON."""
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json"} if data is not None else {}
        sent |= headers or {}
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            link.request(method, path, data, {name: text for name, text in sent.items() if text})
            found = link.getresponse()
            names = {name.lower(): text for name, text in found.getheaders()}
            return Answer(found.status, names, found.read())
        except OSError:
            return Answer(0)
        finally:
            link.close()

    def get(self, path: str) -> Any:
        """The body of a GET, None where there is none."""
        found = self.call("GET", path)
        return found.body if found.status == 200 else None

    def wait(self, seconds: float = 120) -> None:
        """Wait until the worker takes part in its group."""
        wait_until(lambda: self.call("GET", "/connectors").status == 200, seconds, self.said)
        wait_until(lambda: self.call("PUT", "/connectors/none/pause").status == 404, seconds, self.said)

    def said(self) -> str:
        return f"worker {self.port}: {self.log.read_text(errors='replace')[-3000:]}"

    def create(self, name: str, config: Mapping[str, str], tasks: int = 1) -> None:
        """Make a connector, and wait until it and its tasks run."""
        body = {"name": name, "config": dict(config)}
        wait_until(lambda: self.call("POST", "/connectors", body).status in (201, 409), 60, self.said)
        self.wait_for(name, "RUNNING", tasks)

    def states(self, name: str) -> tuple[str, list[str]]:
        found = self.get(f"/connectors/{name}/status") or {}
        states = [str(each["state"]) for each in found.get("tasks", ())]
        return str(found.get("connector", {}).get("state")), states

    def wait_for(self, name: str, state: str, tasks: int | None, task_state: str | None = None) -> None:
        wanted = None if tasks is None else [task_state or state] * tasks

        def is_there() -> bool:
            found = self.states(name)
            return found[0] == state and (wanted is None or found[1] == wanted)

        wait_until(is_there, 90, lambda: f"{name} should be {state} with {tasks}: {self.states(name)}")

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_S)
        if self.process.poll() is None:
            self.kill()


def worker_settings(bootstrap: str, group: str, port: int) -> dict[str, str]:
    topics = {
        f"{each}.storage.{name}": text
        for each in ("config", "offset", "status")
        for name, text in (("topic", f"{group}-{each}"), ("replication.factor", "1"))
    }
    return {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "key.converter": STRING,
        "value.converter": STRING,
        "listeners": f"http://127.0.0.1:{port}",
        "offset.flush.interval.ms": "500",
        "offset.storage.partitions": "2",
        "status.storage.partitions": "1",
        "scheduled.rebalance.max.delay.ms": "0",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "300",
        **topics,
    }
