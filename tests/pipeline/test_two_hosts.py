"""Two hosts run one pipeline: one works, the other takes over when it is paused; each row is written once.

The hosts share a lake by its URL, and nothing else: each has its own file and its own state.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")
pytest.importorskip("duckdb", reason="needs the extra `pipeline`")

from barnabas.testing.broker import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .lakes import rows_of

PATIENCE_S = 600.0
FILE = """
name: shared
lake: file://{lake}
spark: {{master: "local[2]", settings: {{spark.driver.memory: 1g,
  spark.driver.extraJavaOptions: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}}}}
sources:
  events:
    topic: {{bootstrap.servers: "{bootstrap}", subscribe: events}}
    format: json
    schema: "id BIGINT"
    frequency: real_time
staging:
  events: {{source: events}}
trusted:
  events: {{from: events}}
serving: {{port: {port}}}
"""


class Host:
    def __init__(self, folder: Path, lake: Path, bootstrap: str) -> None:
        folder.mkdir()
        self.log = folder / "run.log"
        file = folder / "pipeline.yaml"
        file.write_text(FILE.format(lake=lake, bootstrap=bootstrap, port=free_ports(1)[0]))
        command = [sys.executable, "-m", "barnabas", "pipeline", "run", "--standby", str(file)]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def tree(self) -> list[psutil.Process]:
        with contextlib.suppress(psutil.Error):
            found = psutil.Process(self.process.pid)
            return [found, *found.children(recursive=True)]
        return []

    def send(self, number: signal.Signals) -> list[psutil.Process]:
        """To all its processes, as a machine that is suspended or wakes; which they were."""
        found = self.tree()
        for each in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(each.pid, number)
        return found

    def end(self) -> None:
        self.send(signal.SIGCONT)
        self.send(signal.SIGKILL)
        self.process.wait()


@contextlib.contextmanager
def ending(host: Host) -> Iterator[Host]:
    try:
        yield host
    finally:
        host.end()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_host_that_is_paused_is_replaced_and_changes_nothing_when_it_wakes(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with Broker(tmp_path / "data", in_process=False) as broker:
        broker.create_topic("events", partitions=1)
        producer = Producer({"bootstrap.servers": broker.bootstrap})

        def produce(first: int, last: int) -> None:
            for number in range(first, last):
                producer.produce("events", json.dumps({"id": number}).encode())
            assert producer.flush(60) == 0

        def ids(zone: str) -> list[int]:
            return sorted(row["id"] for row in rows_of(lake, zone, "events", ["id"]))

        produce(0, 100)
        with ending(Host(tmp_path / "one", lake, broker.bootstrap)) as one:
            wait_until(lambda: len(ids("trusted")) == 100, PATIENCE_S, "the first host works")
            with ending(Host(tmp_path / "two", lake, broker.bootstrap)) as two:
                produce(100, 200)
                wait_until(lambda: len(ids("trusted")) > 100, PATIENCE_S, "the first host goes on")
                paused = one.send(signal.SIGSTOP)
                produce(200, 300)
                began = time.monotonic()
                wait_until(lambda: len(ids("trusted")) == 300, PATIENCE_S, "the second host took over")
                print(f"rows of the second host after {time.monotonic() - began:.0f} s")
                one.send(signal.SIGCONT)
                produce(300, 400)
                children = [each for each in paused if each.pid != one.process.pid]
                wait_until(
                    lambda: not any(each.is_running() for each in children),
                    PATIENCE_S,
                    "the first host has stopped its applications",
                )
                wait_until(lambda: len(ids("trusted")) >= 400, PATIENCE_S, "the second host goes on")
                two.process.terminate()
                assert two.process.wait(120) == 0
            produce(400, 500)
            wait_until(lambda: len(ids("trusted")) >= 500, PATIENCE_S, "the first host has it again")
            one.process.terminate()
            assert one.process.wait(120) == 0
        everything = list(range(500))
        for zone in ("staging", "trusted"):
            assert ids(zone) == everything
        assert len(rows_of(lake, "raw", "events", ["offset"])) == 500
