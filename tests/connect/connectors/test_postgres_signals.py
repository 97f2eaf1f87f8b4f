"""Signals, incremental snapshots, transaction metadata, messages and masks, against a real PostgreSQL."""

from __future__ import annotations

import hashlib
import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.connect.connectors.test_postgres_cdc import Capture, churn, config, rows_of

from barnabas.connect.connectors.debezium.topic_log import TopicLog
from barnabas.connect.connectors.postgres_cdc.connector import PostgresConnector
from barnabas.pipeline.demo import postgres
from barnabas.testing.waiting import wait_until

SIGNALS = (
    "CREATE TABLE {}_signals (id varchar(42) PRIMARY KEY, type varchar(32) NOT NULL, data varchar(2048))"
)


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    if reason := postgres.available():
        pytest.skip(reason)
    with postgres.Postgres(password="a secret") as found:
        with psycopg.connect(found.dsn, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_level = logical")
        found.stop()
        found.start()
        yield found


def execute(server: postgres.Postgres, *statements: str) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        for each in statements:
            connection.execute(each)


def signal(server: postgres.Postgres, table: str, name: str, kind: str, **data: Any) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"INSERT INTO {table} VALUES (%s, %s, %s)", (name, kind, json.dumps(data)))


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


def read_again(capture: Capture) -> int:
    found = [each for each in capture.records if each.value is not None and each.topic.startswith("inc.")]
    return sum(each.value["source"]["snapshot"] == "incremental" for each in found)


def test_an_incremental_snapshot_under_writes_and_restarts_equals_the_table(
    server: postgres.Postgres,
) -> None:
    execute(
        server,
        "CREATE TABLE inc_a (id int PRIMARY KEY, v float8 NOT NULL)",
        "INSERT INTO inc_a SELECT n, n FROM generate_series(1, 1500) n",
        SIGNALS.format("inc"),
    )
    given = config(
        server, "inc", snapshot_mode="no_data", signal_data_collection="public.inc_signals",
        incremental_snapshot_chunk_size="50", table_include_list="public.inc_a",
    )  # fmt: skip
    capture = Capture(given)
    capture.poll()
    writer = threading.Thread(target=churn, args=(server, ["inc_a"], 1, 150))
    signal(server, "inc_signals", "first", "execute-snapshot", **{"data-collections": ["public.inc_a"]})
    writer.start()
    chosen = random.Random(3)
    offset: dict[str, Any] = {}

    def is_done() -> bool:
        nonlocal offset
        for _ in range(chosen.randint(3, 25)):
            capture.poll()
        offset = next(iter(capture.offsets.values()), {})
        capture.restart()
        seen = {each.key["id"] for each in capture.records if each.topic == "inc.public.inc_a"}
        return {1, 750, 1500} <= seen and not writer.is_alive()

    wait_until(is_done, 60)
    writer.join()
    execute(server, "INSERT INTO inc_a VALUES (999999, 1)")
    wait_until(
        lambda: capture.poll() and any(each.key == {"id": 999999} for each in capture.records[-60:]), 30
    )
    capture.task.stop()
    assert state(capture.records, "inc.public.inc_a") == rows_of(server, "inc_a")
    count = read_again(capture)
    assert 1400 <= count < 2600, "a restart goes on at the last chunk, not at the first"
    assert not any(each.topic.endswith("signals") for each in capture.records)


def test_an_incremental_snapshot_that_writes_nothing_equals_the_table_under_writes(
    server: postgres.Postgres, tmp_path: Path
) -> None:
    execute(
        server,
        "CREATE TABLE quiet_a (id int PRIMARY KEY, v float8 NOT NULL)",
        "INSERT INTO quiet_a SELECT n, n FROM generate_series(1, 900) n",
    )
    wishes = tmp_path / "signals.txt"
    given = config(
        server, "quiet", snapshot_mode="no_data", read_only="true", signal_enabled_channels="file",
        signal_file=str(wishes), signal_poll_interval_ms="1", incremental_snapshot_chunk_size="50",
    )  # fmt: skip
    capture = Capture(given)
    capture.poll()
    data = {"data-collections": ["public.quiet_a"]}
    wishes.write_text(json.dumps({"id": "1", "type": "execute-snapshot", "data": data}))
    writers = [threading.Thread(target=churn, args=(server, ["quiet_a"], seed, 60)) for seed in (0, 1)]
    for each in writers:
        each.start()
    polls = 0

    def is_done() -> bool:
        nonlocal polls
        polls += 1
        capture.poll()
        if polls % 40 == 0:
            capture.restart()
        is_over = polls > 1 and "incremental_snapshot_collections" not in offset_of(capture)
        seen = {each.key["id"] for each in capture.records}
        return is_over and {1, 450, 900} <= seen and not any(each.is_alive() for each in writers)

    wait_until(is_done, 60)
    execute(server, "INSERT INTO quiet_a VALUES (999999, 1)")
    wait_until(
        lambda: capture.poll() and any(each.key == {"id": 999999} for each in capture.records[-60:]), 30
    )
    capture.task.stop()
    assert state(capture.records, "quiet.public.quiet_a") == rows_of(server, "quiet_a")
    read = [each.key["id"] for each in capture.records if each.value and each.value["op"] == "r"]
    assert len(read) > 700


def test_signals_of_files_and_topics_with_conditions(
    server: postgres.Postgres, tmp_path: Path, barnabas_broker: Any
) -> None:
    execute(
        server,
        "CREATE TABLE two_a (id int PRIMARY KEY, v float8)",
        "INSERT INTO two_a SELECT n, n FROM generate_series(1, 30) n",
        SIGNALS.format("two"),
    )
    wishes = tmp_path / "signals.txt"
    given = config(
        server, "two", snapshot_mode="no_data", signal_data_collection="public.two_signals",
        signal_enabled_channels="source,kafka,file", signal_file=str(wishes), signal_poll_interval_ms="1",
        signal_kafka_bootstrap_servers=barnabas_broker.bootstrap, signal_kafka_topic="two-wishes",
        table_include_list="public.two_a",
    )  # fmt: skip
    capture = Capture(given)
    capture.poll()
    condition = [{"data-collection": "public.two_a", "filter": "id <= 5"}]
    data = {"data-collections": ["public.two_a"], "additional-conditions": condition}
    wishes.write_text(json.dumps({"id": "1", "type": "execute-snapshot", "data": data}) + "\nnonsense\n")
    capture.drain(5)
    log = TopicLog({"bootstrap.servers": barnabas_broker.bootstrap}, "two-wishes")
    data["additional-conditions"][0]["filter"] = "id > 28"
    log.append([(b"two", json.dumps({"type": "execute-snapshot", "data": data}).encode()), (b"other", b"{}")])
    log.close()
    capture.drain(7)
    capture.task.stop()
    assert [each.key["id"] for each in capture.records] == [1, 2, 3, 4, 5, 29, 30]


def test_transactions_messages_masks_overrides_and_truncate(server: postgres.Postgres) -> None:
    execute(
        server,
        "CREATE TABLE all_a (id int PRIMARY KEY, v float8, card text, mail text)",
        "CREATE TABLE all_b (id int PRIMARY KEY, v float8)",
        "INSERT INTO all_a VALUES (1, 1, '4111', 'a@b'), (2, 2, '4222', 'c@d')",
    )
    given = config(
        server, "all", provide_transaction_metadata="true", skipped_operations="none",
        snapshot_select_statement_overrides="public.all_a",
    ) | {
        "snapshot.select.statement.overrides.public.all_a": "SELECT * FROM all_a WHERE id > 1",
        "column.mask.with.6.chars": "public.all_a.card",
        "column.mask.hash.v2.SHA-256.with.salt.pepper": r"public\..*\.mail",
    }  # fmt: skip
    capture = Capture(given)
    capture.drain(1)
    with psycopg.connect(server.dsn) as connection:
        connection.execute("INSERT INTO all_a VALUES (3, 3, NULL, 'e@f')")
        connection.execute("INSERT INTO all_b VALUES (1, 1)")
        connection.execute("INSERT INTO all_b VALUES (2, 2)")
        connection.execute("UPDATE all_b SET id = 4 WHERE id = 2")  # a delete and a create
        connection.execute("SELECT pg_logical_emit_message(true, 'note', 'inside')")
    execute(server, "SELECT pg_logical_emit_message(false, 'note', 'alone')", "TRUNCATE all_b")
    capture.drain(1 + 9 + 1 + 3)
    capture.task.stop()
    first, *found = capture.records
    hashed = hashlib.sha256(b"pepperc@d").hexdigest()
    assert first.value["after"] == {"id": 2, "v": 2.0, "card": "******", "mail": hashed}
    changes = [each for each in found if each.topic.startswith("all.public")]
    orders = [each.value["transaction"] for each in changes[:6] if each.value is not None]
    assert [each["total_order"] for each in orders] == [1, 2, 3, 4, 5]
    assert [each["data_collection_order"] for each in orders] == [1, 1, 2, 3, 4]
    edges = [each.value for each in found if each.topic == "all.transaction"]
    assert [each["status"] for each in edges] == ["BEGIN", "END", "BEGIN", "END"]
    assert edges[0]["id"] == orders[0]["id"] and edges[1]["event_count"] == 6
    ids = [each["id"].partition(":")[0] for each in (*edges[:2], *orders)]
    assert len(set(ids)) == 1, "the part before the LSN names the transaction"
    assert edges[1]["data_collections"] == [
        {"data_collection": "public.all_a", "event_count": 1},
        {"data_collection": "public.all_b", "event_count": 4},
        {"data_collection": "message", "event_count": 1},
    ]
    messages = [each for each in found if each.topic == "all.message"]
    assert [each.value["message"]["content"] for each in messages] == [b"inside", b"alone"]
    assert messages[0].key == {"prefix": "note"} and messages[0].value["op"] == "m"
    assert changes[6].value["op"] == "t" and changes[6].key is None


def test_a_filtered_publication_gets_tables_that_come_later(server: postgres.Postgres) -> None:
    execute(server, "CREATE TABLE late_a (id int PRIMARY KEY, v float8)", "INSERT INTO late_a VALUES (1, 1)")
    given = config(server, "late", replica_identity_autoset_values="public.late_a:FULL")
    capture = Capture(given)
    capture.drain(1)
    capture.task.stop()
    execute(server, "CREATE TABLE late_b (id int, v float8)")  # a table without a key
    capture.restart()
    capture.poll()
    execute(server, "INSERT INTO late_b VALUES (1, 1)", "UPDATE late_a SET v = 2")
    capture.drain(3)
    capture.task.stop()
    keyless, update = capture.records[1:]
    assert keyless.key is None and keyless.value["after"] == {"id": 1, "v": 1.0}
    assert update.value["before"] == {"id": 1, "v": 1.0}


def test_wrong_settings_of_signals_and_masks_are_named() -> None:
    check = PostgresConnector().check
    assert "signal.enabled.channels" in check({"signal.enabled.channels": "post"})
    assert "signal.kafka.bootstrap.servers" in check({"signal.enabled.channels": "kafka"})
    assert "column.mask.hash.NO.with.salt.a" in check({"column.mask.hash.NO.with.salt.a": "b"})


def test_a_blocking_snapshot_reads_tables_between_two_transactions(server: postgres.Postgres) -> None:
    execute(
        server,
        "CREATE TABLE blk_a (id int PRIMARY KEY, v float8)",
        "CREATE TABLE blk_b (id int PRIMARY KEY, v float8)",
        "INSERT INTO blk_a SELECT n, n FROM generate_series(1, 120) n",
        "INSERT INTO blk_b VALUES (1, 1)",
        SIGNALS.format("blk"),
    )
    given = config(
        server, "blk", snapshot_mode="no_data", signal_data_collection="public.blk_signals",
        table_include_list="public.blk_a,public.blk_b",
    )  # fmt: skip
    capture = Capture(given)
    capture.poll()
    execute(server, "INSERT INTO blk_a VALUES (500, 5)")
    chosen = [{"data-collection": "public.blk_a", "filter": "SELECT * FROM blk_a WHERE id > 60"}]
    data = {"type": "BLOCKING", "data-collections": ["public.blk_a"], "additional-conditions": chosen}
    signal(server, "blk_signals", "1", "execute-snapshot", **data)
    execute(server, "UPDATE blk_a SET v = 0 WHERE id = 61", "INSERT INTO blk_b VALUES (2, 2)")
    capture.drain(1 + 61 + 2)
    signal(server, "blk_signals", "2", "execute-snapshot", **{**data, "data-collections": ["public.blk_."]})
    capture.drain(64 + 61 + 2)
    capture.task.stop()
    ops = [each.value["op"] for each in capture.records]
    assert ops == ["c"] + ["r"] * 61 + ["u", "c"] + ["r"] * 63
    marks = [each.value["source"]["snapshot"] for each in capture.records[1:62]]
    assert (marks[0], marks[1], marks[-1]) == ("first", "true", "last")
    assert state(capture.records, "blk.public.blk_b") == rows_of(server, "blk_b")


def test_a_blocking_snapshot_and_signals_of_a_file_survive_restarts(
    server: postgres.Postgres, tmp_path: Path
) -> None:
    execute(
        server,
        "CREATE TABLE cut_a (id int PRIMARY KEY, v float8)",
        "INSERT INTO cut_a SELECT n, n FROM generate_series(1, 300) n",
    )
    wishes = tmp_path / "signals.txt"
    given = config(
        server, "cut", snapshot_mode="no_data", signal_enabled_channels="file", signal_file=str(wishes),
        signal_poll_interval_ms="1",
    )  # fmt: skip
    capture = Capture(given)
    capture.poll()
    data = {"type": "BLOCKING", "data-collections": ["public.cut_a"]}
    wishes.write_text(json.dumps({"id": "1", "type": "execute-snapshot", "data": data}))
    wait_until(lambda: capture.poll() and "blocking_snapshot_collections" in offset_of(capture), 30)
    assert wishes.read_text() == ""
    capture.restart()  # before the first row
    while len(capture.records) < 100:
        capture.poll()
    capture.restart()  # in the middle: the table begins again
    first = len(capture.records)
    capture.drain(first + 300)
    capture.restart()
    execute(server, "INSERT INTO cut_a VALUES (999, 1)")
    capture.drain(first + 301)
    capture.task.stop()
    assert "blocking_snapshot_collections" not in offset_of(capture)
    assert state(capture.records, "cut.public.cut_a") == rows_of(server, "cut_a")


def offset_of(capture: Capture) -> dict[str, Any]:
    return next(iter(capture.offsets.values()), {})
