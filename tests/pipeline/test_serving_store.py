"""A store of views in DuckDB and in PostgreSQL: what it refuses, keeps and answers."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from barnabas.pipeline.demo import postgres
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import Limits, StoreError, UnknownView
from barnabas.pipeline.serving.store.query import BadRequest, Query, parse
from barnabas.pipeline.views.layout import Column, Layout, Merge, Role
from barnabas.pipeline.views.parts import BatchPart, Conflict
from pipeline.serving_stores import Open, opened, orders_of, server
from pipeline.views_model import (
    BEGINNING,
    LAYOUT,
    Order,
    batch_part,
    by_key,
    committed,
    expected,
    speed_part,
)

__all__ = ["opened", "server"]


def test_a_speed_part_that_does_not_begin_at_the_position_is_a_conflict(opened: Open) -> None:
    store = opened()
    with pytest.raises(Conflict, match="batch part comes first"):
        store.put_speed(speed_part(0, 1, []))
    store.put_batch(batch_part(3, []))
    with pytest.raises(Conflict, match="is at version 3, not at 4"):
        store.put_speed(speed_part(4, 5, []))
    assert store.put_speed(speed_part(1, 2, orders_of(random.Random(1), 3))).position.version == 3
    assert store.answer(Query("revenue")).rows.num_rows == 0


def test_a_horizon_never_goes_back(opened: Open) -> None:
    store = opened()
    orders = orders_of(random.Random(1), 9)
    store.put_batch(batch_part(3, orders))
    with pytest.raises(Conflict, match="beyond 2"):
        store.put_batch(batch_part(2, []))
    assert by_key(store.answer(Query("revenue")).rows.to_pylist()) == expected(orders)


def test_a_view_with_new_sql_shows_old_rows_until_it_is_recomputed(opened: Open) -> None:
    store = opened()
    orders = orders_of(random.Random(1), 9)
    store.put_batch(batch_part(7, orders))
    other = replace(LAYOUT, source="another SQL")
    with pytest.raises(Conflict):
        store.put_speed(replace(speed_part(7, 8, orders), layout=other))
    assert by_key(store.answer(Query("revenue")).rows.to_pylist()) == expected(orders)
    store.put_batch(batch_part(2, orders[:1], other))
    state = store.state("revenue")
    assert state is not None and state.layout == other
    assert (state.horizon.version, state.position.version, state.oldest) == (2, 2, 2)
    assert by_key(store.answer(Query("revenue")).rows.to_pylist()) == expected(orders[:1])


def test_two_rows_of_one_key_are_refused_and_nothing_changes(opened: Open) -> None:
    store = opened()
    part = batch_part(1, [Order("1", "berlin", 1, None, "new", 0)])
    with pytest.raises(ValueError, match="group by its keys"):
        store.put_batch(replace(part, rows=pa.concat_tables([part.rows, part.rows])))
    with pytest.raises(ValueError, match="does not have the columns"):
        store.put_batch(replace(part, rows=part.rows.drop_columns(["orders"])))
    assert store.state("revenue") is None


def test_answers_have_their_freshness(opened: Open) -> None:
    store = opened()
    store.put_batch(batch_part(1, []))
    store.put_speed(speed_part(1, 4, []))
    later = BEGINNING + timedelta(hours=1)
    store.checked("revenue", 3, later)  # of a version that the view has left behind
    (fresh,) = store.answer(Query("revenue")).freshness
    assert (fresh.horizon, fresh.position, fresh.complete_at) == (committed(1), committed(4), committed(4).at)
    store.checked("revenue", 4, later)
    assert store.answer(Query("revenue")).freshness[0].complete_at == later
    (past,) = store.answer(Query("revenue", as_of=2)).freshness
    assert (past.horizon, past.position) == (committed(1), committed(1))


def test_time_travel_takes_a_time(opened: Open) -> None:
    store = opened()
    orders = orders_of(random.Random(3), 6)
    store.put_batch(batch_part(1, orders[:2]))
    store.put_speed(speed_part(1, 2, orders[2:4]))
    store.put_speed(speed_part(2, 5, orders[4:]))

    def at(seconds: float) -> dict[str | None, dict[str, Any]]:
        query = Query("revenue", as_of=BEGINNING + timedelta(seconds=seconds))
        return by_key(store.answer(query).rows.to_pylist())

    assert at(1) == expected(orders[:2])
    assert at(4.9) == expected(orders[:4])
    assert at(99) == expected(orders)
    with pytest.raises(BadRequest, match="before what is kept"):
        at(0.5)
    with pytest.raises(BadRequest, match="not at 6 yet"):
        store.answer(Query("revenue", as_of=6))
    sums = store.sql("SELECT sum(orders) AS n FROM revenue", as_of=2).rows
    assert int(sums["n"][0].as_py()) == 4


def test_filters_order_columns_limit_and_offset(opened: Open) -> None:
    store = opened()
    shops = {"berlin": 5, "bonn": 7, "rome": 9, "100%": 1, None: 3}
    store.put_batch(batch_part(1, [Order(str(n), shop, n, "ann", "new", 0) for shop, n in shops.items()]))

    def ask(*parameters: tuple[str, str]) -> list[str | None]:
        answer = store.answer(parse("revenue", parameters))
        return [row["shop"] for row in answer.rows.to_pylist()]

    assert ask() == ["100%", "berlin", "bonn", "rome", None]
    assert ask(("shop", "bonn")) == ["bonn"]
    assert ask(("filter", "shop != bonn")) == ["100%", "berlin", "rome"]
    assert ask(("filter", "revenue > 3"), ("filter", "revenue<9")) == ["berlin", "bonn"]
    assert ask(("filter", "revenue >= 7"), ("order", "-revenue")) == ["rome", "bonn"]
    assert ask(("filter", "revenue <= 3.5"), ("order", "revenue desc")) == [None, "100%"]
    assert ask(("filter", "shop in (rome, berlin)")) == ["berlin", "rome"]
    assert ask(("filter", "shop like b%")) == ["berlin", "bonn"]
    assert ask(("filter", "shop is null")) == [None]
    assert ask(("filter", "shop is not null"), ("limit", "2"), ("offset", "1")) == ["berlin", "bonn"]
    assert ask(("filter", "mean > 6")) == ["bonn", "rome"]
    answer = store.answer(parse("revenue", [("columns", "mean,shop"), ("limit", "3")]))
    assert answer.rows.schema.names == ["mean", "shop"] and answer.is_cut
    assert not store.answer(parse("revenue", [("limit", "5")])).is_cut


EVERY_TYPE: dict[str, list[Any]] = {
    "boolean": [True, False],
    "tinyint": [-128, 127],
    "smallint": [-(2**15), 2**15 - 1],
    "int": [-(2**31), 2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1],
    "float": [1.5, float("inf")],
    "double": [0.1, float("-inf")],
    "decimal(20,2)": ["1.10", "-99999999999999999.99"],
    "string": ["x" * 5000, "ü\n\t\\"],
    "binary": [b"", b"\x00\xff"],
    "date": ["2026-02-28", "1969-12-31"],
    "timestamp": ["2026-02-28T12:00:00.123456Z", "1900-01-01T00:00:00Z"],
    "timestamp_ntz": ["2026-02-28T12:00:00.123456", "1900-01-01T00:00:00"],
}


@pytest.mark.parametrize("type", EVERY_TYPE)
def test_keys_of_every_type_come_back_as_they_were_and_can_be_looked_up(opened: Open, type: str) -> None:
    layout = Layout(
        "typed",
        (Column("shop", type, Role.KEY), Column("n", "bigint", Role.MEASURE, Merge.COUNT)),
        "types",
    )
    given: list[Any] = EVERY_TYPE[type]
    values = pa.array(given)
    keys = pa.concat_arrays(
        [values.cast(layout.schema.field("shop").type), pa.nulls(1, layout.schema[0].type)]
    )
    rows = pa.table([keys, pa.array([1, 2, 3], pa.int64())], schema=layout.schema)
    store = opened()
    store.put_batch(BatchPart(layout, committed(1), rows))
    store.put_batch(BatchPart(layout, committed(2), rows))
    answer = store.answer(Query("typed", columns=("n", "shop"))).rows.sort_by("n")
    assert answer["shop"].combine_chunks().equals(keys)
    if type != "binary":
        text = str(given[1])
        found = store.answer(parse("typed", [("shop", text)])).rows["n"].to_pylist()
        assert found == [2]


def test_readers_see_a_view_before_a_part_or_after_it_never_between(opened: Open) -> None:
    """Each version has one order more in each of many shops: an answer whose shops differ is one from
    between."""
    store = opened()
    shops = [f"shop{number}" for number in range(50)]

    def orders(version: int) -> list[Order]:
        return [Order(f"{version}-{shop}", shop, 1, None, "new", 0) for shop in shops]

    store.put_batch(batch_part(1, orders(1)))
    wrong: list[Any] = []
    is_done = threading.Event()

    def read() -> None:
        while not is_done.is_set():
            answer = store.answer(Query("revenue"))
            counts = set(answer.rows["orders"].to_pylist())
            if counts != {answer.freshness[0].position.version} or answer.rows.num_rows != len(shops):
                wrong.append((counts, answer.freshness))
                return

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        for version in range(2, 12):
            store.put_speed(speed_part(version - 1, version, orders(version)))
            if version % 3 == 0:
                whole = [order for each in range(1, version) for order in orders(each)]
                store.put_batch(batch_part(version - 1, whole))
                other = replace(LAYOUT, source=f"SQL {version}")
                assert other.fingerprint != LAYOUT.fingerprint
    finally:
        is_done.set()
        for reader in readers:
            reader.join()
    assert not wrong


def test_views_are_dropped_and_unknown_ones_named(opened: Open) -> None:
    store = opened()
    store.put_batch(batch_part(1, []))
    with pytest.raises(UnknownView, match="there are revenue"):
        store.answer(Query("revenues"))
    store.drop("revenue")
    store.drop("revenue")
    assert store.states() == []
    with pytest.raises(UnknownView, match="none yet"):
        store.answer(Query("revenue"))


def test_a_server_that_was_restarted_is_found_again(server: postgres.Postgres, tmp_path: Path) -> None:
    store = open_store(server.dsn, name="restarts", folder=tmp_path)
    store.put_batch(batch_part(1, []))
    server.stop()
    with pytest.raises(StoreError, match="is not reachable") as problem:
        store.state("revenue")
    assert "secret" not in str(problem.value)
    server.start()
    assert store.state("revenue") is not None
    store.close()


def test_a_store_that_cannot_be_opened_says_why_without_secrets(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="mysql"):
        open_store("mysql://root:hunter2@x/y", name="t", folder=tmp_path)
    with pytest.raises(StoreError) as problem:
        open_store("postgresql://ann:hunter2@127.0.0.1:1/x", name="t", folder=tmp_path)
    assert "hunter2" not in str(problem.value) and "127.0.0.1:1" in str(problem.value)
    (tmp_path / "serving.duckdb").write_text("no database")
    with pytest.raises(StoreError, match=r"serving\.duckdb"):
        open_store("duckdb", name="t", folder=tmp_path)


def test_the_past_is_bounded(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.pipeline.serving.store.catalog.VERSIONS_MAX", 3)
    monkeypatch.setattr("barnabas.pipeline.serving.store.view_updates.PRUNED_EVERY", 1)
    store = opened(limits=Limits())
    store.put_batch(batch_part(0, []))
    orders = orders_of(random.Random(5), 10)
    for version in range(1, 11):
        store.put_speed(speed_part(version - 1, version, orders[version - 1 : version]))
    state = store.state("revenue")
    assert state is not None and state.oldest == 7
    with pytest.raises(Conflict):
        store.put_batch(batch_part(5, orders[:5]))  # what came after it is not known part by part any more
    store.put_batch(batch_part(8, orders[:8]))
    assert by_key(store.answer(Query("revenue")).rows.to_pylist()) == expected(orders)


def test_indexes_of_an_earlier_release_are_dropped_from_a_file(tmp_path: Path) -> None:
    first = open_store("duckdb", name="old", folder=tmp_path)
    orders = orders_of(random.Random(4), 20)
    first.put_batch(batch_part(1, orders))
    before = first.answer(Query("revenue")).rows
    first.close()
    with duckdb.connect(str(tmp_path / "serving.duckdb")) as old:
        old.execute('CREATE INDEX "revenue__1_index_0" ON "revenue__1_now" (_key)')
        old.execute("CREATE INDEX _moves_index ON _moves (view)")
        old.execute("ALTER TABLE _views ADD PRIMARY KEY (view)")

    again = open_store("duckdb", name="old", folder=tmp_path)
    assert again.answer(Query("revenue")).rows == before
    again.close()
    with duckdb.connect(str(tmp_path / "serving.duckdb")) as file:
        assert not file.execute("FROM duckdb_indexes()").fetchall()
        keys = "FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
        assert not file.execute(keys).fetchall()
