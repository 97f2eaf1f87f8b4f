"""The demo's shop makes what a pipeline meets, and its services start and end."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("psycopg", reason="needs the extra `pipeline`")

import psycopg

from barnabas.pipeline.demo import __main__ as demo
from barnabas.pipeline.demo import postgres
from barnabas.pipeline.demo.generator import Faults, Shop
from barnabas.pipeline.demo.services import in_sqlite

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_same_seed_makes_the_same_records() -> None:
    one, other = (list(Shop(seed=5).records(300, NOW)) for _ in range(2))
    assert one == other
    assert one != list(Shop(seed=6).records(300, NOW))


def test_faults_are_counted() -> None:
    shop = Shop(seed=5)
    records = list(shop.records(5000, NOW))
    made = Counter(record.topic for record in records)
    assert (
        sum(made.values())
        == shop.counts["orders"] + shop.counts["payments"] + shop.counts["page_views"] + shop.counts["twice"]
    )
    assert len(records) - len(set(records)) == shop.counts["twice"]
    broken = [record for record in records if not is_json(record.value)]
    assert len(set(broken)) == shop.counts["cut"]
    late = NOW - timedelta(minutes=15)
    times = [
        datetime.fromisoformat(event["at"])
        for record in set(records)
        if is_json(record.value) and (event := json.loads(record.value))["at"] != "yesterday"
    ]
    assert sum(at <= late for at in times) > 50
    assert {"late", "wrong type", "unknown customer", "impossible amount"} <= set(shop.counts)


def test_a_shop_without_faults_makes_none() -> None:
    shop = Shop(seed=5, faults=Faults(0, 0, 0, 0, 0, 0))
    assert all(is_json(record.value) for record in shop.records(500, NOW))
    assert set(shop.counts) == {"orders", "payments", "page_views"}


def is_json(value: bytes) -> bool:
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def test_postgresql_is_started_and_ended() -> None:
    if reason := postgres.available():
        pytest.skip(reason)
    # Its own folder: as root the server runs as another user, who may not enter folders of tests.
    server = postgres.Postgres().start()
    try:
        with psycopg.connect(server.dsn) as connection:
            assert connection.execute("SELECT current_database()").fetchone() == ("shop",)
    finally:
        server.stop()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(server.dsn, connect_timeout=5)


def test_customers_are_in_sqlite_where_there_is_no_server(tmp_path: Path) -> None:
    database = in_sqlite(tmp_path / "shop.db", Shop(), "PostgreSQL is not installed")
    assert database.url.startswith("jdbc:sqlite:")
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert connection.execute("SELECT count(*) FROM customers").fetchone() == (200,)


def test_a_folder_that_is_not_from_a_demo_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious").touch()
    with pytest.raises(SystemExit, match="not from a demo"):
        demo.prepared(tmp_path)
    made = demo.prepared(tmp_path / "new")
    (made / "old").touch()
    assert [path.name for path in demo.prepared(made).iterdir()] == [demo.MARK]
