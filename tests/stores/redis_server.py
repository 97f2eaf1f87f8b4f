"""A Redis server of Debian on loopback, with its own folder."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import redis

from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until


def available() -> str | None:
    return (
        None if shutil.which("redis-server") else "needs redis-server (on Debian: apt install redis-server)"
    )


class RedisServer:
    """Keeps its port through `stop` and `start`; what is written is appended to a file at once."""

    is_needed = True

    def __init__(self, *arguments: str) -> None:
        self.port = free_ports(1)[0]
        self._arguments = arguments
        self._folder = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [
            "redis-server",
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--dir",
            self._folder.name,
        ]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--save", "", *self._arguments]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(self._answers, 20.0)

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as one:
                one.sendall(b"PING\r\n")
                return one.recv(100)[:5] in (b"+PONG", b"-NOAU")
        except OSError:  # refused, or cut off by a server that starts
            return False

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def client(self, **given: Any) -> redis.Redis:
        return redis.Redis(port=self.port, decode_responses=True, **given)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._folder.cleanup()


class RedisCluster:
    """Masters with one replica each, on loopback. A master that is away for a second is replaced."""

    def __init__(self, masters: int = 3) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._output = Path(self._folder.name) / "output"
        self.servers = [
            RedisServer(
                *("--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-node-timeout", "1000"),
                *("--cluster-config-file", "nodes.conf", "--repl-diskless-sync-delay", "0"),
            )
            for bus in free_ports(2 * masters)
        ]

    @property
    def addresses(self) -> list[str]:
        return [f"127.0.0.1:{each.port}" for each in self.servers]

    def client(self) -> redis.RedisCluster:
        host, _, port = self.addresses[0].partition(":")
        return redis.RedisCluster(host, int(port), decode_responses=True)

    def ask(self, number: int, *command: str) -> str:
        """The response of one node to a command of the cluster."""
        [port] = [self.servers[number].port]
        done = subprocess.run(["redis-cli", "-p", str(port), *command], capture_output=True, text=True)
        return done.stdout

    def is_sound(self) -> bool:
        """Whether all nodes that live see each other and each slot has a master."""
        living = [number for number, each in enumerate(self.servers) if each.is_running]
        return all("cluster_state:ok" in self.ask(number, "cluster", "info") for number in living)

    def is_agreed(self) -> bool:
        """Whether all nodes tell the same masters of the same slots, as a move of slots needs it."""
        return self.is_sound() and self.tell("check", self.addresses[0]).wait(60) == 0

    def tell(self, *words: str, arguments: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
        """Start one of the commands of redis-cli that change a cluster, such as reshard."""
        command = ["redis-cli", "--cluster", *words, *arguments, "--cluster-yes"]
        with self._output.open("wb") as output:
            return subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)

    def said(self) -> str:
        """The end of what the last of these commands wrote."""
        return self._output.read_text()[-2000:]

    def __enter__(self) -> Self:
        try:
            for each in self.servers:
                each.start()
            made = self.tell("create", *self.addresses, arguments=("--cluster-replicas", "1"))
            assert made.wait(60) == 0
            wait_until(self.is_sound, 30.0)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self.servers:
            each.__exit__(None, None, None)
        self._folder.cleanup()
