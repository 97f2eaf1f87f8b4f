"""The two contenders: our broker and Apache Kafka, each a child process on a folder of the same disk.

In: a folder. Out: a running broker, its port, its memory, and its topics.
confluent-kafka creates the topics, so that both get the same requests.
Does not know: what is measured.
"""

from __future__ import annotations

import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from barnabas.settings.one_machine import one_node_properties
from barnabas.testing.apache import ApacheKafka, answers
from barnabas.testing.ports import free_ports
from bench import frames

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 60.0
USABLE_TIMEOUT_S = 120.0
# Deleted files are removed at once, so that a round does not write back pages of the previous one.
# As on the Apache Kafka node: groups start without a delay, and one partition holds them all.
AS_APACHE = (
    "group.initial.rebalance.delay.ms=0",
    "offsets.topic.num.partitions=1",
    "transaction.state.log.num.partitions=1",
)
TOPIC_CONFIGS = {"file.delete.delay.ms": "1000"}


ClientValue = str | int | float | bool


class BrokerError(Exception):
    """A broker did not start, or a topic did not come up."""


class Contender(Protocol):
    name: str

    @property
    def data(self) -> Path:
        """Its log directory."""

    @property
    def port(self) -> int: ...
    @property
    def pid(self) -> int: ...

    tls_port: int  # 0 before `secure`

    def secure(self, stores: Mapping[str, str]) -> None:
        """Open a TLS listener with these stores beside the other one, from the next start on."""

    def start(self) -> float:
        """Start the process; return the seconds until its first response."""

    def stop(self) -> None:
        """Shut down cleanly; the folder stays."""

    def close(self) -> None:
        """End the process and remove the folder."""


class Barnabas:
    """Our broker as a child process; `prefix` is a command to run it under, such as a profiler."""

    name = "Barnabas"

    def __init__(
        self,
        folder: Path | None = None,
        prefix: Sequence[str] = (sys.executable,),
        overrides: Mapping[str, str] | None = None,
    ) -> None:
        self._worker = Path(tempfile.mkdtemp(prefix="barnabas-bench-", dir=folder))
        self._settings = [*AS_APACHE, *(f"{name}={value}" for name, value in (overrides or {}).items())]
        self.port = free_ports(1)[0]
        self.tls_port = 0
        self._prefix = list(prefix)
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def data(self) -> Path:
        return self._worker / "data"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def secure(self, stores: Mapping[str, str]) -> None:
        self.tls_port, controller_port = free_ports(2)
        properties = one_node_properties(self.port, controller_port)
        properties |= with_tls(properties["listeners"], self.tls_port) | stores
        self._settings += [f"{name}={value}" for name, value in properties.items()]

    def start(self) -> float:
        arguments = ["-m", "barnabas", "start", "--data", str(self.data)]
        if not self.tls_port:
            arguments += ["--port", str(self.port)]
        for setting in self._settings:
            arguments += ["--override", setting]
        began = time.perf_counter()
        with (self._worker / "output.txt").open("wb") as output:
            self.process = subprocess.Popen(
                [*self._prefix, *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        while not answers("127.0.0.1", self.port):
            if self.process.poll() is not None or time.perf_counter() - began > START_TIMEOUT_S:
                printed = self.printed()
                self.close()
                raise BrokerError(f"Barnabas did not start: {printed}")
            time.sleep(0.002)
        return time.perf_counter() - began

    def printed(self) -> str:
        """The end of what it wrote to standard output and error."""
        return (self._worker / "output.txt").read_text()[-2000:]

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise BrokerError(f"Barnabas did not stop within {STOP_TIMEOUT_S:.0f} s") from None
            finally:
                self.process = None

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        shutil.rmtree(self._worker, ignore_errors=True)


class Apache:
    """Apache Kafka with its usual heap of 1 GiB."""

    name = "Apache Kafka"

    def __init__(self, overrides: Mapping[str, str] | None = None) -> None:
        self._node = ApacheKafka(overrides=overrides)
        self.tls_port = 0

    def secure(self, stores: Mapping[str, str]) -> None:
        self.tls_port = free_ports(1)[0]
        plain = f"PLAINTEXT://127.0.0.1:{self._node.port},CONTROLLER://127.0.0.1:{self._node.controller_port}"
        self._node.override({**with_tls(plain, self.tls_port), **stores})

    @property
    def data(self) -> Path:
        return self._node.data

    @property
    def port(self) -> int:
        return self._node.port

    @property
    def pid(self) -> int:
        return self._node.pid

    def start(self) -> float:
        began = time.perf_counter()
        self._node.start()
        return time.perf_counter() - began

    def stop(self) -> None:
        self._node.stop()

    def close(self) -> None:
        self._node.close()


def with_tls(listeners: str, port: int) -> dict[str, str]:
    """These listeners and one with TLS."""
    return {
        "listeners": f"{listeners},TLS://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL",
    }


def memory_bytes(pid: int) -> int:
    """The memory of a process (PSS: shared pages divided among their users), or RSS if PSS is unknown."""
    for file, field in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        try:
            text = Path(f"/proc/{pid}/{file}").read_text()
        except OSError:
            continue
        for line in text.splitlines():
            if line.startswith(field):
                return int(line.split()[1]) * 1024
    return int(subprocess.check_output(["ps", "-o", "rss=", "-p", str(pid)])) * 1024


def ask(port: int, frame: bytes, timeout_s: float = 30.0) -> bytes:
    """Send one request on a connection of its own; return the response without its size."""
    with socket.create_connection(("127.0.0.1", port), timeout_s) as connection:
        connection.sendall(frame)
        with connection.makefile("rb") as stream:
            head = stream.read(4)
            if len(head) < 4:
                raise BrokerError("connection closed by the broker")
            return stream.read(struct.unpack(">i", head)[0])


def wait_until_usable(broker: Contender, topics: Mapping[str, int]) -> None:
    """Wait until the leader of every partition responds to ListOffsets."""
    question = frames.list_offsets(dict(topics))
    deadline = time.perf_counter() + USABLE_TIMEOUT_S
    while errors := frames.list_offsets_errors(ask(broker.port, question)):
        if time.perf_counter() > deadline:
            raise BrokerError(f"{len(errors)} partitions do not come up on {broker.name}, error {errors[0]}")
        time.sleep(0.005)


def client_settings(broker: Contender, **others: ClientValue) -> dict[str, ClientValue]:
    """Settings of confluent-kafka's clients: the address, and no logs other than errors."""
    return {"bootstrap.servers": f"127.0.0.1:{broker.port}", "log_level": 3, **others}


def create_topics(
    broker: Contender, topics: Mapping[str, int], configs: Mapping[str, str] | None = None
) -> None:
    """Create topics by name and number of partitions, and wait until they can be used."""
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient(client_settings(broker))
    settings = TOPIC_CONFIGS | dict(configs or {})
    wanted = [NewTopic(name, count, 1, config=settings) for name, count in topics.items()]
    for future in admin.create_topics(wanted, request_timeout=USABLE_TIMEOUT_S).values():
        future.result()
    wait_until_usable(broker, topics)


def delete_topics(broker: Contender, *names: str) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(client_settings(broker))
    for future in admin.delete_topics(list(names)).values():
        future.result()


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has used."""
    values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")
