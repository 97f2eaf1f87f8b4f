"""Whatever is killed while a pipeline runs, zones hold each input once and raw is complete."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")
pytest.importorskip("duckdb", reason="needs the extra `pipeline`")

from barnabas.pipeline.reading import read_pipeline
from barnabas.pipeline.running.asking import asking
from barnabas.pipeline.running.facts import table_version
from barnabas.pipeline.running.lock import is_held
from barnabas.testing.broker import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .lakes import rows_of

SHORT_KILLS = 2
DEFAULT_KILLS = 5
ROWS_PER_KILL = 400
PARTITIONS = 2
PATIENCE_S = 400.0
TOPICS = ("events", "archive")

FILE = """
name: killed
lake: ./lake
spark: {{master: "local[2]", settings: {{spark.driver.memory: 1g}}}}
sources:
  events:
    topic: {{bootstrap.servers: "{bootstrap}", subscribe: events}}
    format: json
    schema: "id STRING, shop STRING, amount BIGINT"
    frequency: real_time
  archive:
    topic: {{bootstrap.servers: "{bootstrap}", subscribe: archive}}
    format: json
    schema: "id STRING, shop STRING, amount BIGINT"
    frequency: {{batch: "* * * * *"}}
staging:
  events: {{source: events, key: [id]}}
  archive: {{source: archive, key: [id]}}
trusted:
  events: {{from: events, rules: [{{range: {{amount: [0, 1000]}}}}]}}
  archive: {{from: archive, rules: [{{range: {{amount: [0, 1000]}}}}]}}
refined:
  large: {{sql: "SELECT id, amount FROM events WHERE amount >= 500"}}
views:
  shops:
    from: trusted.events
    sql: SELECT shop, count(*) AS events, sum(amount) AS amount FROM events GROUP BY shop
    keys: [shop]
    measures: {{events: count, amount: sum}}
    batch: "* * * * *"
serving: {{port: {port}}}
"""


class Model:
    """What was acknowledged, and what must be where."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next = 0
        self.sent: dict[str, list[bytes]] = {topic: [] for topic in TOPICS}
        self.accepted: dict[str, dict[str, tuple[str, int]]] = {topic: {} for topic in TOPICS}
        self.refused: Counter[str] = Counter()

    def records(self, topic: str, number: int) -> Iterator[bytes]:
        for _ in range(number):
            self._next += 1
            key, shop = f"k{self._next}", self._rng.choice(("a", "b", "c"))
            chance = self._rng.random()
            if chance < 0.03:
                self.refused[topic] += 1
                yield b'{"id": "broken'
                continue
            amount = self._rng.randrange(1001) if chance > 0.06 else 5000
            value = json.dumps({"id": key, "shop": shop, "amount": amount}).encode()
            if amount > 1000:
                self.refused[topic] += 1
            else:
                self.accepted[topic][key] = (shop, amount)
            yield value
            if chance > 0.95:
                yield value

    def produce(self, broker: Broker, topic: str, number: int) -> None:
        """Returns when every record is acknowledged."""
        producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
        for value in self.records(topic, number):
            producer.produce(topic, value, partition=self._rng.randrange(PARTITIONS))
            self.sent[topic].append(value)
        assert producer.flush(60) == 0

    def view(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for shop, amount in self.accepted["events"].values():
            count, total = found.get(shop, (0, 0))
            found[shop] = (count + 1, total + amount)
        return found


class Run:
    """`barnabas pipeline run` as a process."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.log = file.with_suffix(".log")
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "barnabas", "pipeline", "run", str(file)], stdout=log, stderr=log
            )

    def processes(self, word: str) -> list[psutil.Process]:
        found = []
        for each in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if any(word in part for part in each.cmdline()):
                    found.append(each)
        return found

    def kill(self, word: str, rng: random.Random) -> bool:
        """kill -9 of one process whose command has the word; False where there is none now."""
        found = self.processes(word)
        if not found:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(found).pid, signal.SIGKILL)
        return True

    def stop(self) -> None:
        self._process.terminate()
        assert self._process.wait(90) == 0

    def end(self) -> None:
        if self._process.poll() is None:
            for each in psutil.Process(self._process.pid).children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    each.kill()
            self._process.kill()
            self._process.wait()


ZONES = (("raw", "events"), ("staging", "events"), ("trusted", "events"), ("refined", "large"))
VICTIMS = ("streaming_app", "batch_app", "pyspark.daemon", "pipeline.serving", "broker", "run")


def strike(victim: str, run: Run, broker: Broker, rng: random.Random) -> Run:
    if victim == "broker":
        broker.kill()
        broker.start()
    elif victim == "run":  # the supervisor itself: what it started must not outlive it for long
        run._process.kill()
        run._process.wait()
        state = run.file.parent / "lake" / "_barnabas"
        wait_until(lambda: not is_held(state), 120, "the processes of a killed run end")
        return Run(run.file)
    else:
        run.kill(victim, rng)
    return run


def versions(lake: Path, zone: tuple[str, str]) -> int:
    return table_version(lake.joinpath(*zone))


def raw_rows(lake: Path, topic: str) -> list[tuple[int, int, bytes]]:
    rows = rows_of(lake, "raw", topic, ["partition", "offset", "value"])
    return [(row["partition"], row["offset"], row["value"]) for row in rows]


def check(lake: Path, model: Model, topic: str) -> None:
    raw = raw_rows(lake, topic)
    assert len({place[:2] for place in raw}) == len(raw), f"{topic}: an offset is twice in raw"
    assert Counter(place[2] for place in raw) == Counter(model.sent[topic])
    valid = {json.loads(value)["id"] for value in model.sent[topic] if not value.endswith(b"broken")}
    assert sorted(row["id"] for row in rows_of(lake, "staging", topic, ["id"])) == sorted(valid)
    trusted = rows_of(lake, "trusted", topic, ["id", "shop", "amount"])
    assert len(trusted) == len(model.accepted[topic])
    assert {row["id"]: (row["shop"], row["amount"]) for row in trusted} == model.accepted[topic]
    refused = rows_of(lake, "quarantine", topic, ["topic", "partition", "offset", "rule"])
    assert len(refused) == len({(row["partition"], row["offset"]) for row in refused})
    assert len(refused) == model.refused[topic]


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_zones_hold_each_input_once(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    asked: int = request.config.getoption("--kills")
    kills = SHORT_KILLS if asked <= DEFAULT_KILLS else asked  # each costs a start of Spark
    rng = random.Random(kills)
    model = Model(rng)
    file, lake = tmp_path / "pipeline.yaml", tmp_path / "lake"
    with Broker(tmp_path / "data", in_process=False) as broker:
        for topic in TOPICS:
            broker.create_topic(topic, partitions=PARTITIONS)
        file.write_text(FILE.format(bootstrap=broker.bootstrap, port=free_ports(1)[0]))
        model.produce(broker, "archive", ROWS_PER_KILL)
        run = Run(file)
        try:
            for number in range(kills):
                # Somewhere in the work: when a batch, or a part of one, has just reached one of the zones.
                zone = rng.choice(ZONES)
                before = versions(lake, zone)
                model.produce(broker, "events", ROWS_PER_KILL)
                model.produce(broker, "archive", ROWS_PER_KILL // 10)
                reached = f"kill {number}: another commit in {zone}"
                wait_until(lambda zone=zone, n=before: versions(lake, zone) > n, PATIENCE_S, reached)
                run = strike(VICTIMS[number % len(VICTIMS)], run, broker, rng)

            def is_done() -> bool:
                return all(len(raw_rows(lake, topic)) >= len(model.sent[topic]) for topic in TOPICS)

            wait_until(is_done, PATIENCE_S, "everything is in raw")
            pipeline = read_pipeline(file)

            def is_served() -> bool:
                with asking(pipeline) as serving:
                    rows = serving.query("shops")["rows"]
                return {row["shop"]: (row["events"], row["amount"]) for row in rows} == model.view()

            wait_until(is_served, PATIENCE_S, "the view has all of it")
            run.stop()
        finally:
            run.end()
    for topic in TOPICS:
        check(lake, model, topic)
    large = {key for key, (_, amount) in model.accepted["events"].items() if amount >= 500}
    assert sorted(row["id"] for row in rows_of(lake, "refined", "large", ["id"])) == sorted(large)
