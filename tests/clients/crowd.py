"""A group of worker processes, a producer that feeds them, and a watcher of what they commit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from barnabas.testing.waiting import wait_until

WORKER = Path(__file__).with_name("group_worker.py")
TIMEOUT_S = 60.0
PAUSE_S = 0.05


class Crowd:
    """Workers of one group over one topic; `watch` keeps every committed offset that was ever seen."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, way: str, folder: Path) -> None:
        self.bootstrap, self.topic, self.partitions, self.way = bootstrap, topic, partitions, way
        self.group = f"crowd-{topic}"
        self.folder = folder
        self.workers: list[subprocess.Popen[bytes]] = []
        self.produced = 0
        self.steps_back: list[str] = []
        self.committed = dict.fromkeys(range(partitions), -1)
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._produce, self._watch)]

    def __enter__(self) -> Crowd:
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for each in self._threads:
            each.join(TIMEOUT_S)
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
                worker.wait()

    def add(self) -> subprocess.Popen[bytes]:
        """One more member."""
        output = self.folder / f"{self.topic}-{len(self.workers)}.txt"
        place = [self.bootstrap, self.group, self.topic, self.way, str(output)]
        worker = subprocess.Popen([sys.executable, str(WORKER), *place], stderr=subprocess.DEVNULL)
        self.workers.append(worker)
        return worker

    def pause(self, worker: subprocess.Popen[bytes]) -> None:
        os.kill(worker.pid, signal.SIGSTOP)

    def resume(self, worker: subprocess.Popen[bytes]) -> None:
        os.kill(worker.pid, signal.SIGCONT)

    def kill(self, worker: subprocess.Popen[bytes]) -> None:
        worker.kill()
        worker.wait()

    def processed(self) -> set[tuple[int, int]]:
        found = set()
        for file in self.folder.glob(f"{self.topic}-*.txt"):
            for line in file.read_text().splitlines():
                words = line.split()
                if len(words) == 2 and words[1].isdigit():
                    found.add((int(words[0]), int(words[1])))
        return found

    def progress(self, more: int = 200) -> None:
        """Waits until every partition's committed offset grew, and so many records more were processed."""
        before, done = dict(self.committed), len(self.processed())
        self.until(lambda: all(self.committed[n] > before[n] for n in before), f"commits after {before}")
        self.until(lambda: len(self.processed()) >= done + more, f"{more} records more")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        wait_until(condition, TIMEOUT_S, lambda: f"{what}; committed: {self.committed}")

    def finish(self) -> None:
        """No more records: everything produced is processed and committed, and no offset ever went back."""
        self._stopping.set()
        self._threads[0].join(TIMEOUT_S)
        ends = self.ends()
        self.until(lambda: all(self._ask().get(n) == end for n, end in ends.items()), f"commits up to {ends}")
        wanted = {(n, offset) for n, end in ends.items() for offset in range(end)}
        assert sum(ends.values()) >= self.produced
        assert not wanted - self.processed(), "records that nobody processed"
        assert not self.steps_back

    def ends(self) -> dict[int, int]:
        reader = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "ends"})
        try:
            return {
                n: reader.get_watermark_offsets(TopicPartition(self.topic, n), timeout=30)[1]
                for n in range(self.partitions)
            }
        finally:
            reader.close()

    def _produce(self) -> None:
        settings = {
            "bootstrap.servers": self.bootstrap,
            "message.timeout.ms": 60_000,
            "reconnect.backoff.max.ms": 100,
            "log_level": 0,
        }
        producer = Producer(settings)
        delivered = 0

        def on_delivery(error: object, message: object) -> None:
            nonlocal delivered
            delivered += error is None

        while not self._stopping.is_set():
            for n in range(self.partitions):
                producer.produce(self.topic, b"record", partition=n, on_delivery=on_delivery)
            producer.poll(0.01)
        producer.flush(TIMEOUT_S)
        self.produced = delivered

    def _ask(self) -> dict[int, int]:
        """What is committed, and whether any offset is lower than it was seen before."""
        reader = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.group, "log_level": 0})
        try:
            places = [TopicPartition(self.topic, n) for n in range(self.partitions)]
            found = reader.committed(places, timeout=5)
        except KafkaException:
            return {}
        finally:
            reader.close()
        offsets = {each.partition: each.offset for each in found if each.offset >= 0}
        for n, offset in offsets.items():
            if offset < self.committed[n]:
                self.steps_back.append(f"partition {n}: {offset} after {self.committed[n]}")
            self.committed[n] = max(self.committed[n], offset)
        return offsets

    def _watch(self) -> None:
        while not self._stopping.is_set():
            self._ask()
            self._stopping.wait(PAUSE_S)
