"""A Debezium is stopped in the middle, ours goes on at its offset, and a Debezium goes on at ours."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

from barnabas.pipeline.demo import postgres
from barnabas.testing import mysql
from barnabas.testing.waiting import wait_until
from connect.connectors.against_debezium import mysql_runs, postgres_runs
from connect.connectors.against_debezium.postgres_cases import Case
from connect.connectors.against_debezium.running import Debezium, Event, Written, running
from connect.connectors.contexts import frozen

pytestmark = pytest.mark.long
TABLES = ["CREATE TABLE counted (id int PRIMARY KEY, v int)", "INSERT INTO counted VALUES (-1, 0), (-2, 0)"]
REPEATED_MAX = 60  # what Debezium may send again: the transactions since its last stored offset


class Writer:
    """Writes numbers that go up, a few rows in a transaction, until it is stopped."""

    def __init__(self, execute: Callable[[str], None]) -> None:
        self._execute = execute
        self._stop = threading.Event()
        self.last = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(0.01):
            size = self.last % 7 + 1
            rows = ", ".join(f"({self.last + each}, 0)" for each in range(1, size + 1))
            self._execute(f"INSERT INTO counted VALUES {rows}")
            self.last += size

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.last


def ids(events: list[Event]) -> list[int]:
    found = []
    for each in events:
        if each.topic.endswith(".counted") and each.value is not None:
            payload = json.loads(each.value)["payload"]
            assert payload["op"] in "cr"
            found.append(payload["after"]["id"])
    return found


def in_order(found: list[int]) -> int:
    """How many rows came again; a gap or another order fails."""
    reached, repeated = 0, 0
    for each in found:
        assert each <= reached + 1, f"{reached + 1} is missing before {each}"
        repeated += each <= reached
        reached = max(reached, each)
    return repeated


def handed_over(debezium: Debezium, run: Any, own_of: Callable[[], Any]) -> None:
    worker, name = debezium.worker, run.prefix
    writer = Writer(run.execute)
    with ExitStack() as stack:
        stack.callback(writer.stop)
        worker.create(name, run.config("both"))
        wait_until(lambda: len(ids(debezium.events(name))) > 150, 90, lambda: f"{debezium.failure(name)}")
        assert worker.call("PUT", f"/connectors/{name}/stop").status == 204
        worker.wait_for(name, "STOPPED", 0)
        [entry] = worker.get(f"/connectors/{name}/offsets")["offsets"]
        theirs = [each for each in ids(debezium.events(name)) if each > 0]
        before = writer.last
        own = own_of()
        stack.callback(own.stop)
        own.offsets[frozen(entry["partition"])] = entry["offset"]
        own.restart()
        own.until(lambda: len(ids(Written().events(own.batches))) > 200 and writer.last > before, 60)
        own.stop()
        ours = ids(Written().events(own.batches))
        [(partition, offset)] = own.offsets.items()
        body = {"offsets": [{"partition": dict(partition), "offset": offset}]}
        answer = worker.call("PATCH", f"/connectors/{name}/offsets", body)
        assert answer.status == 200, answer
        assert worker.call("PUT", f"/connectors/{name}/resume").status == 202
        worker.wait_for(name, "RUNNING", 1)
        wait_until(lambda: max(ids(debezium.events(name))) > max(ours) + 50, 60,
                   lambda: f"{debezium.failure(name)}")  # fmt: skip
        last = writer.stop()
        wait_until(lambda: max(ids(debezium.events(name))) >= last, 60)
        again = [each for each in ids(debezium.events(name)) if each > 0][len(theirs) :]
        worker.call("DELETE", f"/connectors/{name}")
    assert in_order(theirs) == 0
    assert ours[0] <= theirs[-1] + 1, "ours left out rows behind Debezium's offset"
    assert in_order(theirs + ours) <= REPEATED_MAX
    assert again[0] <= ours[-1] + 1, "Debezium left out rows behind our offset"
    assert in_order(theirs + ours + again) <= 2 * REPEATED_MAX


@pytest.fixture
def postgresql() -> Iterator[postgres.Postgres]:
    if reason := postgres.available():
        pytest.skip(reason)
    with postgres.Postgres(password="a secret") as found:
        with psycopg.connect(found.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_level = logical")
        found.stop()
        found.start()
        yield found


def test_of_postgresql(postgresql: postgres.Postgres, tmp_path_factory: pytest.TempPathFactory) -> None:
    with running(tmp_path_factory.mktemp("debezium"), "postgres") as debezium:
        run = postgres_runs.Run(postgresql, Case("taken", TABLES))
        handed_over(debezium, run, lambda: postgres_runs.Own(run, "both"))


def test_of_mariadb(tmp_path_factory: pytest.TempPathFactory) -> None:
    if reason := mysql.available():
        pytest.skip(reason)
    options = ("--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0")
    folder = tmp_path_factory.mktemp("debezium")
    with mysql.MySqlServer("shop", *options) as server, running(folder, "mariadb") as debezium:
        history = {
            "schema.history.internal": "io.debezium.storage.kafka.history.KafkaSchemaHistory",
            "schema.history.internal.kafka.topic": "history",
            "schema.history.internal.kafka.bootstrap.servers": debezium.broker.bootstrap,
        }
        run = mysql_runs.Run(server, Case("taken", TABLES, config=history), "mariadb")
        handed_over(debezium, run, lambda: mysql_runs.Own(run, "both"))
