"""Change capture from a real MariaDB: what topics replay is what the tables hold."""

from __future__ import annotations

import hashlib
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pymysql
import pytest
from tests.connect.connectors.contexts import Offsets, started_source

from barnabas.connect.connectors.mysql_cdc.connector import MariaDbConnector, MySqlConnector
from barnabas.connect.plugins import ConnectError, Plugins, RetriableError
from barnabas.testing import mysql

OPTIONS = ("--log-bin=log", "--server-id=1", "--binlog-format=ROW", "--sync-binlog=0")


@pytest.fixture(scope="module")
def server() -> Iterator[mysql.MySqlServer]:
    if reason := mysql.available():
        pytest.skip(reason)
    with mysql.MySqlServer("shop", *OPTIONS) as found:
        yield found


def connected(server: mysql.MySqlServer, *, autocommit: bool = True) -> Any:
    return pymysql.connect(
        host="127.0.0.1", port=server.port, user=server.user, password=server.password, database="shop",
        autocommit=autocommit, charset="utf8mb4",
    )  # fmt: skip


def execute(server: mysql.MySqlServer, *statements: str) -> None:
    with closing(connected(server)) as connection, connection.cursor() as cursor:
        for each in statements:
            cursor.execute(each)


def config(server: mysql.MySqlServer, name: str, folder: Path, **more: str) -> dict[str, str]:
    given = {
        "topic.prefix": name,
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.include.list": "shop",
        "table.include.list": f"shop.{name}_.*",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(folder / f"{name}.history"),
        "include.schema.changes": "false",
        "snapshot.fetch.size": "50",
        "max.batch.size": "20",
    }
    return given | {each.replace("_", "."): value for each, value in more.items()}


class Capture:
    """A task run by hand; records and their offsets are stored together, as in a transaction."""

    def __init__(self, given: dict[str, str], connector: type[MySqlConnector] = MariaDbConnector) -> None:
        assert connector().check(given) == {}
        self.given, self._connector = given, connector
        self.offsets = Offsets()
        self.records: list[Any] = []
        self._start()

    def _start(self) -> None:
        self.task: Any = started_source(self._connector, self.given, self.offsets)
        self.task.context.poll_seconds = 0.05

    def poll(self) -> bool:
        found = self.task.poll()
        if found is None:
            return False
        self.records += list(found.rows())
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

    def settle(self) -> None:
        """Poll until the snapshot is over and its place is stored."""
        deadline = time.monotonic() + 30
        while not self.offsets or "snapshot" in next(iter(self.offsets.values())):
            assert time.monotonic() < deadline
            self.poll()

    def restart(self) -> None:
        self.task.stop()
        self._start()

    @property
    def offset(self) -> dict[str, Any]:
        return next(iter(self.offsets.values()))


def replay(records: list[Any], topic: str) -> dict[Any, Any]:
    rows: dict[Any, Any] = {}
    for each in records:
        if each.topic != topic:
            continue
        key = each.key["id"]
        if each.value is None:
            assert key not in rows
        elif each.value["op"] == "d":
            assert key in rows, "a delete of a row that was never there"
            assert rows.pop(key) == each.value["before"]["v"]
        else:
            op = each.value["op"]
            assert op != "c" or key not in rows, f"{key} is created twice"
            assert op != "u" or rows[key] == each.value["before"]["v"], "an update is lost or comes twice"
            rows[key] = each.value["after"]["v"]
    return rows


def rows_of(server: mysql.MySqlServer, table: str) -> dict[Any, Any]:
    with closing(connected(server)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, v FROM {table}")
        return dict(cursor.fetchall())


DEADLOCK = 1213


def churn(server: mysql.MySqlServer, tables: list[str], seed: int, transactions: int) -> None:
    """Random transactions of several tables: key changes, many rows at once, some rolled back."""
    chosen = random.Random(seed)
    base = seed * 1000
    with closing(connected(server, autocommit=False)) as connection, connection.cursor() as cursor:
        for _ in range(transactions):
            try:
                transact(connection, cursor, tables, chosen, base)
            except pymysql.err.OperationalError as error:
                if error.args[0] != DEADLOCK:
                    raise
                connection.rollback()  # the server has done so: the other writer goes first


def transact(connection: Any, cursor: Any, tables: list[str], chosen: random.Random, base: int) -> None:
    for _ in range(chosen.randint(1, 8)):
        table, key, value = chosen.choice(tables), base + chosen.randint(0, 60), chosen.random()
        statement, values = chosen.choice(
            [
                (
                    f"INSERT INTO {table} VALUES (%s, %s) ON DUPLICATE KEY UPDATE v = VALUES(v)",
                    (key, value),
                ),
                (f"UPDATE {table} SET v = %s WHERE id BETWEEN %s AND %s", (value, key, key + 30)),
                (f"UPDATE IGNORE {table} SET id = %s WHERE id = %s", (base + 61 + key % 40, key)),
                (f"DELETE FROM {table} WHERE id = %s", (key,)),
            ]
        )
        cursor.execute(statement, values)
    connection.rollback() if chosen.random() < 0.2 else connection.commit()


def test_random_transactions_during_the_snapshot_and_restarts_replay_to_the_tables(
    server: mysql.MySqlServer, tmp_path: Path
) -> None:
    tables = ["mix_a", "mix_b"]
    for each in tables:
        execute(
            server,
            f"CREATE TABLE {each} (id int PRIMARY KEY, v double NOT NULL)",
            f"INSERT INTO {each} SELECT seq, seq FROM seq_100001_to_100400",
        )
    writers = [threading.Thread(target=churn, args=(server, tables, seed, 120)) for seed in (1, 2)]
    for each in writers:
        each.start()
    capture = Capture(config(server, "mix", tmp_path))
    chosen = random.Random(7)
    restarts = 0
    while any(each.is_alive() for each in writers) or restarts < 12:
        for _ in range(chosen.randint(5, 60)):
            capture.poll()
        if capture.offsets and "snapshot" not in capture.offset:
            capture.restart()
            restarts += 1
    for each in writers:
        each.join()
    execute(server, "INSERT INTO mix_a VALUES (999999, 1)")
    while not any(each.key == {"id": 999999} for each in capture.records[-50:]):
        capture.poll()
    capture.task.stop()
    for table in tables:
        assert replay(capture.records, f"mix.shop.{table}") == rows_of(server, table)


TYPES = """
CREATE TABLE typ_a (
  id bigint unsigned PRIMARY KEY, t tinyint, tu tinyint unsigned, su smallint unsigned, m mediumint,
  mu mediumint unsigned, iu int unsigned, b bigint, d decimal(12,4), f float, g double, bo boolean NOT NULL,
  b1 bit(1), b9 bit(9), da date, ti time(3), dt datetime, dt6 datetime(6), ts timestamp(3) NULL, y year,
  c char(5), vc varchar(300) CHARACTER SET latin1, tx text, bi binary(4), vb varbinary(9), bl blob,
  e enum('small','big'), s set('a','b','c'), js json, po point, ge geometry, un varchar(9) DEFAULT 'none',
  uu uuid, i6 inet6
) DEFAULT CHARSET utf8mb4"""
VALUES = """(%s, -5, 250, 65000, -8000000, 16000000, 4000000000, -9000000000, -12345678.9876, 1.5, -2.25,
  true,
  b'1', b'100000011', '2024-02-29', '-12:34:56.789', '2024-05-01 12:00:00', '1999-12-31 23:59:59.123456',
  '2024-05-01 12:00:00.250', 2024, 'ab', 'Grüße', '日本', 'x\\0', 'yz',
  'blob', 'big', 'a,c', '{"a": [1, null]}',
  ST_PointFromText('POINT(1 2)'), ST_GeomFromText('LINESTRING(0 0, 1 1)'), NULL,
  '123e4567-e89b-12d3-a456-426655440000', '2001:db8::ff00:42:8329')"""


def test_all_types_are_equal_in_snapshot_and_stream(server: mysql.MySqlServer, tmp_path: Path) -> None:
    execute(server, "SET time_zone = '+00:00'", TYPES, f"INSERT INTO typ_a VALUES {VALUES % 1}")
    capture = Capture(config(server, "typ", tmp_path))
    capture.drain(1)
    with closing(connected(server)) as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"INSERT INTO typ_a VALUES {VALUES % 2}")
        cursor.execute("INSERT INTO typ_a (id, bo) VALUES (18446744073709551615, 0)")
    capture.drain(3)
    capture.task.stop()
    read, created, empty = (each.value["after"] for each in capture.records)
    assert {**read, "id": 2} == created
    assert created == {
        "id": 2, "t": -5, "tu": 250, "su": 65000, "m": -8000000, "mu": 16000000, "iu": 4000000000,
        "b": -9000000000, "d": Decimal("-12345678.9876"), "f": 1.5, "g": -2.25, "bo": 1, "b1": True,
        "b9": b"\x03\x01", "da": 19782, "ti": -45296789000, "dt": 1714564800000, "dt6": 946684799123456,
        "ts": "2024-05-01T12:00:00.250Z", "y": 2024, "c": "ab", "vc": "Grüße", "tx": "日本", "bi": b"x\0\0\0",
        "vb": b"yz", "bl": b"blob", "e": "big", "s": "a,c", "js": '{"a": [1, null]}',
        "po": {"x": 1.0, "y": 2.0, "wkb": created["po"]["wkb"], "srid": None},
        "ge": created["ge"], "un": None, "uu": "123e4567-e89b-12d3-a456-426655440000",
        "i6": "2001:db8::ff00:42:8329",
    }  # fmt: skip
    assert created["ge"]["wkb"][:5] == b"\x01\x02\x00\x00\x00"
    assert empty["id"] == -1 and empty["un"] == "none" and empty["d"] is None
    schema = capture.records[1].value_schema.field("after")
    named = {one.name: one.schema.name for one in schema.fields}
    assert (named["dt"], named["dt6"], named["ti"]) == (
        "io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp", "io.debezium.time.MicroTime",
    )  # fmt: skip
    assert schema.field("e").parameters == {"allowed": "small,big"}
    assert schema.field("un").default == "none" and not schema.field("bo").optional


def test_the_envelope_is_debezium_s(server: mysql.MySqlServer, tmp_path: Path) -> None:
    execute(server, "CREATE TABLE env_a (id int PRIMARY KEY, v int)", "INSERT INTO env_a VALUES (1, 1)")
    given = config(server, "env", tmp_path, include_schema_changes="true")
    capture = Capture(given)
    capture.drain(2)
    execute(server, "UPDATE env_a SET id = 2", "DELETE FROM env_a", "TRUNCATE env_a")
    capture.drain(7)
    capture.task.stop()
    change, *changes = capture.records[:7]
    assert change.topic == "env" and change.key == {"databaseName": "shop"}
    assert change.value["tableChanges"][0]["id"] == '"shop"."env_a"' and "CREATE TABLE" in change.value["ddl"]
    ops = [None if each.value is None else each.value["op"] for each in changes]
    assert ops == ["r", "d", None, "c", "d", None]
    source = changes[1].value["source"]
    assert (source["connector"], source["name"], source["db"], source["table"]) == (
        "mariadb",
        "env",
        "shop",
        "env_a",
    )
    assert source["file"].startswith("log.") and source["pos"] > 0 and source["gtid"].startswith("0-1-")
    assert changes[1].headers[0].value == {"id": 2} and changes[3].headers[0].value == {"id": 1}
    assert changes[1].value_schema.name == "env.shop.env_a.Envelope"
    assert changes[1].value_schema.field("source").name == "io.debezium.connector.mariadb.Source"
    assert {"file", "pos", "gtids", "ts_sec"} <= set(capture.offset)


def test_columns_are_masked_and_cut(server: mysql.MySqlServer, tmp_path: Path) -> None:
    execute(
        server,
        "CREATE TABLE mask_a (id int PRIMARY KEY, card varchar(40), mail varchar(40), note text)",
        "INSERT INTO mask_a VALUES (1, '4000-1234', 'a@example.com', 'a long note'), (2, NULL, NULL, NULL)",
    )
    more = {
        "column.mask.with.6.chars": "shop.mask_a.card",
        "column.mask.hash.v2.SHA-256.with.salt.pepper": r"shop\..*\.mail",
        "column.truncate.to.6.chars": "shop.mask_a.note",
    }
    capture = Capture(config(server, "mask", tmp_path) | more)
    capture.drain(2)
    execute(server, "UPDATE mask_a SET note = 'another note' WHERE id = 1")
    capture.drain(3)
    capture.task.stop()
    rows = [each.value["after"] for each in capture.records]
    hashed = hashlib.sha256(b"peppera@example.com").hexdigest()[:40]  # the length of the column
    assert rows[0] == {"id": 1, "card": "******", "mail": hashed, "note": "a long"}
    assert rows[1] == {"id": 2, "card": "******", "mail": None, "note": None}
    assert rows[2] == {**rows[0], "note": "anothe"}
    assert capture.records[2].value["before"] == rows[0]


def test_updates_without_a_change_are_left_out_and_large_values_bound_batches(
    server: mysql.MySqlServer, tmp_path: Path
) -> None:
    execute(server, "CREATE TABLE some_a (id int PRIMARY KEY, v longtext, other int)")
    execute(server, "INSERT INTO some_a SELECT seq, repeat('x', 100000), 0 FROM seq_1_to_30")
    more = {
        "skip.messages.without.change": "true",
        "column.exclude.list": "shop.some_a.other",
        "max.queue.size.in.bytes": "300000",
        "max.batch.size": "1000",
    }
    capture = Capture(config(server, "some", tmp_path) | more)
    sizes = []
    while len(capture.records) < 30:
        before = len(capture.records)
        capture.poll()
        sizes.append(len(capture.records) - before)
    execute(
        server,
        "UPDATE some_a SET other = 1 WHERE id = 1",
        "UPDATE some_a SET v = 'new', other = 2 WHERE id = 2",
        "INSERT INTO some_a SELECT seq, repeat('x', 100000), 0 FROM seq_31_to_60",
    )
    while len(capture.records) < 61:
        before = len(capture.records)
        capture.poll()
        sizes.append(len(capture.records) - before)
    capture.task.stop()
    assert [each.value["op"] for each in capture.records] == [*["r"] * 30, "u", *["c"] * 30]
    assert max(each for each in sizes if each != 8) <= 3  # the first batch of the snapshot is eight rows


def test_settings_that_are_not_built_are_refused(tmp_path: Path) -> None:
    given = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u"}
    MariaDbConnector.CONFIG.parse(given | {"signal.enabled.channels": "source", "max.queue.size": "9"})
    for name, value in (
        ("column.mask.hash.NO.with.salt.a", "b"),
        ("signal.data.collection", "signals"),
        ("signal.enabled.channels", "source,jms"),
    ):
        assert name in MariaDbConnector().check({name: value})
    assert "max.queue.size" in MariaDbConnector.CONFIG.ignored({"max.queue.size": "9"})


def test_columns_change_while_the_task_runs_and_while_it_is_away(
    server: mysql.MySqlServer, tmp_path: Path
) -> None:
    execute(
        server, "CREATE TABLE ddl_a (id int PRIMARY KEY, v int, w int)", "INSERT INTO ddl_a VALUES (1, 1, 1)"
    )
    capture = Capture(config(server, "ddl", tmp_path))
    capture.drain(1)
    execute(
        server,
        "INSERT INTO ddl_a VALUES (2, 2, 2)",
        "ALTER TABLE ddl_a ADD COLUMN x varchar(9) NOT NULL DEFAULT 'new' AFTER id, DROP COLUMN w",
        "INSERT INTO ddl_a VALUES (3, 'a', 3)",
    )
    capture.drain(3)
    capture.task.stop()  # what follows is read with the columns of its time
    execute(
        server,
        "INSERT INTO ddl_a VALUES (4, 'b', 4)",
        "ALTER TABLE ddl_a CHANGE v amount decimal(8,2)",
        "INSERT INTO ddl_a VALUES (5, 'c', 5.5)",
        "RENAME TABLE ddl_a TO ddl_b",
        "INSERT INTO ddl_b VALUES (6, 'd', 6)",
        "CREATE TABLE ddl_c LIKE ddl_b",
        "INSERT INTO ddl_c SELECT * FROM ddl_b WHERE id = 6",
        "DROP TABLE ddl_b",
    )
    capture.restart()
    capture.drain(7)
    capture.task.stop()
    found = [(each.topic.split(".")[-1], each.value["after"]) for each in capture.records]
    assert found == [
        ("ddl_a", {"id": 1, "v": 1, "w": 1}),
        ("ddl_a", {"id": 2, "v": 2, "w": 2}),
        ("ddl_a", {"id": 3, "x": "a", "v": 3}),
        ("ddl_a", {"id": 4, "x": "b", "v": 4}),
        ("ddl_a", {"id": 5, "x": "c", "amount": Decimal("5.50")}),
        ("ddl_b", {"id": 6, "x": "d", "amount": Decimal("6.00")}),
        ("ddl_c", {"id": 6, "x": "d", "amount": Decimal("6.00")}),
    ]


@pytest.mark.parametrize("mode", ["no_data", "initial_only"])
def test_modes_without_one_of_the_two(server: mysql.MySqlServer, mode: str, tmp_path: Path) -> None:
    name = mode.replace("_", "")
    execute(
        server, f"CREATE TABLE {name}_a (id int PRIMARY KEY, v int)", f"INSERT INTO {name}_a VALUES (1, 1)"
    )
    capture = Capture(config(server, name, tmp_path, snapshot_mode=mode, snapshot_locking_mode="none"))
    capture.settle()
    execute(server, f"INSERT INTO {name}_a VALUES (2, 2)")
    capture.restart()
    capture.drain(1)
    capture.task.stop()
    assert [each.value["op"] for each in capture.records] == (["c"] if mode == "no_data" else ["r"])


def test_a_purged_log_is_named_or_leads_to_a_snapshot(server: mysql.MySqlServer, tmp_path: Path) -> None:
    execute(server, "CREATE TABLE pur_a (id int PRIMARY KEY, v int)", "INSERT INTO pur_a VALUES (1, 1)")
    capture = Capture(config(server, "pur", tmp_path, heartbeat_interval_ms="1"))
    capture.settle()
    capture.task.stop()
    stale = dict(capture.offsets)
    execute(server, "INSERT INTO pur_a VALUES (2, 2)", "FLUSH BINARY LOGS")
    server.execute_as_root("RESET MASTER")
    execute(server, "INSERT INTO pur_a VALUES (3, 3)")
    capture.offsets.update(stale)
    capture.restart()
    with pytest.raises(ConnectError, match=r"snapshot.mode=when_needed") as failed:
        for _ in range(50):
            capture.task.poll()
    assert not isinstance(failed.value, RetriableError)
    capture.task.stop()
    capture.given["snapshot.mode"] = "when_needed"
    capture.records.clear()
    capture.restart()
    capture.drain(3)
    capture.task.stop()
    read = [each for each in capture.records if each.topic == "pur.shop.pur_a"]
    assert [each.value["op"] for each in read] == ["r", "r", "r"]


def test_what_is_wrong_is_named(server: mysql.MySqlServer, tmp_path: Path) -> None:
    check = MySqlConnector().check
    assert "schema.history.internal.kafka.topic" in check({})
    assert "table.exclude.list" in check({"table.include.list": "a", "table.exclude.list": "b"})
    away = started_source(
        MariaDbConnector, config(server, "away", tmp_path) | {"database.port": "1"}, Offsets()
    )
    with pytest.raises(RetriableError, match=r"127.0.0.1:1"):
        away.poll()
    away.stop()
    lost = Offsets()
    lost[(("server", "lost"),)] = {"file": "log.000001", "pos": 4}
    task = started_source(MariaDbConnector, config(server, "lost", tmp_path), lost)
    with pytest.raises(ConnectError, match=r"schema history|no longer has the log"):
        task.poll()
    task.stop()
    plugins = Plugins()
    assert plugins.connector("io.debezium.connector.mysql.MySqlConnector") is MySqlConnector
    assert plugins.connector("io.debezium.connector.mariadb.MariaDbConnector") is MariaDbConnector


def test_transactions_are_counted_through_restarts(server: mysql.MySqlServer, tmp_path: Path) -> None:
    tables = ["txn_a", "txn_b"]
    for each in tables:
        execute(server, f"CREATE TABLE {each} (id int PRIMARY KEY, v double NOT NULL)")
    given = config(server, "txn", tmp_path, provide_transaction_metadata="true", max_batch_size="3")
    capture = Capture(given)
    capture.settle()
    churn(server, tables, 3, 15)
    execute(server, "INSERT INTO txn_a VALUES (999999, 1)")
    chosen = random.Random(5)
    while not capture.records or capture.records[-1].key != {"id": newest_gtid(server)}:
        for _ in range(chosen.randint(5, 40)):
            capture.poll()
        capture.restart()
    capture.task.stop()
    open_id, seen, ended = None, [], 0
    for each in capture.records:
        if each.topic != "txn.transaction":
            if each.value is not None:
                assert each.value["transaction"]["id"] == open_id
                seen.append((f"shop.{each.topic.rpartition('.')[2]}", each.value["transaction"]))
            continue
        assert each.key == {"id": each.value["id"]} and each.value["ts_ms"] > 0
        if each.value["status"] == "BEGIN":
            assert open_id is None
            open_id, seen = each.value["id"], []
            continue
        assert each.value["id"] == open_id and each.value["event_count"] == len(seen) > 0
        assert [block["total_order"] for _, block in seen] == list(range(1, len(seen) + 1))
        counts = {one["data_collection"]: one["event_count"] for one in each.value["data_collections"]}
        for table in {table for table, _ in seen}:
            orders = [block["data_collection_order"] for name, block in seen if name == table]
            assert orders == list(range(1, counts[table] + 1))
        open_id, ended = None, ended + 1
    assert open_id is None and ended > 5
    assert open_id is None and capture.records[-1].value["id"].startswith("0-1-")


def newest_gtid(server: mysql.MySqlServer) -> str:
    with closing(connected(server)) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@gtid_binlog_pos")
        return str(cursor.fetchone()[0])
