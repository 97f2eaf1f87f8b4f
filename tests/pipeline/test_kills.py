"""Whatever is killed while a pipeline runs, zones hold each input once and raw is complete."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")
pytest.importorskip("duckdb", reason="needs the extra `pipeline`")

from barnabas.engine.delta.log import table_version
from barnabas.engine.lock import is_held
from barnabas.pipeline.file.reading import read_pipeline
from barnabas.pipeline.serving.access import open_queries
from barnabas.pipeline.serving.http.client import ServingError
from barnabas.testing.broker import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .lakes import rows_of

SHORT_KILLS = 2
DEFAULT_KILLS = 5
ROWS_PER_KILL = 400
LONG_ROUNDS = 5  # of all kinds of victims
MOMENT_S_MAX = 8.0
FLOW_PAUSE_S = 0.1
FLOW_ROWS = 12
PARTITIONS = 2
PATIENCE_S = 400.0
TOPICS = ("events", "archive")
STARTS_FAST = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"  # what lives for a minute is not worth compiling well
)

FILE = """
name: killed
lake: ./lake
spark: {{master: "local[2]", settings: {{spark.driver.memory: 1g, spark.driver.extraJavaOptions: "{java}"}}}}
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


@dataclass(frozen=True, slots=True)
class Record:
    partition: int
    offset: int
    value: bytes


class Generator:
    """Orders of a shop: new ones, repeated ones, broken ones, and amounts that a rule refuses."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._next = 0
        self._earlier: list[bytes] = []
        self.acknowledged: dict[str, Counter[bytes]] = {topic: Counter() for topic in TOPICS}

    def values(self, number: int) -> Iterator[bytes]:
        for _ in range(number):
            self._next += 1
            chance = self._rng.random()
            if chance < 0.03:
                yield b'{"id": "broken'
                continue
            amount = self._rng.randrange(1001) if chance > 0.06 else 5000
            event = {"id": f"k{self._next}", "shop": self._rng.choice("abc"), "amount": amount}
            value = json.dumps(event).encode()
            yield value
            if chance > 0.95:
                yield value
            if chance > 0.98:
                self._earlier.append(value)
            if chance > 0.99:
                yield self._rng.choice(self._earlier)

    def produce(self, producer: Producer, topic: str, number: int) -> None:
        def told(error: object, message: Message) -> None:
            assert error is None, error
            self.acknowledged[topic][message.value()] += 1

        for value in self.values(number):
            producer.produce(topic, value, partition=self._rng.randrange(PARTITIONS), on_delivery=told)
        producer.poll(0)


@contextlib.contextmanager
def producing(broker: Broker) -> Iterator[Producer]:
    """When it ends, every record is acknowledged."""
    producer = Producer(
        {"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "message.timeout.ms": 300_000}
    )
    yield producer
    assert producer.flush(300) == 0


@contextlib.contextmanager
def flowing(generator: Generator, broker: Broker) -> Iterator[None]:
    """Records come all the time, whatever happens meanwhile."""
    stopping, errors = threading.Event(), list[BaseException]()

    def flow() -> None:
        try:
            with producing(broker) as producer:
                while not stopping.wait(FLOW_PAUSE_S):
                    generator.produce(producer, "events", FLOW_ROWS)
                    generator.produce(producer, "archive", FLOW_ROWS // 4)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=flow)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
    assert not errors, errors


def records_of(broker: Broker, topic: str) -> list[Record]:
    """All of a topic, as another client reads it."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "check"})
    ends = {
        number: consumer.get_watermark_offsets(TopicPartition(topic, number), 30)[1]
        for number in range(PARTITIONS)
    }
    found: list[Record] = []
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    while len(found) < sum(ends.values()):
        for message in consumer.consume(1000, 1.0):
            assert message.error() is None, message.error()
            found.append(Record(message.partition(), message.offset(), message.value()))
    consumer.close()
    return found


class Expected:
    """The expected content of each zone, computed from a topic by plain Python."""

    def __init__(self, records: list[Record]) -> None:
        self.records = records
        self.staged: dict[str, tuple[str, int]] = {}
        self.malformed = 0
        for record in records:
            try:
                event = json.loads(record.value)
            except ValueError:
                self.malformed += 1
                continue
            self.staged.setdefault(event["id"], (event["shop"], event["amount"]))
        self.accepted = {key: event for key, event in self.staged.items() if event[1] <= 1000}
        self.refused = self.malformed + len(self.staged) - len(self.accepted)

    def view(self) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for shop, amount in self.accepted.values():
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

    @property
    def pid(self) -> int:
        return self._process.pid

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
    """kill -9 of one of them; what is being started now is waited for."""
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
        wait_until(lambda: run.kill(victim, rng), PATIENCE_S, f"there is a process {victim}")
    return run


def versions(lake: Path, zone: tuple[str, str]) -> int:
    return table_version(lake.joinpath(*zone))


def rows_in(lake: Path, topic: str) -> int:
    return len(rows_of(lake, "raw", topic, ["offset"]))


def check(lake: Path, expected: Expected, topic: str) -> None:
    raw = rows_of(lake, "raw", topic, ["topic", "partition", "offset", "value"])
    assert {row["topic"] for row in raw} == {topic}
    places = Counter(Record(row["partition"], row["offset"], row["value"]) for row in raw)
    assert places == Counter(expected.records), f"{topic}: raw is the topic, each record once"
    staged = rows_of(lake, "staging", topic, ["id", "shop", "amount"])
    assert len(staged) == len(expected.staged)
    assert {row["id"]: (row["shop"], row["amount"]) for row in staged} == expected.staged
    trusted = rows_of(lake, "trusted", topic, ["id", "shop", "amount"])
    assert len(trusted) == len(expected.accepted)
    assert {row["id"]: (row["shop"], row["amount"]) for row in trusted} == expected.accepted
    refused = rows_of(lake, "quarantine", topic, ["topic", "partition", "offset", "rule"])
    assert len(refused) == len({(row["partition"], row["offset"]) for row in refused})
    rules = Counter(row["rule"] for row in refused)
    assert rules["malformed"] == expected.malformed
    assert len(refused) == expected.refused


class Watch:
    """The view as it is served meanwhile: what it counted, it does not forget."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/views/shops"
        self._seen: dict[str, int] = {}
        self.answers = 0

    def look(self) -> None:
        try:
            answer = httpx.get(self._url, timeout=5.0)
        except httpx.TransportError:
            return  # it was killed
        if answer.status_code != 200:
            return  # the view is not there yet
        self.answers += 1
        found = {row["shop"]: row["events"] for row in answer.json()["rows"]}
        for shop, count in self._seen.items():
            assert found.get(shop, 0) >= count, f"{shop}: {count} events were served before, now {found}"
        self._seen = found


class World:
    """A broker, a file, and the platform as it runs on them."""

    def __init__(self, folder: Path, broker: Broker, rng: random.Random) -> None:
        self.rng = rng
        self.broker = broker
        self.generator = Generator(rng)
        self.file, self.lake = folder / "pipeline.yaml", folder / "lake"
        for topic in TOPICS:
            broker.create_topic(topic, partitions=PARTITIONS)
        port = free_ports(1)[0]
        self.watch = Watch(port)
        self.file.write_text(FILE.format(bootstrap=broker.bootstrap, port=port, java=STARTS_FAST))
        self.run = Run(self.file)

    def produce(self, **rows: int) -> None:
        with producing(self.broker) as producer:
            for topic, number in rows.items():
                self.generator.produce(producer, topic, number)

    def end(self) -> None:
        """Nothing is killed any more: all of it arrives, is served, and is what the model says."""
        expected = {topic: Expected(records_of(self.broker, topic)) for topic in TOPICS}
        for topic in TOPICS:
            values = Counter(record.value for record in expected[topic].records)
            assert values >= self.generator.acknowledged[topic], "the broker has what it acknowledged"

        def is_done() -> bool:
            self.watch.look()
            return all(rows_in(self.lake, topic) >= len(expected[topic].records) for topic in TOPICS)

        wait_until(is_done, PATIENCE_S, "everything is in raw")
        pipeline = read_pipeline(self.file)

        def is_served() -> bool:
            self.watch.look()
            try:
                with open_queries(pipeline) as serving:
                    rows = serving.query("shops")["rows"]
            except ServingError:
                return False  # it was killed, and is being started
            found = {row["shop"]: (row["events"], row["amount"]) for row in rows}
            return found == expected["events"].view()

        wait_until(is_served, PATIENCE_S, "the view has all of it")
        self.run.stop()
        for topic in TOPICS:
            check(self.lake, expected[topic], topic)
        large = {key for key, (_, amount) in expected["events"].accepted.items() if amount >= 500}
        assert sorted(row["id"] for row in rows_of(self.lake, "refined", "large", ["id"])) == sorted(large)


@contextlib.contextmanager
def world(folder: Path, seed: int) -> Iterator[World]:
    with Broker(folder / "data", in_process=False) as broker:
        found = World(folder, broker, random.Random(seed))
        try:
            yield found
        finally:
            found.run.end()


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_zones_hold_each_input_once(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    asked: int = request.config.getoption("--kills")
    kills = SHORT_KILLS if asked <= DEFAULT_KILLS else asked  # each costs a start of Spark
    with world(tmp_path, kills) as found:
        found.produce(archive=ROWS_PER_KILL)
        for number in range(kills):
            # Somewhere in the work: when a batch, or a part of one, has just reached one of the zones.
            zone = found.rng.choice(ZONES)
            before = versions(found.lake, zone)
            found.produce(events=ROWS_PER_KILL, archive=ROWS_PER_KILL // 10)
            reached = f"kill {number}: another commit in {zone}"
            wait_until(lambda zone=zone, n=before: versions(found.lake, zone) > n, PATIENCE_S, reached)
            found.run = strike(VICTIMS[number % len(VICTIMS)], found.run, found.broker, found.rng)
        found.end()


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_tens_of_kills_at_random_while_records_flow(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Every kind of process at least five times, in any order: after a commit in a zone, or at any moment."""
    asked: int = request.config.getoption("--kills")
    with world(tmp_path, asked) as found:
        rng = found.rng
        victims = [*VICTIMS] * max(LONG_ROUNDS, asked // len(VICTIMS))
        rng.shuffle(victims)
        with flowing(found.generator, found.broker):
            for number, victim in enumerate(victims):
                zone = rng.choice(ZONES)
                before = versions(found.lake, zone)
                moment = time.monotonic() + rng.uniform(0.0, MOMENT_S_MAX)
                by_commit = rng.random() < 0.4

                def is_time(
                    zone: tuple[str, str] = zone,
                    before: int = before,
                    moment: float = moment,
                    by_commit: bool = by_commit,
                ) -> bool:
                    found.watch.look()
                    return versions(found.lake, zone) > before if by_commit else time.monotonic() > moment

                wait_until(is_time, PATIENCE_S, f"kill {number}: another commit in {zone}")
                found.run = strike(victim, found.run, found.broker, rng)
                print(f"kill {number}: {victim}, {'commit in ' + zone[0] if by_commit else 'any moment'}")
        found.end()
        assert found.watch.answers > len(victims)
