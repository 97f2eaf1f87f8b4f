"""Signals and incremental snapshots against a real MariaDB."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.connect.connectors.test_mysql_cdc import (
    OPTIONS,
    Capture,
    churn,
    config,
    connected,
    execute,
    rows_of,
)

from barnabas.testing import mysql
from barnabas.testing.waiting import wait_until

SIGNALS = "CREATE TABLE {}_signals (id varchar(42) PRIMARY KEY, type varchar(32), data varchar(2048))"
NUMBERS = "INSERT INTO {} SELECT seq, seq FROM seq_1_to_{}"


@pytest.fixture(scope="module")
def server() -> Iterator[mysql.MySqlServer]:
    if reason := mysql.available():
        pytest.skip(reason)
    with mysql.MySqlServer("shop", *OPTIONS) as found:
        yield found


def signal(server: mysql.MySqlServer, table: str, name: str, kind: str, **data: Any) -> None:
    with closing(connected(server)) as connection, connection.cursor() as cursor:
        cursor.execute(f"INSERT INTO {table} VALUES (%s, %s, %s)", (name, kind, json.dumps(data)))


def state(records: list[Any], topic: str) -> dict[Any, Any]:
    """The rows of a table after all events; a row that is read again replaces itself."""
    rows: dict[Any, Any] = {}
    for each in records:
        if each.topic == topic and each.value is not None:
            if each.value["op"] == "d":
                rows.pop(each.key["id"], None)
            else:
                rows[each.key["id"]] = each.value["after"]["v"]
    return rows


def read_again(records: list[Any]) -> list[Any]:
    found = [each for each in records if each.value is not None]
    return [each.key for each in found if each.value["source"]["snapshot"] == "incremental"]


def test_an_incremental_snapshot_under_writes_and_restarts_equals_the_table(
    server: mysql.MySqlServer, tmp_path: Path
) -> None:
    execute(
        server,
        "CREATE TABLE inc_a (id int PRIMARY KEY, v double NOT NULL)",
        NUMBERS.format("inc_a", 1500),
        SIGNALS.format("inc"),
    )
    given = config(
        server, "inc", tmp_path, snapshot_mode="no_data", signal_data_collection="shop.inc_signals",
        incremental_snapshot_chunk_size="50", table_include_list="shop.inc_a",
    )  # fmt: skip
    capture = Capture(given)
    capture.settle()
    writer = threading.Thread(target=churn, args=(server, ["inc_a"], 1, 150))
    signal(server, "inc_signals", "first", "execute-snapshot", **{"data-collections": ["shop.inc_a"]})
    writer.start()
    chosen = random.Random(3)

    def is_done() -> bool:
        for _ in range(chosen.randint(3, 25)):
            capture.poll()
        capture.restart()
        seen = {each["id"] for each in read_again(capture.records)}
        return {1, 750, 1500} <= seen and not writer.is_alive()

    wait_until(is_done, 60)
    writer.join()
    execute(server, "INSERT INTO inc_a VALUES (999999, 1)")
    wait_until(
        lambda: capture.poll() and any(each.key == {"id": 999999} for each in capture.records[-60:]), 30
    )
    capture.task.stop()
    assert state(capture.records, "inc.shop.inc_a") == rows_of(server, "inc_a")
    count = len(read_again(capture.records))
    assert 1300 <= count < 2600, "a restart goes on at the last chunk, not at the first"
    assert not any(each.topic.endswith("signals") for each in capture.records)


def test_an_incremental_snapshot_that_writes_nothing_equals_the_table_under_writes(
    server: mysql.MySqlServer, tmp_path: Path
) -> None:
    execute(
        server, "CREATE TABLE quiet_a (id int PRIMARY KEY, v double NOT NULL)", NUMBERS.format("quiet_a", 900)
    )
    given = config(server, "quiet", tmp_path, snapshot_mode="no_data", read_only="true")
    follow_quietly(Capture(with_file(given, tmp_path)), server)


def with_file(given: dict[str, str], folder: Path) -> dict[str, str]:
    """The settings of a connector that reads signals of a file, and chunks without marks."""
    more = {"signal.enabled.channels": "file", "signal.file": str(folder / "signals.txt")}
    return given | more | {"signal.poll.interval.ms": "1", "incremental.snapshot.chunk.size": "50"}


def follow_quietly(capture: Capture, server: mysql.MySqlServer) -> None:
    """An incremental snapshot of quiet_a under writes and restarts, without a table of signals."""
    capture.settle()
    data = {"data-collections": ["shop.quiet_a"]}
    wish = json.dumps({"id": "1", "type": "execute-snapshot", "data": data})
    Path(capture.given["signal.file"]).write_text(wish)
    writers = [threading.Thread(target=churn, args=(server, ["quiet_a"], seed, 60)) for seed in (1, 2)]
    for each in writers:
        each.start()
    polls = 0

    def is_done() -> bool:
        nonlocal polls
        polls += 1
        capture.poll()
        if polls % 40 == 0:
            capture.restart()
        is_over = polls > 1 and "incremental_snapshot_collections" not in capture.offset
        seen = {each.key["id"] for each in capture.records}
        return is_over and {450, 900} <= seen and not any(each.is_alive() for each in writers)

    wait_until(is_done, 90)
    execute(server, "INSERT INTO quiet_a VALUES (999999, 1)")
    wait_until(
        lambda: capture.poll() and any(each.key == {"id": 999999} for each in capture.records[-60:]), 30
    )
    capture.task.stop()
    assert state(capture.records, "quiet.shop.quiet_a") == rows_of(server, "quiet_a")
    assert len(read_again(capture.records)) > 700


def test_a_change_inside_of_a_window_wins_over_the_row_that_was_read(
    server: mysql.MySqlServer, tmp_path: Path
) -> None:
    execute(
        server,
        "CREATE TABLE win_a (id int PRIMARY KEY, v double)",
        "INSERT INTO win_a VALUES (1, 1), (2, 2)",
        SIGNALS.format("win"),
    )
    given = config(
        server, "win", tmp_path, snapshot_mode="no_data", signal_data_collection="shop.win_signals",
        table_include_list="shop.win_a",
    )  # fmt: skip
    capture = Capture(given)
    capture.settle()
    chunks = capture.task._chunks
    mark = chunks._mark

    def changed(name: str, kind: str) -> None:
        if kind == "snapshot-window-close":  # the chunk was read
            execute(server, "UPDATE win_a SET v = 20 WHERE id = 2")
        mark(name, kind)

    chunks._mark = changed
    signal(server, "win_signals", "1", "execute-snapshot", **{"data-collections": ["shop.win_a"]})
    capture.drain(2)
    capture.task.stop()
    assert [(each.value["op"], each.value["after"]) for each in capture.records] == [
        ("u", {"id": 2, "v": 20.0}),
        ("r", {"id": 1, "v": 1.0}),
    ]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("bigint unsigned", ["1", "9223372036854775808", "18446744073709551615"]),
        ("varchar(20)", ["'%a'", "'b''c'", "'é'"]),
        ("varbinary(8)", ["0x00", "0x00ff", "0xff"]),
        ("decimal(20,4)", ["-1.5", "0.0001", "12345678901234.5"]),
        ("datetime(6)", ["'2024-01-01 00:00:00.000001'", "'2024-01-01 00:00:00.000002'", "'2025-01-01'"]),
        ("enum('z','a','m')", ["'z'", "'a'", "'m'"]),
    ],
)
def test_keys_of_all_kinds_are_read_in_chunks(
    server: mysql.MySqlServer, tmp_path: Path, kind: str, values: list[str]
) -> None:
    name = "k" + "".join(each for each in kind if each.isalpha())[:8]
    rows = ", ".join(f"({each}, {number})" for each in values for number in (1, 2))
    execute(
        server, f"CREATE TABLE {name}_a (a {kind}, b int, PRIMARY KEY (a, b))",
        f"INSERT INTO {name}_a VALUES {rows}", SIGNALS.format(name),
    )  # fmt: skip
    given = config(
        server, name, tmp_path, snapshot_mode="no_data", signal_data_collection=f"shop.{name}_signals",
        table_include_list=f"shop.{name}_a", incremental_snapshot_chunk_size="1",
    )  # fmt: skip
    capture = Capture(given)
    capture.settle()
    signal(server, f"{name}_signals", "1", "execute-snapshot", **{"data-collections": [f"shop.{name}_a"]})
    capture.drain(2 * len(values))
    capture.task.stop()
    keys = [json.dumps(each, default=repr) for each in read_again(capture.records)]
    assert len(keys) == len(set(keys)) == 2 * len(values)


def test_signals_of_a_file_with_conditions(server: mysql.MySqlServer, tmp_path: Path) -> None:
    execute(
        server, "CREATE TABLE two_a (id int PRIMARY KEY, v double)", NUMBERS.format("two_a", 30),
        SIGNALS.format("two"),
    )  # fmt: skip
    wishes = tmp_path / "signals.txt"
    given = config(
        server, "two", tmp_path, snapshot_mode="no_data", signal_data_collection="shop.two_signals",
        signal_enabled_channels="source,file", signal_file=str(wishes), signal_poll_interval_ms="1",
        table_include_list="shop.two_a",
    )  # fmt: skip
    capture = Capture(given)
    capture.settle()
    condition = [{"data-collection": "shop.two_a", "filter": "id <= 5 AND concat(id) LIKE '%'"}]
    data = {
        "data-collections": ["shop.two_a", "shop.nothing"], "additional-conditions": condition,
    }  # fmt: skip
    wishes.write_text(json.dumps({"id": "1", "type": "execute-snapshot", "data": data}) + "\nnonsense\n")
    capture.drain(5)
    capture.task.stop()
    assert [each.key["id"] for each in capture.records] == [1, 2, 3, 4, 5]


def test_a_blocking_snapshot_reads_tables_between_two_transactions(
    server: mysql.MySqlServer, tmp_path: Path
) -> None:
    execute(
        server, "CREATE TABLE blk_a (id int PRIMARY KEY, v float8)", NUMBERS.format("blk_a", 120),
        SIGNALS.format("blk"),
    )  # fmt: skip
    more = {"table.include.list": "shop.blk_a", "signal.data.collection": "shop.blk_signals"}
    capture = Capture(config(server, "blk", tmp_path, snapshot_mode="no_data") | more)
    capture.settle()
    execute(server, "INSERT INTO blk_a VALUES (500, 5)")
    data = {"type": "BLOCKING", "data-collections": ["shop.blk_a"]}
    signal(server, "blk_signals", "1", "execute-snapshot", **data)
    execute(server, "UPDATE blk_a SET v = 0 WHERE id = 61")
    capture.drain(1 + 121 + 1)
    capture.restart()
    execute(server, "INSERT INTO blk_a VALUES (501, 5)")
    capture.drain(124)
    capture.task.stop()
    assert [each.value["op"] for each in capture.records] == ["c"] + ["r"] * 121 + ["u", "c"]
    assert state(capture.records, "blk.shop.blk_a") == rows_of(server, "blk_a")


def test_a_blocking_snapshot_of_a_file_survives_restarts(server: mysql.MySqlServer, tmp_path: Path) -> None:
    execute(server, "CREATE TABLE cut_a (id int PRIMARY KEY, v float8)", NUMBERS.format("cut_a", 300))
    wishes = tmp_path / "signals.txt"
    more = {"signal.enabled.channels": "file", "signal.file": str(wishes), "signal.poll.interval.ms": "1"}
    capture = Capture(config(server, "cut", tmp_path, snapshot_mode="no_data") | more)
    capture.settle()
    data = {"type": "BLOCKING", "data-collections": ["shop.cut_a"]}
    wishes.write_text(json.dumps({"id": "1", "type": "execute-snapshot", "data": data}))
    while "blocking_snapshot_collections" not in capture.offset:
        capture.poll()
    capture.restart()  # before the first row
    while len(capture.records) < 100:
        capture.poll()
    capture.restart()  # in the middle: the table begins again
    first = len(capture.records)
    capture.drain(first + 300)
    capture.task.stop()
    assert "blocking_snapshot_collections" not in capture.offset
    assert state(capture.records, "cut.shop.cut_a") == rows_of(server, "cut_a")
