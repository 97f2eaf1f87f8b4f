"""What goes wrong under a pipeline that runs: a state says so, the rest goes on, and nothing is lost or there
twice when it is over. One run for all tests, in their order: a broker, PostgreSQL, a lake on a small disk."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")
pytest.importorskip("duckdb", reason="needs the extra `pipeline`")

import httpx
import psycopg

from barnabas.engine.timeline import CurrentState, Kind, State, Timeline
from barnabas.pipeline.demo import postgres
from barnabas.testing.broker import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .lakes import rows_of
from .test_kills import STARTS_FAST, Run

PATIENCE_S = 600.0
DISK = "64m"
CUSTOMERS = 3

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(
        shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="Spark needs Java"
    ),
]

FILE = """
name: {name}
lake: {lake}
spark: {{master: "local[2]", settings: {{spark.driver.memory: 1g, spark.driver.extraJavaOptions: "{java}"}}}}
sources:
  events:
    topic: {{bootstrap.servers: "{bootstrap}", subscribe: events}}
    format: json
    schema: "id STRING, shop STRING, amount BIGINT, note STRING"
    frequency: real_time
  silent:
    topic: {{bootstrap.servers: "{bootstrap}", subscribe: silent}}
    format: string
    schema: "line STRING"
    frequency: {{near_real_time: 1 second}}
  customers:
    table: {{url: "{url}", table: customers, mode: snapshot,
      user: "${{env:TROUBLE_USER}}", password: "${{env:TROUBLE_PASSWORD}}"}}
    schema: "id BIGINT, name STRING"
    frequency: {{near_real_time: 1 second}}
staging:
  events: {{source: events, key: [id]}}
  silent: {{source: silent}}
  customers: {{source: customers, key: [id]}}
trusted:
  events: {{from: events, rules: [{{range: {{amount: [0, 1000]}}}}]}}
  customers: {{from: customers}}
views:
  shops:
    from: trusted.events
    sql: SELECT shop, count(*) AS events, sum(amount) AS amount FROM events GROUP BY shop
    keys: [shop]
    measures: {{events: count, amount: sum}}
serving: {{port: {port}}}
"""


@contextlib.contextmanager
def small_disk() -> Iterator[Path | None]:
    """A file system that is soon full; None where none may be mounted."""
    folder = Path(tempfile.mkdtemp(prefix="barnabas-disk-"))
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)]
    is_mounted = shutil.which("mount") and not subprocess.run(command, capture_output=True).returncode
    try:
        yield folder if is_mounted else None
    finally:
        if is_mounted:
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


class World:
    def __init__(self, folder: Path, disk: Path | None, broker: Broker, database: postgres.Postgres) -> None:
        self.broker, self.database, self.disk = broker, database, disk
        self.lake = (disk or folder) / "lake"
        self.file = folder / "pipeline.yaml"
        self.port = free_ports(1)[0]
        for topic in ("events", "silent"):
            broker.create_topic(topic, partitions=2)
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            connection.execute("CREATE TABLE customers (id BIGINT PRIMARY KEY, name TEXT)")
        self.add_customers(1, 2)
        self.file.write_text(self.text("troubled"))
        self.accepted: dict[str, tuple[str, int]] = {}
        self.refused = self.sent = 0
        self._ids = itertools.count()
        self.run = Run(self.file)

    def text(self, name: str) -> str:
        return FILE.format(
            name=name,
            lake=self.lake,
            bootstrap=self.broker.bootstrap,
            url=self.database.url,
            port=self.port,
            java=STARTS_FAST,
        )

    def add_customers(self, *ids: int) -> None:
        with psycopg.connect(self.database.dsn, autocommit=True) as connection:
            for number in ids:
                connection.execute("INSERT INTO customers VALUES (%s, %s)", (number, f"c{number}"))

    def produce(self, number: int, **changes: Any) -> None:
        """Records with distinct keys; all that can be parsed are accepted."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap})
        for key in (f"k{next(self._ids)}" for _ in range(number)):
            event = {"id": key, "shop": "ab"[len(self.accepted) % 2], "amount": 7, **changes}
            if isinstance(event["amount"], int):
                self.accepted[key] = (event["shop"], event["amount"])
            else:
                self.refused += 1
            producer.produce("events", json.dumps(event).encode())
            self.sent += 1
        assert producer.flush(60) == 0

    def standing(self, kind: Kind, name: str) -> CurrentState | None:
        found = Timeline(self.lake / "_barnabas").states()
        return next((each for each in found if (each.kind, each.name) == (kind, name)), None)

    def waits(self, kind: Kind, name: str, *words: str) -> None:
        """Until the part waits, and says for what."""

        def is_told() -> bool:
            found = self.standing(kind, name)
            return (
                found is not None
                and found.state == State.WAITING
                and all(word in found.detail for word in words)
            )

        wait_until(is_told, PATIENCE_S, lambda: f"{name} waits for {words}: {self.standing(kind, name)}")

    def served(self) -> dict[str, tuple[int, int]]:
        answer = httpx.get(f"http://127.0.0.1:{self.port}/views/shops", timeout=10.0)
        if answer.status_code == 404:
            return {}  # it was not computed yet
        rows = answer.raise_for_status().json()["rows"]
        return {row["shop"]: (row["events"], row["amount"]) for row in rows}

    def expected(self) -> dict[str, tuple[int, int]]:
        counts = Counter(shop for shop, _ in self.accepted.values())
        sums: Counter[str] = Counter()
        for shop, amount in self.accepted.values():
            sums[shop] += amount
        return {shop: (count, sums[shop]) for shop, count in counts.items()}

    def arrives(self) -> None:
        """Everything that was sent is served, and is in every zone once."""
        wait_until(lambda: self.served() == self.expected(), PATIENCE_S, lambda: f"{self.served()} is served")
        self.check()

    def check(self) -> None:
        raw = rows_of(self.lake, "raw", "events", ["partition", "offset"])
        assert len(raw) == len({(row["partition"], row["offset"]) for row in raw}) == self.sent
        trusted = rows_of(self.lake, "trusted", "events", ["id", "shop", "amount"])
        assert len(trusted) == len(self.accepted)
        assert {row["id"]: (row["shop"], row["amount"]) for row in trusted} == self.accepted
        assert len(rows_of(self.lake, "quarantine", "events", ["offset"])) == self.refused

    def customers(self) -> list[int]:
        return sorted(row["id"] for row in rows_of(self.lake, "trusted", "customers", ["id"]))

    def said(self) -> Iterator[str]:
        """States and the last lines of logs, for a failed test."""
        yield from map(str, Timeline(self.lake / "_barnabas").states())
        for log in (self.lake / "_barnabas" / "logs").glob("*.log"):
            yield from (f"{log.name}: {line[:300]}" for line in log.read_text().splitlines()[-20:])

    def command(self, *arguments: str, file: Path | None = None) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "barnabas", "pipeline", *arguments, "-f", str(file or self.file)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    if reason := postgres.available():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("trouble")
    with (
        small_disk() as disk,
        Broker(folder / "data", in_process=False) as broker,
        postgres.Postgres(password="a secret") as database,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("TROUBLE_USER", database.user)
        patch.setenv("TROUBLE_PASSWORD", database.password)
        found = World(folder, disk, broker, database)
        try:
            yield found
        finally:
            found.run.end()
            for line in found.said():
                print(line)  # of a disk that goes now


def test_an_empty_topic_and_a_changed_column_type_do_not_stop_other_sources(world: World) -> None:
    world.produce(50)
    world.produce(2, amount="many")
    wait_until(lambda: (world.lake / "_barnabas" / "serving.json").exists(), PATIENCE_S, "serving")
    world.arrives()
    reasons = rows_of(world.lake, "quarantine", "events", ["reason"])
    assert {row["reason"] for row in reasons} == {'amount is "many", which is no bigint'}
    wait_until(lambda: world.customers() == [1, 2], PATIENCE_S, "customers")
    silent = world.standing(Kind.SOURCE, "silent")
    assert silent is not None
    assert silent.state == State.IDLE
    assert rows_of(world.lake, "staging", "silent", ["line"]) == []


def test_two_runs_at_once_and_a_lake_of_another_pipeline_are_refused(world: World, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(world.text("another"))
    for arguments in (["run"], ["run", "--once"]):
        second = world.command(*arguments)
        assert second.returncode == 1
        assert f"another run has this lake: pid {world.run.pid} on " in second.stderr
    foreign = world.command("plan", file=other)
    assert foreign.returncode == 1
    assert "belongs to the pipeline 'troubled', not to 'another'" in foreign.stderr
    world.produce(10)
    world.arrives()


def test_a_broker_that_is_stopped_and_started(world: World) -> None:
    world.broker.stop()
    world.waits(Kind.SOURCE, "events", "events cannot be read")
    assert "waiting events: source events cannot be read" in " ".join(world.command("status").stdout.split())
    world.add_customers(CUSTOMERS)  # the others go on
    wait_until(lambda: world.customers() == [1, 2, 3], PATIENCE_S, "customers without a broker")
    world.broker.start()
    world.produce(20)
    world.arrives()


def test_a_database_that_is_stopped_and_started(world: World) -> None:
    world.database.stop()
    world.waits(Kind.SOURCE, "customers", "customers cannot be read")
    standing = world.standing(Kind.SOURCE, "customers")
    assert standing is not None
    assert world.database.password not in standing.detail
    world.produce(20)
    world.arrives()
    world.database.start()
    world.add_customers(CUSTOMERS + 1)
    wait_until(lambda: world.customers() == [1, 2, 3, 4], PATIENCE_S, "customers of a database that is back")


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[None]:
    """No byte is left, until it ends."""
    path = folder / "filler"
    with path.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        for size in (1 << 20, 1 << 12):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
    yield
    path.unlink()


def test_a_full_disk_until_there_is_space(world: World) -> None:
    if world.disk is None:
        pytest.skip("a small file system may not be mounted here")
    before = world.served()
    with filled(world.disk):
        world.produce(300, note="x" * 2000)
        world.waits(Kind.SOURCE, "events", "the disk is full")
        assert world.served() == before
        shown = " ".join(world.command("status").stdout.split())
        assert "waiting events: source events" in shown
        assert "the disk is full" in shown
    world.arrives()
    world.run.stop()
    world.check()
    assert (world.lake / "_barnabas" / "logs" / "streaming.log").read_text().count("ended") == 1
