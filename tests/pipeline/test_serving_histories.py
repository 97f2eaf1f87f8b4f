"""After every part, at every version, the store answers what a plain model answers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from barnabas.pipeline.serving.store import merging, view_updates
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import Store
from barnabas.pipeline.serving.store.query import BadRequest, Query
from barnabas.pipeline.views.layout import Merge
from barnabas.pipeline.views.parts import Conflict, ViewState, is_within
from pipeline.serving_stores import SHOPS, Open, opened, orders_of, server
from pipeline.views_model import (
    LAYOUT,
    Order,
    batch_part,
    by_key,
    expected,
    grouped,
    speed_part,
)

__all__ = ["opened", "server"]

_numbers = itertools.count()

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
