"""Who fills a topic while programs move its records on, and what is left of them in the end."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Sequence
from typing import TextIO

from confluent_kafka import Producer


class Filler(threading.Thread):
    """Values, one after the other, into a topic."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, value: Callable[[int], bytes]) -> None:
        super().__init__(daemon=True)
        self.producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1})
        self.topic, self.partitions, self.value = topic, partitions, value
        self.count = 0
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            self.producer.produce(self.topic, self.value(self.count), partition=self.count % self.partitions)
            self.count += 1
            self.producer.poll(0.001)

    def stop(self) -> None:
        self._stopping.set()
        self.join(60)
        assert self.producer.flush(60) == 0

    @property
    def values(self) -> list[bytes]:
        return [self.value(number) for number in range(self.count)]


class Mover:
    """A program that moves records and prints how many, started again whenever it was killed."""

    def __init__(self, command: Sequence[str]) -> None:
        self.command = command
        self.moved = 0
        self._start()

    def _start(self) -> None:
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._counting = threading.Thread(target=self._count, args=(self.process.stdout,), daemon=True)
        self._counting.start()

    def _count(self, lines: TextIO) -> None:
        with lines:
            for line in lines:
                if line.strip().isdigit():  # else a line that was cut
                    self.moved += int(line)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._counting.join()

    def start_again(self) -> None:
        self.kill()
        self._start()
