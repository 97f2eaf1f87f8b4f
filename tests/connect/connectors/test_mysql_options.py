"""Options of a real MySQL's binary log that MariaDB does not have: compressed transactions, parts of JSON."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.connect.connectors.test_mysql_cdc import Capture, config, connected
from tests.connect.connectors.test_mysql_signals import follow_quietly, with_file

from barnabas.connect.connectors.mysql_cdc.connector import MySqlConnector
from barnabas.testing import mysql, oracle_mysql

OPTIONS = (
    "--log-bin=log", "--server-id=1", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--sync-binlog=0",
    "--binlog-transaction-compression=ON", "--binlog-row-value-options=PARTIAL_JSON",
)  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[mysql.MySqlServer]:
    if reason := oracle_mysql.available():
        pytest.skip(reason)
    with oracle_mysql.OracleMySql("shop", *OPTIONS) as found:
        yield found


def captured(server: mysql.MySqlServer, name: str, folder: Path, **more: str) -> Capture:
    return Capture(config(server, name, folder, **more), MySqlConnector)


def until(capture: Capture, key: Any, seconds: float = 60) -> None:
    """Poll until the record with a key has come."""
    deadline, seen = time.monotonic() + seconds, 0
    while True:
        for each in capture.records[seen:]:
            if each.key == {"id": key}:
                return
        seen = len(capture.records)
        assert time.monotonic() < deadline, f"{seen} records, none with the key {key}"
        capture.poll()


def random_json(chosen: random.Random, depth: int = 0) -> Any:
    kind = chosen.randint(0, 9 if depth < 3 else 6)
    if kind > 7:
        return {name: random_json(chosen, depth + 1) for name in chosen.sample(NAMES, chosen.randint(0, 4))}
    if kind > 6:
        return [random_json(chosen, depth + 1) for _ in range(chosen.randint(0, 5))]
    return chosen.choice([None, True, False, -7, 70_000, 2**63 + 1, -(2**40), 1.25, "", "ü", "t" * 200])


NAMES = ["a", "b c", "d.e", 'q"q', "ü", "", "[0]"]


def paths_of(value: Any, path: str = "$") -> Iterator[str]:
    yield path
    if isinstance(value, dict):
        for name, each in value.items():
            yield from paths_of(each, f"{path}.{json.dumps(name, ensure_ascii=False)}")
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from paths_of(each, f"{path}[{place}]")


def change_documents(server: mysql.MySqlServer, seed: int, count: int) -> None:
    """Random updates of parts of documents, several in one transaction."""
    chosen = random.Random(seed)
    with closing(connected(server, autocommit=False)) as connection, connection.cursor() as cursor:
        for _ in range(count):
            key = chosen.randint(1, 20)
            cursor.execute("SELECT j, k FROM doc_a WHERE id = %s", (key,))
            column = chosen.choice("jk")
            text = cursor.fetchone()["jk".index(column)]
            path = chosen.choice(list(paths_of(json.loads(text))))
            new = json.dumps(random_json(chosen), ensure_ascii=False)
            word = chosen.choice(["SET", "REPLACE", "INSERT", "ARRAY_APPEND", "ARRAY_INSERT", "REMOVE"])
            values = {"path": path, "new": new, "key": key}
            if word == "REMOVE":
                call = f"JSON_REMOVE({column}, %(path)s)" if path != "$" else column
            elif word == "ARRAY_INSERT" and not path.endswith("]"):
                call = column
            else:
                call = f"JSON_{word}({column}, %(path)s, CAST(%(new)s AS JSON))"
            cursor.execute(f"UPDATE doc_a SET {column} = {call}, n = n + 1 WHERE id = %(key)s", values)
            if chosen.random() < 0.3:
                connection.commit()
        connection.commit()


@pytest.mark.long
def test_parts_of_documents_in_compressed_transactions_make_whole_ones(
    server: mysql.MySqlServer, tmp_path: Path
) -> None:
    chosen = random.Random(3)
    with closing(connected(server)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE doc_a (id int PRIMARY KEY, j json, n int, k json, v varchar(9))")
        capture = captured(server, "doc", tmp_path)
        capture.settle()
        for key in range(1, 21):
            documents = [json.dumps({"a": random_json(chosen), "list": [1, [2], {}], "long": "x" * 500})
                         for _ in "jk"]  # fmt: skip
            cursor.execute("INSERT INTO doc_a VALUES (%s, %s, 0, %s, 'v')", (key, *documents))
        for seed in range(6):
            change_documents(server, seed, 60)
            capture.poll()
            capture.poll()
            capture.restart()  # inside of a compressed transaction, too
        cursor.execute("INSERT INTO doc_a VALUES (99, NULL, 0, '{}', '')")
        cursor.execute("SHOW BINARY LOGS")
        until(capture, 99)
        cursor.execute("SELECT id, j, n, k FROM doc_a")
        wanted = {key: (j and json.loads(j), n, json.loads(k)) for key, j, n, k in cursor.fetchall()}
    capture.task.stop()
    found: dict[int, Any] = {}
    for each in capture.records:
        after, before = each.value["after"], each.value["before"]
        row = (after["j"] and json.loads(after["j"]), after["n"], json.loads(after["k"]))
        if before is not None:
            old = (json.loads(before["j"]), before["n"], json.loads(before["k"]))
            assert found[after["id"]] == old, "an update is lost or comes twice"
        found[after["id"]] = row
    assert found == wanted
    assert len(capture.records) > 200


@pytest.mark.long
def test_values_that_json_does_not_have_keep_their_digits(server: mysql.MySqlServer, tmp_path: Path) -> None:
    capture = captured(server, "own", tmp_path)
    with closing(connected(server)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE own_a (id int PRIMARY KEY, j json)")
        capture.settle()
        cursor.execute(
            "INSERT INTO own_a VALUES (1, JSON_OBJECT("
            " 'd', CAST('12345678901234567890.000000000000123456789' AS DECIMAL(60,21)),"
            " 'n', CAST(-0.5 AS DECIMAL(5,2)), 'at', TIMESTAMP'2024-05-06 07:08:09.25', 'day',"
            " DATE'2024-05-06', 'time', TIME'-12:34:56', 'bytes', CAST(0x00ff10 AS BINARY)))"
        )
        until(capture, 1)
    capture.task.stop()
    read = json.loads(capture.records[-1].value["after"]["j"], parse_float=Decimal)
    assert read == {
        "d": Decimal("12345678901234567890.000000000000123456789"), "n": Decimal("-0.50"),
        "at": "2024-05-06 07:08:09.250000", "day": "2024-05-06", "time": "-12:34:56", "bytes": "AP8Q",
    }  # fmt: skip


@pytest.mark.long
def test_an_incremental_snapshot_that_writes_nothing_equals_the_table(
    server: mysql.MySqlServer, tmp_path: Path
) -> None:
    with closing(connected(server)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE quiet_a (id int PRIMARY KEY, v double NOT NULL)")
        cursor.executemany("INSERT INTO quiet_a VALUES (%s, %s)", [(n, n) for n in range(1, 901)])
    given = config(server, "quiet", tmp_path, snapshot_mode="no_data", read_only="true")
    follow_quietly(Capture(with_file(given, tmp_path), MySqlConnector), server)


@pytest.mark.long
def test_vectors_are_lists_of_numbers_in_snapshots_and_the_stream(
    server: mysql.MySqlServer, tmp_path: Path
) -> None:
    row = (Decimal("12345678901234567890123456789012345.123456789012345678901234567890"), [1.0, -2.5, 0.0])
    with closing(connected(server)) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE vec_a (id int PRIMARY KEY, d decimal(65,30), v vector(8))")
        insert = f"INSERT INTO vec_a VALUES (%s, '{row[0]}', to_vector('[1,-2.5,0]'))"
        cursor.execute(insert, (1,))
        capture = captured(server, "vec", tmp_path)
        capture.drain(1)
        cursor.execute(insert, (2,))
        cursor.execute("INSERT INTO vec_a (id) VALUES (3)")
        until(capture, 3)
    capture.task.stop()
    rows = [each.value["after"] for each in capture.records]
    assert [(each["d"], each["v"]) for each in rows] == [row, row, (None, None)]
    schema = capture.records[1].value_schema.field("after").field("v")
    assert (schema.name, schema.version, schema.value.type) == ("io.debezium.data.FloatVector", 1, "float32")
