"""A Kafka Streams application in tests: instances of `JavaStreams` as processes that are asked and killed.

In: a broker's address, topics, settings. Out: instances, and the counts that the application wrote.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.testing import apache, maven
from barnabas.testing.waiting import wait_until

PROGRAM = Path(__file__).parent / "JavaStreams.java"
COUNTED_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
# Heartbeats and sessions that are short, so that nothing waits for seconds.
BROKER_SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "300",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "4000",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}


def require_streams() -> None:
    """Skip where Kafka Streams cannot be had."""
    try:
        apache.streams_jars()
    except maven.MavenError as error:
        pytest.skip(str(error))


class Instance:
    """One process of the application. Its errors go to a file beside its state."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.errors = folder / "errors.txt"
        with self.errors.open("a") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )

    def ask(self, word: str) -> list[str]:
        """The words of the response, without the first."""
        sent, told = self._process.stdin, self._process.stdout
        assert sent is not None and told is not None
        sent.write(word + "\n")
        sent.flush()
        line = told.readline()
        assert line, f"the instance has ended: {self.errors.read_text()[-2000:]}"
        return line.split()[1:]

    def tasks(self, kind: str = "active") -> set[str]:
        return {each.partition(":")[2] for each in self.ask("tasks") if each.startswith(kind)}

    def close(self) -> None:
        self.ask("close")
        self._process.wait(STOP_TIMEOUT_S)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(STOP_TIMEOUT_S)
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


class Application:
    """A word count. `write` adds words and remembers how many there are of each."""

    def __init__(self, bootstrap: str, folder: Path, name: str, source: str, target: str) -> None:
        self._bootstrap, self._folder, self._name = bootstrap, folder, name
        self._source, self._target = source, target
        self._command = apache.compiled(PROGRAM, folder, streams=True)
        self._written: Counter[str] = Counter()
        self._made = 0
        self.instances: list[Instance] = []

    def start(self, *settings: str, state: str = "") -> Instance:
        self._made += 1
        folder = self._folder / (state or f"state-{self._made}")
        own = [
            f"bootstrap.servers={self._bootstrap}",
            f"application.id={self._name}",
            f"state.dir={folder}",
            "processing.guarantee=exactly_once_v2",
            "transaction.timeout.ms=5000",
        ]
        found = Instance([*self._command, self._source, self._target, *own, *settings], folder)
        self.instances.append(found)
        return found

    def write(self, words: Sequence[str], times: int) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap})
        for _ in range(times):
            for word in words:
                producer.produce(self._source, key=word, value=word)
                self._written[word] += 1
        assert producer.flush(30) == 0

    def wait_until_counted(self) -> None:
        """Until the last count of every word is that of the words written; none was counted twice."""
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": f"{self._name}-reader",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        consumer.subscribe([self._target])
        counts: dict[str, list[int]] = {}

        def is_complete() -> bool:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                counts.setdefault(message.key().decode(), []).append(int(message.value()))
            return {word: len(found) for word, found in counts.items()} == self._written

        try:
            wait_until(is_complete, COUNTED_TIMEOUT_S, lambda: f"{self._written} words, {counts}"[:2000])
        finally:
            consumer.close()
        for word, found in counts.items():
            assert found == list(range(1, len(found) + 1)), f"{word} was not counted one by one"

    def stop(self) -> None:
        for instance in self.instances:
            instance.kill()
