"""Tasks of connectors in Java, from Maven Central, as the judges of what ours read and write."""

from __future__ import annotations

import base64
import json
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.stores.java_servers import JavaServer

from barnabas.testing.waiting import wait_until

KAFKA = "4.3.1"
START_S_MAX = 60.0
MONGO = JavaServer(
    "mongo-kafka-connect-2.0.1",
    (
        "org.mongodb.kafka:mongo-kafka-connect:2.0.1",
        f"org.apache.kafka:connect-api:{KAFKA}",
        f"org.apache.kafka:connect-json:{KAFKA}",
        "org.slf4j:slf4j-simple:1.7.36",
    ),
    "TestConnector",
    "TestConnector.java",
)
MONGO_SOURCE = "com.mongodb.kafka.connect.source.MongoSourceTask"
MONGO_SINK = "com.mongodb.kafka.connect.sink.MongoSinkTask"
Read = tuple[str, Any, Any]  # topic, key and value with their schemas, as JsonConverter writes them


def command(server: JavaServer, kind: str, task: str, folder: Path, config: Mapping[str, str]) -> list[str]:
    file = folder / "task.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
    return ["java", *server.flags, quiet, "-cp", server.class_path(), server.main, kind, task, str(file)]


class Reading:
    """A source task that runs; what it read until now is in `records`."""

    def __init__(self, output: Path) -> None:
        self._output = output

    @property
    def lines(self) -> list[str]:
        return self._output.read_text().split("\n")[:-1]

    @property
    def records(self) -> list[Read]:
        found = [line.split("\t") for line in self.lines if line.count("\t") == 2]
        return [(topic, json.loads(key), json.loads(value)) for topic, key, value in found]


@contextmanager
def reading(server: JavaServer, task: str, config: Mapping[str, str]) -> Iterator[Reading]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with (home / "out").open("wb") as out, (home / "log").open("wb") as log:
            process = subprocess.Popen(
                command(server, "source", task, home, config),
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=log,
            )
        found = Reading(home / "out")
        try:
            wait_until(lambda: process.poll() is not None or "started" in found.lines, START_S_MAX)
            assert process.poll() is None, (home / "log").read_text()[-3000:]
            yield found
        finally:
            process.kill()
            process.communicate()


def write(
    server: JavaServer, task: str, config: Mapping[str, str], records: Sequence[tuple[str, int, Any, Any]]
) -> None:
    """Write topic, offset, key and value of partition 0; both as JSON with schemas, None for nothing."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [f"{topic}\t0\t{at}\t{sent(key)}\t{sent(value)}\n" for topic, at, key, value in records]
        done = subprocess.run(
            command(server, "sink", task, Path(folder), config),
            input="".join(lines).encode(),
            capture_output=True,
            timeout=120,
        )
        assert b"written" in done.stdout, done.stderr.decode()[-3000:]


def sent(value: Any) -> str:
    return "" if value is None else base64.b64encode(json.dumps(value).encode()).decode()


def differences(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """The places where two values differ, one line each."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return [
            line
            for name in {**ours, **theirs}
            for line in differences(ours.get(name, "nothing"), theirs.get(name, "nothing"), f"{path}.{name}")
        ]
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple) and len(ours) == len(theirs):
        both = enumerate(zip(ours, theirs, strict=True))
        return [line for at, (one, other) in both for line in differences(one, other, f"{path}[{at}]")]
    is_equal = type(ours) is type(theirs) and ours == theirs
    return [] if is_equal else [f"{path}: ours {ours!r}, theirs {theirs!r}"]
