"""A standalone worker in a process of its own, with one connector file; and the records of a topic."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from barnabas.testing.waiting import wait_until


class Worker:
    def __init__(self, folder: Path, bootstrap: str, connectors: list[dict[str, str]], **more: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.offsets = folder / "connect.offsets"
        settings = {
            "bootstrap.servers": bootstrap,
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "offset.storage.file.filename": str(self.offsets),
            "offset.flush.interval.ms": "200",
            "listeners": "http://127.0.0.1:0",
            **more,
        }
        properties = folder / "worker.properties"
        properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        files = []
        for each in connectors:
            path = folder / f"{each['name']}.json"
            path.write_text(json.dumps(each))
            files.append(str(path))
        self.output = folder / "output.txt"
        self._out = self.output.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "barnabas.cli.main", "connect", "standalone", str(properties), *files],
            stdout=self._out,
            stderr=subprocess.STDOUT,
            env=dict(os.environ),
        )

    def text(self) -> str:
        return self.output.read_text(errors="replace")

    def lines(self) -> list[dict[str, Any]]:
        """What connectors told as JSON on standard output."""
        found = []
        for line in self.text().splitlines():
            if line.startswith("{"):
                found.append(json.loads(line))
        return found

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()
        self._out.close()


@contextmanager
def running_worker(
    folder: Path, bootstrap: str, *connectors: dict[str, str], **more: str
) -> Iterator[Worker]:
    worker = Worker(folder, bootstrap, list(connectors), **more)
    try:
        yield worker
    except BaseException:
        print(worker.text()[-4000:])
        raise
    finally:
        worker.stop()


def until(condition: Any, seconds: float = 30.0) -> None:
    wait_until(condition, seconds)
