"""Change capture from a real PostgreSQL: what topics replay is what the tables hold."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg
import pytest
from tests.connect.connectors.contexts import Offsets, started_source

from barnabas.connect.connectors.postgres_cdc.connector import PostgresConnector
from barnabas.connect.data import Records
from barnabas.connect.plugins import ConnectError, Plugins, RetriableError
from barnabas.pipeline.demo import postgres


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    if reason := postgres.available():
        pytest.skip(reason)
    with postgres.Postgres(password="a secret") as found:
        with psycopg.connect(found.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_level = logical")
            connection.execute("ALTER SYSTEM SET max_replication_slots = 50")
        found.stop()
        found.start()
        yield found


def config(server: postgres.Postgres, name: str, **more: str) -> dict[str, str]:
    given = {
        "topic.prefix": name,
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.dbname": server.database,
        "plugin.name": "pgoutput",
        "slot.name": name,
        "publication.name": f"{name}_publication",
        "publication.autocreate.mode": "filtered",
        "table.include.list": f"public.{name}_.*",
        "snapshot.fetch.size": "50",
        "max.batch.size": "20",
    }
    return given | {each.replace("_", "."): value for each, value in more.items()}


class Capture:
    """A task run by hand; records and their offsets are stored together, as in a transaction."""

    def __init__(self, given: dict[str, str]) -> None:
        assert PostgresConnector().check(given) == {}
        self.given = given
        self.offsets = Offsets()
        self.records: list[Any] = []
        self.batches: list[Records] = []
        self.task: Any = started_source(PostgresConnector, given, self.offsets)
        self.task.context.poll_seconds = 0.05

    def poll(self) -> bool:
        found = self.task.poll()
        if found is None:
            return False
        self.records += list(found.rows())
        self.batches.append(found)
        self.offsets.store(found)
        self.task.commit(found.positions)
        return True

    def drain(self, count: int) -> None:
        """Poll until there are so many records, and a little longer: more would be wrong."""
        deadline = time.monotonic() + 30
        while len(self.records) < count:
            assert time.monotonic() < deadline, f"{len(self.records)} records came in place of {count}"
            self.poll()
        for _ in range(4):
            self.poll()

    def restart(self) -> None:
        self.task.stop()
        self.task = started_source(PostgresConnector, self.given, self.offsets)
        self.task.context.poll_seconds = 0.05


def replay(records: list[Any], topic: str) -> dict[Any, Any]:
    rows: dict[Any, Any] = {}
    for each in records:
        if each.topic != topic:
            continue
        key = each.key["id"]
        if each.value is None:
            rows.pop(key, None)
        elif each.value["op"] == "d":
            assert key in rows, "a delete of a row that was never there"
            del rows[key]
        else:
            assert each.value["op"] != "c" or key not in rows, f"{key} is created twice"
            rows[key] = each.value["after"]["v"]
    return rows


def rows_of(server: postgres.Postgres, table: str) -> dict[Any, Any]:
    with psycopg.connect(server.dsn) as connection:
        return dict(connection.execute(f"SELECT id, v FROM {table}").fetchall())


def churn(server: postgres.Postgres, tables: list[str], seed: int, transactions: int) -> None:
    """Random transactions of several tables, some of them rolled back."""
    chosen = random.Random(seed)
    with psycopg.connect(server.dsn) as connection:
        for _ in range(transactions):
            for _ in range(chosen.randint(1, 8)):
                table, key, value = (
                    chosen.choice(tables),
                    chosen.randint(seed * 1000, seed * 1000 + 60),
                    chosen.random(),
                )
                connection.execute(
                    chosen.choice(
                        [
                            f"INSERT INTO {table} VALUES (%(k)s, %(v)s)"
                            " ON CONFLICT (id) DO UPDATE SET v = %(v)s",
                            f"UPDATE {table} SET v = %(v)s WHERE id = %(k)s",
                            f"DELETE FROM {table} WHERE id = %(k)s",
                        ]
                    ),
                    {"k": key, "v": value},
                )
            connection.rollback() if chosen.random() < 0.2 else connection.commit()


def test_random_transactions_during_the_snapshot_and_kills_replay_to_the_tables(
    server: postgres.Postgres,
) -> None:
    tables = ["mix_a", "mix_b"]
    with psycopg.connect(server.dsn) as connection:
        for each in tables:
            connection.execute(f"CREATE TABLE {each} (id int PRIMARY KEY, v float8 NOT NULL)")
            connection.execute(f"INSERT INTO {each} SELECT n, n FROM generate_series(100001, 100400) n")
    writers = [threading.Thread(target=churn, args=(server, tables, seed, 120)) for seed in (1, 2)]
    for each in writers:
        each.start()
    capture = Capture(config(server, "mix"))
    chosen = random.Random(7)
    kills = 0
    while any(each.is_alive() for each in writers) or kills < 12:
        for _ in range(chosen.randint(5, 60)):
            capture.poll()
        if capture.offsets and "snapshot" not in next(iter(capture.offsets.values())):
            capture.restart()
            kills += 1
    for each in writers:
        each.join()
    with psycopg.connect(server.dsn) as connection:
        connection.execute("INSERT INTO mix_a VALUES (999999, 1)")
    while not any(each.key == {"id": 999999} for each in capture.records[-50:]):
        capture.poll()
    capture.task.stop()
    for table in tables:
        assert replay(capture.records, f"mix.public.{table}") == rows_of(server, table)


def test_a_snapshot_that_is_cut_begins_again(server: postgres.Postgres) -> None:
    with psycopg.connect(server.dsn) as connection:
        connection.execute("CREATE TABLE cut_a (id int PRIMARY KEY, v float8)")
        connection.execute("INSERT INTO cut_a SELECT n, n FROM generate_series(1, 300) n")
    capture = Capture(config(server, "cut"))
    while len(capture.records) < 100:
        capture.poll()
    with psycopg.connect(server.dsn) as connection:
        connection.execute("DELETE FROM cut_a WHERE id > 250")
    capture.restart()
    first = len(capture.records)
    capture.drain(first + 250)
    capture.task.stop()
    assert replay(capture.records[first:], "cut.public.cut_a") == rows_of(server, "cut_a")


def test_the_envelope_is_debezium_s(server: postgres.Postgres) -> None:
    with psycopg.connect(server.dsn) as connection:
        connection.execute(
            "CREATE TABLE env_a (id int PRIMARY KEY, v float8, price numeric(8,2) NOT NULL,"
            " at timestamp NOT NULL, tags text[], big text, doc jsonb)"
        )
        connection.execute("ALTER TABLE env_a ALTER big SET STORAGE EXTERNAL")
        connection.execute(
            "INSERT INTO env_a VALUES (1, 1, 9.90, '2024-05-01 12:00', '{a,NULL,\"b c\"}', 'x', '{}')"
        )
    capture = Capture(config(server, "env"))
    capture.drain(1)
    with psycopg.connect(server.dsn) as connection:
        connection.execute("UPDATE env_a SET v = 2, big = repeat('y', 9000)")
    with psycopg.connect(server.dsn) as connection:
        connection.execute("UPDATE env_a SET v = 3")
    with psycopg.connect(server.dsn) as connection:
        connection.execute("UPDATE env_a SET id = 2")
        connection.execute("DELETE FROM env_a")
    capture.drain(8)
    capture.task.stop()
    values = [each.value for each in capture.records]
    assert [None if each is None else each["op"] for each in values] == [*"ruud", None, "c", "d", None]
    read = values[0]
    assert read["before"] is None and read["source"]["snapshot"] == "last"
    assert str(read["after"]["price"]) == "9.90" and read["after"]["at"] == 1714564800000000
    assert read["after"]["tags"] == ["a", None, "b c"]
    assert values[1]["after"]["big"] == "y" * 9000
    assert values[2]["after"]["big"] == "__debezium_unavailable_value"
    source = values[2]["source"]
    assert (source["connector"], source["name"], source["schema"], source["table"]) == (
        "postgresql", "env", "public", "env_a",
    )  # fmt: skip
    assert source["lsn"] > 0 and source["txId"] > 0 and source["snapshot"] == "false"
    moved = capture.records[3]
    assert moved.key == {"id": 1} and moved.headers[0].name == "__debezium.newkey"
    assert capture.records[5].headers[0].value == {"id": 1}
    assert (
        moved.value_schema.name == "env.public.env_a.Envelope"
        and moved.key_schema.name == "env.public.env_a.Key"
    )


@pytest.mark.parametrize("mode", ["no_data", "initial_only"])
def test_modes_without_one_of_the_two(server: postgres.Postgres, mode: str) -> None:
    name = mode.replace("_", "")
    with psycopg.connect(server.dsn) as connection:
        connection.execute(f"CREATE TABLE {name}_a (id int PRIMARY KEY, v float8)")
        connection.execute(f"INSERT INTO {name}_a VALUES (1, 1)")
    capture = Capture(config(server, name, snapshot_mode=mode))
    capture.drain(mode == "initial_only")
    with psycopg.connect(server.dsn) as connection:
        connection.execute(f"INSERT INTO {name}_a VALUES (2, 2)")
    capture.drain(1)
    capture.task.stop()
    assert [each.value["op"] for each in capture.records] == (["c"] if mode == "no_data" else ["r"])


def test_the_slot_moves_only_behind_what_is_durable(server: postgres.Postgres) -> None:
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute("CREATE TABLE slow_a (id int PRIMARY KEY, v float8)")
        capture = Capture(config(server, "slow", status_update_interval_ms="1", heartbeat_interval_ms="1"))
        capture.drain(1)
        connection.execute("INSERT INTO slow_a VALUES (1, 1)")
        while not any(each.topic == "slow.public.slow_a" for each in capture.records):
            found = capture.task.poll()
            capture.records += list(found.rows()) if found is not None else []
        for _ in range(20):
            capture.task.poll()  # nothing is committed
        capture.task.stop()
        topics = {each.topic for each in capture.records}
        assert topics == {"slow.public.slow_a", "__debezium-heartbeat.slow"}
        again = Capture(config(server, "slow"))
        again.offsets.update(capture.offsets)
        again.restart()
        while not again.records:
            again.poll()
        again.task.stop()
        assert replay(again.records, "slow.public.slow_a") == {1: 1.0}


def confirmed(connection: Any, slot: str) -> int:
    [lsn] = connection.execute(
        "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = %s", (slot,)
    ).fetchone()
    return int(lsn)


@pytest.mark.parametrize("heartbeat", ["0", "10"])
def test_the_slot_of_quiet_tables_follows_the_traffic_of_others(
    server: postgres.Postgres, heartbeat: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = f"quiet{heartbeat}"
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute(f"CREATE TABLE {name}_a (id int PRIMARY KEY, v float8)")
        connection.execute(f"INSERT INTO {name}_a VALUES (1, 1)")
        connection.execute(f"CREATE TABLE loud_{name} (id int)")
        given = config(
            server,
            name,
            status_update_interval_ms="1",
            heartbeat_interval_ms=heartbeat,
            offset_mismatch_strategy="trust_offset",
        )
        capture = Capture(given)
        capture.drain(1)
        for _ in range(2):  # also behind the place of the snapshot
            connection.execute(f"INSERT INTO loud_{name} SELECT generate_series(1, 1000)")
            [end] = connection.execute("SELECT pg_current_wal_flush_lsn() - '0/0'").fetchone()  # type: ignore[misc]
            deadline = time.monotonic() + 30
            while confirmed(connection, name) < int(end):
                assert time.monotonic() < deadline, "the slot stands still"
                capture.poll()
        capture.restart()
        connection.execute(f"INSERT INTO {name}_a VALUES (2, 2)")
        while len(replay(capture.records, f"{name}.public.{name}_a")) < 2:
            capture.poll()
        capture.task.stop()
    assert "are lost" not in caplog.text


@pytest.mark.parametrize("strategy", ["no_validation", "trust_slot", "trust_greater_lsn", "trust_offset"])
def test_a_slot_that_someone_moved_is_told(
    server: postgres.Postgres, strategy: str, caplog: pytest.LogCaptureFixture
) -> None:
    name = strategy.replace("_", "")
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute(f"CREATE TABLE {name}_a (id int PRIMARY KEY, v float8)")
        connection.execute(f"INSERT INTO {name}_a VALUES (1, 1)")
        capture = Capture(config(server, name, offset_mismatch_strategy=strategy))
        capture.drain(1)
        capture.task.stop()
        connection.execute(f"INSERT INTO {name}_a VALUES (2, 2)")
        active = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
        while connection.execute(active, (name,)).fetchone() != (False,):
            time.sleep(0.01)  # the server ends the stream of the task
        connection.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_flush_lsn())", (name,))
        connection.execute(f"INSERT INTO {name}_a VALUES (3, 3)")
        capture.restart()
        if strategy == "trust_offset":
            with pytest.raises(ConnectError, match=r"are lost; take a new snapshot"):
                capture.poll()
        else:
            capture.drain(2)
            assert replay(capture.records, f"{name}.public.{name}_a") == {1: 1.0, 3: 3.0}
            assert "are lost" in caplog.text
        capture.task.stop()


def slots(connection: Any, name: str) -> list[Any]:
    query = "SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s"
    return [each for (each,) in connection.execute(query, (name,))]


def test_a_slot_whose_log_the_server_has_removed_is_made_anew_when_needed(server: postgres.Postgres) -> None:
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute("CREATE TABLE lost_a (id int PRIMARY KEY, v float8)")
        connection.execute("INSERT INTO lost_a VALUES (1, 1)")
        capture = Capture(config(server, "lost", snapshot_mode="when_needed"))
        capture.drain(1)
        capture.task.stop()
        connection.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
        connection.execute("SELECT pg_reload_conf()")
        while slots(connection, "lost") != ["lost"]:
            connection.execute("SELECT pg_logical_emit_message(false, 'junk', repeat('x', 100000))")
            connection.execute("SELECT pg_switch_wal()")
            connection.execute("CHECKPOINT")
        connection.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("INSERT INTO lost_a VALUES (2, 2)")
        capture.restart()
        capture.drain(3)
        connection.execute("INSERT INTO lost_a VALUES (3, 3)")
        capture.drain(4)
        capture.task.stop()
    assert [each.value["op"] for each in capture.records] == ["r", "r", "r", "c"]


def test_a_snapshot_alone_leaves_no_slot_behind(server: postgres.Postgres) -> None:
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute("CREATE TABLE alone_a (id int PRIMARY KEY, v float8)")
        connection.execute("INSERT INTO alone_a VALUES (1, 1)")
        capture = Capture(config(server, "alone", snapshot_mode="initial_only", slot_drop_on_stop="true"))
        capture.drain(1)
        capture.restart()
        capture.drain(1)
        assert slots(connection, "alone") == []
        capture.task.stop()


def test_updates_that_change_no_captured_column_are_left_out_on_request(server: postgres.Postgres) -> None:
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute("CREATE TABLE same_a (id int PRIMARY KEY, v float8, other int)")
        connection.execute("ALTER TABLE same_a REPLICA IDENTITY FULL")
        connection.execute("CREATE TABLE same_b (id int PRIMARY KEY, v float8)")  # tells nothing of before
        more = {"skip.messages.without.change": "true", "column.exclude.list": "public.same_a.other"}
        capture = Capture(config(server, "same") | more)
        capture.poll()
        for each in (
            "INSERT INTO same_a VALUES (1, 1, 1)", "UPDATE same_a SET other = 2", "UPDATE same_a SET v = v",
            "UPDATE same_a SET v = 2, other = 3", "INSERT INTO same_b VALUES (1, 1)",
            "UPDATE same_b SET v = v",
        ):  # fmt: skip
            connection.execute(each)
        capture.drain(4)
        capture.task.stop()
    found = [(each.topic[-1], each.value["op"], each.value["after"]["v"]) for each in capture.records]
    assert found == [("a", "c", 1.0), ("a", "u", 2.0), ("b", "c", 1.0), ("b", "u", 1.0)]


def test_a_number_that_is_none_is_null(server: postgres.Postgres) -> None:
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute("CREATE TABLE nan_a (id int PRIMARY KEY, n numeric(10,2), w numeric, v float8)")
        connection.execute("INSERT INTO nan_a VALUES (1, 'NaN', 'NaN', 'NaN')")
        capture = Capture(config(server, "nan"))
        capture.drain(1)
        connection.execute("INSERT INTO nan_a VALUES (2, 'NaN', 'Infinity', 1)")
        capture.drain(2)
        capture.task.stop()
    rows = [each.value["after"] for each in capture.records]
    assert [(each["n"], each["w"]) for each in rows] == [(None, None), (None, None)]


def test_large_values_bound_batches_by_bytes(server: postgres.Postgres) -> None:
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute("CREATE TABLE large_a (id int PRIMARY KEY, t text)")
        insert = "INSERT INTO large_a SELECT n, repeat(md5(n::text), 3200) FROM generate_series({}, {}) n"
        connection.execute(insert.format(1, 40))
        more = {"max.queue.size.in.bytes": "300000", "snapshot.fetch.size": "1000", "max.batch.size": "1000"}
        capture = Capture(config(server, "large") | more)
        capture.drain(40)
        connection.execute(insert.format(41, 60))
        capture.drain(60)
        capture.task.stop()
    sizes = [len(each) for each in capture.batches if len(each)]
    read = next(place for place in range(len(sizes)) if sum(sizes[:place]) == 40)
    assert max(sizes[1:read]) <= 3  # the first batch is eight rows
    assert max(sizes[read:]) <= 3
    assert [each.value["after"]["id"] for each in capture.records] == list(range(1, 61))


def test_what_is_wrong_is_named(server: postgres.Postgres) -> None:
    check = PostgresConnector().check
    assert "plugin.name" in check({"plugin.name": "decoderbufs"})
    assert "slot.name" in check({"slot.name": "Upper"})
    assert "table.exclude.list" in check({"table.include.list": "a", "table.exclude.list": "b"})
    away = started_source(PostgresConnector, config(server, "away") | {"database.port": "1"}, Offsets())
    with pytest.raises(RetriableError, match=r"127.0.0.1:1/shop, slot away"):
        away.poll()
    away.stop()
    none = started_source(PostgresConnector, config(server, "nothing"), Offsets())
    with pytest.raises(ConnectError, match=r"choose none"):
        none.poll()
    none.stop()
    assert Plugins().connector("io.debezium.connector.postgresql.PostgresConnector") is PostgresConnector
