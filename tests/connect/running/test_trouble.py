"""What goes wrong around tasks of a running worker: systems that are away, full disks, topics that go."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing import Broker
from connect.records_of import records_of, values_of
from connect.running.workers import Workers, running_workers
from connect.running.world import JDBC_SINK, JDBC_SOURCE, ONE_PARTITION, PLAIN, TEXT, World, running_world
from connect.worker_processes import FILE_SINK, FILE_SOURCE

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
AT_LEAST_ONCE = {"exactly__once__source__support": "disabled"}
SOON = {"consumer.override.metadata.max.age.ms": "300"}


class Place:
    def __init__(self, broker: Broker, world: World, workers: Workers, folder: Path) -> None:
        self.broker = broker
        self.world = world
        self.workers = workers
        self.folder = folder
        self.admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    def create_topic(self, name: str, **configs: str) -> None:
        new = NewTopic(name, 1, 1, config={key.replace("_", "."): text for key, text in configs.items()})
        self.admin.create_topics([new])[name].result(30)

    def delete_topic(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(30)

    def lines(self, name: str, *lines: str) -> Path:
        path = self.folder / name
        with path.open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
        return path

    def told(self, name: str) -> dict[str, Any]:
        found = self.workers.one.get("/barnabas/tasks") or []
        return next((each for each in found if each["connector"] == name), {})

    def done(self, condition: Callable[[], object], what: str = "") -> None:
        self.workers.done(condition, what)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("trouble")
    with (
        Broker() as broker,
        running_world(folder, broker.bootstrap) as world,
        running_workers(
            folder, broker.bootstrap, count=1, exactly__once__source__support="disabled"
        ) as workers,
    ):
        yield Place(broker, world, workers, folder)


def test_a_record_that_the_broker_refuses_is_left_out_and_told(place: Place) -> None:
    place.create_topic("small", max_message_bytes="1000")
    path = place.lines("refused.txt", *(f"line {n}" + "x" * (5000 if n % 10 == 5 else 0) for n in range(30)))
    config = {"connector.class": FILE_SOURCE, "file": str(path), "topic": "small", **TEXT}
    place.workers.create("strict", config)
    place.done(lambda: "FAILED" in place.workers.states("strict"))
    trace = place.workers.one.get("/connectors/strict/tasks/0/status")["trace"]
    assert "cannot be written to small-0: MESSAGE_TOO_LARGE" in trace
    place.workers.call("DELETE", "/connectors/strict")
    place.create_topic("small2", max_message_bytes="1000")
    more = {"topic": "small2", "errors.tolerance": "all", "errors.log.enable": "true"}
    place.workers.create("tolerant", {**config, **more})
    wanted = [f"line {n}" for n in range(30) if n % 10 != 5]
    place.done(lambda: values_of(place.broker.bootstrap, "small2") == wanted)
    told = place.told("tolerant")
    assert (told["state"], told["skipped"]) == ("RUNNING", 3)
    assert "KAFKA_PRODUCE" in str(told["last_error"]) and "small2" in str(told["last_error"])


def test_a_sink_whose_topic_appears_later_gets_its_records(place: Place) -> None:
    out = place.folder / "later.out"
    config = {"connector.class": FILE_SINK, "file": str(out), "topics": "later-1,later-2", **TEXT, **SOON}
    place.workers.create("later", config)
    place.workers.done(lambda: place.workers.states("later") == ["RUNNING", "RUNNING"])
    for number in (1, 2):
        path = place.lines(f"later{number}.txt", f"a{number}", f"b{number}")
        source = {"connector.class": FILE_SOURCE, "file": str(path), "topic": f"later-{number}", **TEXT}
        place.workers.create(f"into-later-{number}", {**source, **ONE_PARTITION})
    place.done(lambda: out.exists() and sorted(out.read_text().split()) == ["a1", "a2", "b1", "b2"])


def test_a_topic_that_is_deleted_under_its_tasks_is_filled_and_read_again(place: Place) -> None:
    path, out = place.lines("gone.txt", "1", "2"), place.folder / "gone.out"
    source = {"connector.class": FILE_SOURCE, "file": str(path), "topic": "gone", **TEXT, **ONE_PARTITION}
    place.workers.create("into-gone", source)
    place.workers.create(
        "out-of-gone",
        {"connector.class": FILE_SINK, "file": str(out), "topics": "gone", **TEXT, **SOON},
    )
    place.done(lambda: out.exists() and out.read_text().split() == ["1", "2"])
    place.delete_topic("gone")
    place.lines("gone.txt", "3", "4")
    place.done(lambda: out.read_text().split()[2:] == ["3", "4"], "lines after the topic was deleted")
    assert place.workers.states("into-gone") == place.workers.states("out-of-gone") == ["RUNNING", "RUNNING"]


def test_a_database_that_is_away_is_asked_again_and_seen(place: Place) -> None:
    config = {
        "connector.class": JDBC_SOURCE, "mode": "incrementing", "incrementing.column.name": "id",
        "table.whitelist": "away", "topic.prefix": "", "poll.interval.ms": "100",
        **place.world.maria.config, **ONE_PARTITION, **PLAIN,
    }  # fmt: skip
    maria = place.world.maria
    maria.sql("CREATE TABLE away (id BIGINT PRIMARY KEY)", "INSERT INTO away VALUES (1)")
    place.workers.create("away", config)
    place.done(lambda: len(values_of(place.broker.bootstrap, "away")) == 1)
    maria.server.stop()
    place.done(lambda: place.told("away").get("retries", 0) >= 2)
    told = place.told("away")
    assert told["state"] == "RUNNING" and "TASK_POLL" in str(told["last_error"]), told
    maria.server.start()
    maria.sql("INSERT INTO away VALUES (2)")
    place.done(
        lambda: [json.loads(each)["id"] for each in values_of(place.broker.bootstrap, "away")] == [1, 2]
    )
    assert place.workers.states("away") == ["RUNNING", "RUNNING"]


def test_a_schema_that_changes_in_the_middle_reaches_the_other_table(place: Place) -> None:
    pg = place.world.pg
    pg.sql("CREATE TABLE evolving (id BIGINT PRIMARY KEY, a TEXT)", "INSERT INTO evolving VALUES (1, 'x')")
    source = {
        "connector.class": JDBC_SOURCE, "mode": "incrementing", "incrementing.column.name": "id",
        "table.whitelist": "evolving", "topic.prefix": "", "poll.interval.ms": "100",
        **pg.config, **ONE_PARTITION,
    }  # fmt: skip
    sink = {
        "connector.class": JDBC_SINK, "topics": "evolving", "auto.create": "true", "auto.evolve": "true",
        "insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id",
        "table.name.format": "evolved", **pg.config,
    }  # fmt: skip
    place.workers.create("evolving", source)
    place.workers.create("evolved", sink)
    place.done(lambda: rows(place, "evolved") == [(1, "x")])
    pg.sql("ALTER TABLE evolving ADD COLUMN b INT", "INSERT INTO evolving VALUES (2, 'y', 7)")
    place.done(lambda: rows(place, "evolved") == [(1, "x", None), (2, "y", 7)])
    pg.sql("ALTER TABLE evolving DROP COLUMN a", "INSERT INTO evolving VALUES (3, 8)")
    place.done(lambda: rows(place, "evolved") == [(1, "x", None), (2, "y", 7), (3, None, 8)])


def rows(place: Place, table: str) -> list[tuple[Any, ...]]:
    try:
        return [tuple(row) for row in place.world.pg.rows(f"SELECT * FROM {table} ORDER BY id")]
    except Exception:  # there is no such table yet
        return []


def test_a_table_without_the_key_is_named(place: Place) -> None:
    """Captured rows without a key have none, and a sink that needs one says so."""
    pg = place.world.pg
    pg.sql("CREATE TABLE keyless (a INT, b TEXT)", "INSERT INTO keyless VALUES (1, 'x'), (1, 'x')")
    server = pg.server
    capture = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector", "topic.prefix": "nokey",
        "database.hostname": "127.0.0.1", "database.port": str(server.port), "plugin.name": "pgoutput",
        "database.user": server.user, "database.password": server.password,
        "database.dbname": server.database, "publication.autocreate.mode": "filtered",
        "slot.name": "nokey", "publication.name": "nokey", "table.include.list": "public.keyless",
        **ONE_PARTITION,
    }  # fmt: skip
    place.workers.create("nokey", capture)
    place.done(lambda: len(records_of(place.broker.bootstrap, "nokey.public.keyless")) == 2)
    assert [key for key, _, _ in records_of(place.broker.bootstrap, "nokey.public.keyless")] == [None, None]
    source = {
        "connector.class": JDBC_SOURCE, "mode": "incrementing", "incrementing.column.name": "missing",
        "table.whitelist": "keyless", "topic.prefix": "k-", **pg.config,
    }  # fmt: skip
    place.workers.create("unkeyed", source)
    place.done(lambda: "FAILED" in place.workers.states("unkeyed"))
    status = place.workers.one.get("/connectors/unkeyed/status")
    assert "missing" in str(status) and "keyless" in str(status)
    sink = {
        "connector.class": JDBC_SINK, "topics": "nokey.public.keyless", "insert.mode": "upsert",
        "pk.mode": "record_key", "pk.fields": "a", "table.name.format": "sunk", **pg.config,
    }  # fmt: skip
    place.workers.create("needs-key", sink)
    place.done(lambda: "FAILED" in place.workers.states("needs-key"))
    trace = place.workers.one.get("/connectors/needs-key/tasks/0/status")["trace"]
    assert "key" in trace and "nokey.public.keyless-0" in trace


def test_a_full_disk_is_waited_for(place: Place) -> None:
    disk = place.folder / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", str(disk)], check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        ballast = disk / "ballast"
        ballast.write_bytes(b"x" * 200_000)
        path = place.lines("full.txt", *(f"{n} " + "y" * 1000 for n in range(100)))
        source = {"connector.class": FILE_SOURCE, "file": str(path), "topic": "full", **TEXT, **ONE_PARTITION}
        place.workers.create("into-full", source)
        sink = {
            "connector.class": "io.confluent.connect.hdfs3.Hdfs3SinkConnector", "topics": "full",
            "hdfs.url": str(disk), "format.class": "StringFormat", "flush.size": "20", **TEXT,
        }  # fmt: skip
        place.workers.create("onto-disk", sink)
        place.done(lambda: place.told("onto-disk").get("retries", 0) >= 1)
        told = place.told("onto-disk")
        assert told["state"] == "RUNNING" and "space" in str(told["last_error"]), told
        ballast.unlink()
        place.done(lambda: numbers_in(disk) == list(range(100)))
    finally:
        place.workers.call("DELETE", "/connectors/onto-disk")
        place.done(lambda: not place.told("onto-disk"))
        subprocess.run(["umount", "-l", str(disk)], check=True)


def numbers_in(folder: Path) -> list[int]:
    files = folder.rglob("*.txt")
    return sorted(int(line.split()[0]) for each in files for line in each.read_text().splitlines())
