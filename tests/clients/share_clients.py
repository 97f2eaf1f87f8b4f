"""Share consumers of several clients behind one face, so that one test asks all of them.

`Clients(kind, bootstrap, group, topic).open("ann")` is a member of the group: `poll` returns what it got,
`acknowledge`, `commit` and `close` do what they say. Members of Java and franz-go live in a process of
their own, which `kill` ends without a goodbye.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

import pytest

from barnabas.testing import apache

FOLDER = Path(__file__).parent
FRANZ_GO = "github.com/twmb/franz-go/pkg/kgo@v1.22.2"
RECORDS_MAX = 500
BUILD_TIMEOUT_S = 250.0


class Got(NamedTuple):
    partition: int
    offset: int
    value: str
    delivery_count: int


class Failed(Exception):
    """The client refused a command; the text begins with the name of its error."""


class Member(Protocol):
    def poll(self, timeout_ms: int) -> list[Got]: ...
    def acknowledge(self, got: Got, kind: str = "ACCEPT") -> None: ...
    def commit(self) -> list[str]: ...
    def close(self) -> None: ...


class Clients:
    """Clients of one kind in one group; the end closes all that are open."""

    def __init__(self, kind: str, bootstrap: str, group: str, topic: str) -> None:
        self._open = {"librdkafka": self._open_librdkafka}.get(kind, self._open_remote)
        self._kind = kind
        self._bootstrap, self._group, self._topic = bootstrap, group, topic
        self._program: Program | None = None
        self._members: list[Any] = []

    def open(self, name: str, *, explicit: bool = False, records_max: int = RECORDS_MAX) -> Member:
        member = self._open(name, explicit, records_max)
        self._members.append(member)
        return member

    def _open_librdkafka(self, name: str, explicit: bool, records_max: int) -> Member:
        return LibrdkafkaMember(self._bootstrap, self._group, self._topic, name, explicit, records_max)

    def _open_remote(self, name: str, explicit: bool, records_max: int) -> Member:
        if self._program is None:
            command = COMMANDS[self._kind]()
            self._program = Program([*command, self._bootstrap, self._group, self._topic])
        return RemoteMember(self._program, name, explicit, records_max)

    def kill(self) -> None:
        """End the process of all members that are open: nobody says goodbye."""
        assert self._program is not None, "members of this client live in the process of the test"
        self._program.kill()
        self._program = None
        self._members = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members:
            member.close()
        if self._program is not None:
            self._program.kill()


class LibrdkafkaMember:
    def __init__(
        self, bootstrap: str, group: str, topic: str, name: str, explicit: bool, records_max: int
    ) -> None:
        from confluent_kafka import ShareConsumer

        self._consumer: Any = ShareConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": name,
                "share.acknowledgement.mode": "explicit" if explicit else "implicit",
                "max.poll.records": records_max,
                "topic.metadata.refresh.interval.ms": 1_000,
            }
        )
        self._consumer.subscribe([topic])
        self._messages: dict[tuple[int, int], Any] = {}

    def poll(self, timeout_ms: int) -> list[Got]:
        found = [each for each in self._consumer.poll(timeout_ms / 1000) if each.error() is None]
        self._messages |= {(each.partition(), each.offset()): each for each in found}
        return [
            Got(each.partition(), each.offset(), (each.value() or b"").decode(), each.delivery_count() or 0)
            for each in found
        ]

    def acknowledge(self, got: Got, kind: str = "ACCEPT") -> None:
        from confluent_kafka import AcknowledgeType

        self._consumer.acknowledge(self._messages[got.partition, got.offset], AcknowledgeType[kind])

    def commit(self) -> list[str]:
        results = self._consumer.commit_sync(30.0)
        return [str(error.args[0].name()) for error in results.values() if error is not None]

    def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


class Program:
    """A program that answers each line with a line."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._read() == "ready"

    def ask(self, *words: object) -> list[str]:
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        first, *rest = self._read().split(" ")
        if first != "done":
            raise Failed(" ".join(rest))
        return rest

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


class RemoteMember:
    def __init__(self, program: Program, name: str, explicit: bool, records_max: int) -> None:
        self._program, self._name = program, name
        self._is_open = True
        program.ask("open", name, "explicit" if explicit else "implicit", records_max)

    def poll(self, timeout_ms: int) -> list[Got]:
        found = []
        for word in self._program.ask("poll", self._name, timeout_ms):
            partition, offset, value, count = word.split(":")
            found.append(Got(int(partition), int(offset), value, int(count)))
        return found

    def acknowledge(self, got: Got, kind: str = "ACCEPT") -> None:
        self._program.ask("ack", self._name, got.partition, got.offset, kind)

    def commit(self) -> list[str]:
        return self._program.ask("commit", self._name)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._program.ask("close", self._name)


_folders: dict[str, Path] = {}


def built(name: str, build: Callable[[Path], None]) -> Path:
    """A folder for a program that is built once for all tests of a process."""
    if name not in _folders:
        folder = Path(tempfile.mkdtemp(prefix=f"share-{name}-"))
        build(folder)
        _folders[name] = folder
    return _folders[name]


def remove_built() -> None:
    for folder in _folders.values():
        shutil.rmtree(folder, ignore_errors=True)
    _folders.clear()


def java_command() -> list[str]:
    if (reason := apache.available()) is not None:
        pytest.skip(reason)
    commands: list[list[str]] = []
    folder = built("java", lambda path: commands.append(apache.compiled(FOLDER / "JavaShare.java", path)))
    return (
        commands[0] if commands else [*apache.jvm(*apache.TOOL_FLAGS), "-cp", class_path(folder), "JavaShare"]
    )


def class_path(folder: Path) -> str:
    return f"{apache.jars()}/*:{folder}"


def franz_go_command() -> list[str]:
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    return [str(built("franz-go", build_franz_go) / "share")]


def build_franz_go(folder: Path) -> None:
    shutil.copy(FOLDER / "franz_go_share.go", folder / "main.go")
    for command in (
        ["go", "mod", "init", "share"],
        ["go", "get", FRANZ_GO],
        ["go", "build", "-o", "share", "."],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
        if done.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            pytest.skip(f"{' '.join(command)}: {done.stderr[-500:]}")


COMMANDS = {"java": java_command, "franz-go": franz_go_command}
