"""The store answers what a plain model answers, in DuckDB and in PostgreSQL: after every part, at every
version."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.pipeline.demo import postgres
from barnabas.pipeline.serving.store import merging, view_updates
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import Limits, Store, StoreError, UnknownView
from barnabas.pipeline.serving.store.query import BadRequest, Query, parse
from barnabas.pipeline.views.layout import Column, Layout, Merge, Role
from barnabas.pipeline.views.parts import BatchPart, Conflict, ViewState, is_within
from pipeline.views_model import (
    BEGINNING,
    LAYOUT,
    Order,
    batch_part,
    by_key,
    committed,
    expected,
    grouped,
    speed_part,
)

Open = Callable[..., Store]
SHOPS = ("berlin", "paris", "rome", None, "a,b", "")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[postgres.Postgres]:
    if reason := postgres.available():
        pytest.skip(reason)
    with postgres.Postgres(password="a secret") as found:
        yield found


@pytest.fixture(params=["duckdb", "postgresql"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same store each time."""
    url = "duckdb" if request.param == "duckdb" else request.getfixturevalue("server").dsn
    name = f"test_{next(_numbers)}"
    stores: list[Store] = []

    def open_again(**given: Any) -> Store:
        for store in stores:
            store.close()
        stores[:] = [open_store(url, name=name, folder=tmp_path, **given)]
        return stores[0]

    yield open_again
    for store in stores:
        store.close()


def orders_of(rng: random.Random, count: int) -> list[Order]:
    return [
        Order(
            f"o{next(_numbers)}",
            rng.choice(SHOPS),
            rng.randint(-50, 100),
            rng.choice([None, "ann", "ben", "cid", "dan"]),
            rng.choice(["new", "paid", "sent"]),
            rng.randint(0, 30),
        )
        for _ in range(count)
    ]


FEES = "trusted.fees"


class World:
    """A table of orders and a joined table of fees, which change by versions, as the layers see them; and
    a store that follows. An order of a shop counts with the shop's fee."""

    def __init__(self, rng: random.Random, opened: Open) -> None:
        self._rng = rng
        self._opened = opened
        self.store = opened(keep_horizons=2)
        self.versions: list[list[Order]] = [orders_of(rng, 5)]
        self.fees: list[dict[str | None, int]] = [{}]
        self.computing: list[tuple[int, int]] = []
        self.conflicts = 0

    def rows(self, version: int, fees: int) -> list[Order]:
        """The orders with their fees, as of two versions."""
        return [
            replace(order, amount=order.amount + self.fees[fees].get(order.shop, 0))
            for order in self.versions[version]
        ]

    def commit(self) -> None:
        """Rows are added; now and then some are deleted or changed."""
        rows = list(self.versions[-1])
        if self._rng.random() < 0.3 and rows:
            for _ in range(self._rng.randint(1, 4)):
                place = self._rng.randrange(len(rows))
                rows[place] = replace(
                    rows[place], amount=self._rng.randint(-9, 9), shop=self._rng.choice(SHOPS)
                )
            rows = rows[self._rng.randint(0, 3) :]
        self.versions.append(rows + orders_of(self._rng, self._rng.randint(0, 4)))

    def charge(self) -> None:
        """A fee changes: old orders of the shop count otherwise."""
        self.fees.append(self.fees[-1] | {self._rng.choice(SHOPS): self._rng.randint(0, 3)})

    def announce(self) -> None:
        """The batch layer begins to compute, as of versions that may be older than where the speed layer
        is."""
        state = self.store.state("revenue")
        version = self._rng.randint(state.horizon.version if state else 0, len(self.versions) - 1)
        fees = self._rng.randint(max(0, len(self.fees) - 2), len(self.fees) - 1)
        try:
            self.store.announce("revenue", LAYOUT.fingerprint, version, {FEES: fees})
        except Conflict:
            # A speed part crosses it.
            assert state and not is_within(state.position.version, state.joined, version, {FEES: fees})
        else:
            self.computing.append((version, fees))

    def refresh(self) -> None:
        """The batch layer is done with what it began."""
        if not self.computing:
            self.announce()
        if not self.computing:
            return
        version, fees = self.computing.pop()
        part = batch_part(version, self.rows(version, fees), joined={FEES: fees})
        try:
            self.store.put_batch(part)
        except Conflict:
            self.conflicts += 1  # another one was announced, or is there already
            return
        if self._rng.random() < 0.3:
            self.store.put_batch(part)  # sent again: the answer was lost

    def catch_up(self) -> None:
        state = self.store.state("revenue")
        if state is None:
            return
        after, charged = state.position.version, state.joined[FEES]
        upto = self._rng.randint(after, len(self.versions) - 1)
        fees = self._rng.choice([charged, len(self.fees) - 1])
        fence, fence_fees = state.fence, state.fence_joined[FEES]
        if state.is_before_fence and (upto > fence or fees > fence_fees):
            with pytest.raises(Conflict, match="announced"):
                self.store.put_speed(
                    speed_part(after, upto, [], joined_after=state.joined, joined={FEES: fees})
                )
            upto, fees = min(upto, fence), min(fees, fence_fees)
        if (upto, fees) == (after, charged):
            return
        before, now = self.rows(after, charged), self.rows(upto, fees)
        lost = set(before) - set(now)
        touched = {order.shop for order in lost}
        added = [order for order in now if order not in set(before)]
        part = speed_part(after, upto, added, touched, now, state.joined, {FEES: fees})
        self.store.put_speed(part)
        if self._rng.random() < 0.3:
            self.store.put_speed(part)

    def restart(self) -> None:
        self.store = self._opened(keep_horizons=2)

    def check(self) -> None:
        state = self.store.state("revenue")
        if state is None:
            return
        answer = self.store.answer(Query("revenue"))
        wanted = expected(self.now(state))
        assert by_key(answer.rows.to_pylist()) == wanted
        assert state.rows == len(grouped(self.versions[state.position.version]))
        assert answer.freshness[0].position == state.position

    def now(self, state: ViewState) -> list[Order]:
        return self.rows(state.position.version, state.joined[FEES])

    def check_the_past(self, seen: dict[int, dict[str | None, dict[str, Any]]]) -> None:
        """What was answered at a version is what it answers as of that version, as long as it is kept."""
        state = self.store.state("revenue")
        if state is None:
            return
        for version, answered in seen.items():
            query = Query("revenue", as_of=version)
            if version < state.oldest:
                with pytest.raises(BadRequest, match="not kept"):
                    self.store.answer(query)
            else:
                assert by_key(self.store.answer(query).rows.to_pylist()) == answered


def live(world: World, rng: random.Random, steps: int) -> None:
    seen: dict[int, dict[str | None, dict[str, Any]]] = {}
    for _ in range(steps):
        steps_there = [
            world.commit, world.charge, world.announce, world.refresh, world.catch_up, world.restart
        ]  # fmt: skip
        rng.choices(steps_there, [5, 1, 1.5, 2, 5, 0.3])[0]()
        world.check()
        if state := world.store.state("revenue"):
            seen[state.position.version] = expected(world.now(state))
    world.check_the_past(seen)


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 6))]
)
def test_after_each_part_the_store_answers_what_a_plain_model_answers(opened: Open, seed: int) -> None:
    rng = random.Random(seed)
    live(World(rng, opened), rng, 40)


def sum_of_maxima(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(merging.AGGREGATES, Merge.MAX, merging.added)


def batch_counted_twice(patch: pytest.MonkeyPatch) -> None:
    """Speed parts that the new horizon covers are merged onto it once more."""
    beyond = view_updates.Updates._beyond
    patch.setattr(view_updates.Updates, "_beyond", lambda self, entry, covered: beyond(self, entry, -1))


def speed_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A planted bug: rows after the new horizon are lost when it moves."""
    beyond = view_updates.Updates._beyond
    patch.setattr(view_updates.Updates, "_beyond", lambda self, entry, covered: beyond(self, entry, 10**9))


def replacements_added(patch: pytest.MonkeyPatch) -> None:
    """Rows that replace a key are added to it."""
    patch.setattr(view_updates.Updates, "put_speed", broken_put_speed())


def broken_put_speed() -> Any:
    put_speed = view_updates.Updates.put_speed

    def put(self: view_updates.Updates, part: Any) -> Any:
        place = part.rows.schema.get_field_index("_replaces")
        never = pa.array([False] * part.rows.num_rows, pa.bool_())
        return put_speed(self, replace(part, rows=part.rows.set_column(place, "_replaces", never)))

    return put


def horizons_not_announced(patch: pytest.MonkeyPatch) -> None:
    """Speed parts may begin before a horizon and end after it."""
    patch.setattr(view_updates.Updates, "announce", lambda self, view, fingerprint, horizon, joined: None)
    patch.setattr(
        view_updates,
        "place",
        lambda transaction, entry, version, joined: nearest(transaction, entry, version),
    )


def joined_tables_ignored(patch: pytest.MonkeyPatch) -> None:
    """Horizons are compared by the version of the view's table alone."""
    patch.setattr(view_updates, "is_within", lambda version, joined, bound, bound_joined: version <= bound)


def nearest(transaction: Any, entry: Any, version: int) -> int:
    """The last part that ended at a version or before it, whether or not the next one crosses it."""
    found = transaction.rows(
        "SELECT max(number) FROM _moves WHERE view = ? AND version <= ?", entry.layout.view, version
    )
    return int(found[0][0] or 0)


@pytest.mark.parametrize(
    "bug",
    [
        batch_counted_twice,
        *(
            pytest.param(bug, marks=pytest.mark.long)
            for bug in (
                sum_of_maxima,
                speed_forgotten,
                replacements_added,
                horizons_not_announced,
                joined_tables_ignored,
            )
        ),
    ],
)
def test_the_model_finds_planted_bugs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bug: Callable[[pytest.MonkeyPatch], None]
) -> None:
    bug(monkeypatch)
    stores: list[Store] = []

    def opened(**given: Any) -> Store:
        for store in stores:
            store.close()
        stores[:] = [open_store("duckdb", name="t", folder=tmp_path / str(next(_numbers)), **given)]
        return stores[0]

    def lives(seed: int) -> None:
        rng = random.Random(seed)
        world = World(rng, opened)
        world.restart = lambda: None  # type: ignore[method-assign]
        live(world, rng, 40)

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        for seed in range(6):
            lives(seed)
    stores[0].close()


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
