"""Whatever is killed while a stream copies a topic: each input is in the output once."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from confluent_kafka import Consumer, TopicPartition

from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

from .topics import consumed, fill

pytest.importorskip("pyspark", reason="needs the extra `spark`")

DRIVER = Path(__file__).with_name("copying_driver.py")
RECORDS = 6000
PARTITIONS = 2
SHORT_KILLS = 3
DEFAULT_KILLS = 5
PATIENCE_S = 240


class Application:
    """The Spark application as a process that is started again when it dies."""

    def __init__(self, *arguments: str) -> None:
        self._command = [sys.executable, str(DRIVER), *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"running\n"

    def ensure(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            self._forget()
        if self._process is None:
            self.start()

    def kill(self) -> None:
        """The driver, its JVM and all workers, as when the machine dies."""
        if self._process is not None:
            driver = psutil.Process(self._process.pid)
            for each in [driver, *driver.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    each.kill()
            self._forget()

    def _forget(self) -> None:
        assert self._process is not None and self._process.stdout is not None
        self._process.wait()
        self._process.stdout.close()
        self._process = None

    def kill_a_worker(self, rng: random.Random) -> None:
        assert self._process is not None
        children = psutil.Process(self._process.pid).children(recursive=True)
        workers = [each for each in children if is_worker(each)]
        if workers:
            os.kill(rng.choice(workers).pid, signal.SIGKILL)


def is_worker(process: psutil.Process) -> bool:
    try:
        return any("pyspark.daemon" in part for part in process.cmdline())
    except psutil.Error:  # it is gone already
        return False


def committed(broker: Broker, topic: str) -> list[int]:
    return [int(message.value()) for message in consumed(broker, topic, PARTITIONS)]


def written(broker: Broker, topic: str) -> int:
    """Offsets of all partitions, those of aborted records and markers included: how far the work is."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    try:
        ends = [
            consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=30)[1]
            for partition in range(PARTITIONS)
        ]
    finally:
        consumer.close()
    return sum(ends)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_input_is_in_the_output_once(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    asked: int = request.config.getoption("--kills")
    kills = SHORT_KILLS if asked <= DEFAULT_KILLS else asked  # each costs a start of Spark
    rng = random.Random(kills)
    with Broker(tmp_path / "data", in_process=False) as broker:
        for topic in ("source", "target"):
            broker.create_topic(topic, partitions=PARTITIONS)
        total = RECORDS * max(1, kills // SHORT_KILLS)
        application = Application(broker.bootstrap, "source", "target", str(tmp_path / "checkpoint"))
        try:
            application.start()
            for number in range(kills):
                start, stop = total * number // kills, total * (number + 1) // kills
                fill(broker, "source", ({"key": str(n), "value": str(n)} for n in range(start, stop)))
                goal = rng.randrange(start, stop)  # somewhere in the work
                wait_until(lambda goal=goal: written(broker, "target") >= goal, PATIENCE_S, f"{goal} records")
                what: Any = rng.choice(("driver", "worker", "broker"))
                if what == "driver":
                    application.kill()
                elif what == "worker":
                    application.kill_a_worker(rng)
                else:
                    broker.kill()
                    broker.start()
                application.ensure()

            def is_copied() -> bool:
                application.ensure()
                return len(committed(broker, "target")) >= total

            wait_until(is_copied, PATIENCE_S + 20 * kills, f"{total} records after {kills} kills")
            assert sorted(committed(broker, "target")) == list(range(total))
        finally:
            application.kill()
