"""A Redis server of Debian on loopback, with its own folder."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
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
        with socket.socket() as one:
            one.settimeout(1)
            if one.connect_ex(("127.0.0.1", self.port)):
                return False
            one.sendall(b"PING\r\n")
            return one.recv(100)[:5] in (b"+PONG", b"-NOAU")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

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
