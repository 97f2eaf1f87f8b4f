"""A shop that lives at random: orders with duplicates, late and broken ones go through the zones into a view,
while processes restart, horizons move and the past is rewritten; and a plain model of what must be served."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from barnabas.pipeline import (
    Pipeline,
    Schema,
    Staging,
    TableName,
    TopicSource,
    Trusted,
    View,
    in_range,
    not_null,
)
from barnabas.pipeline.ingest.results import AddedRows
from barnabas.pipeline.ingest.source_runner import SourceRunner
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import Store
from barnabas.pipeline.serving.store.query import Query
from barnabas.pipeline.views.layers import Views
from barnabas.pipeline.views.part_files import lake_parts
from barnabas.pipeline.views.parts import BatchPart, ViewState
from pipeline.views_model import MEASURES, SQL, Order, by_key, expected

ORDERS = TableName.parse("trusted.orders")
QUARANTINE = TableName.parse("quarantine.orders")
DDL = "order_id STRING, shop STRING, amount BIGINT, customer STRING, status STRING, at TIMESTAMP"
AMOUNT_MAX = 100
SHOPS = ("berlin", "paris", "rome")
LATENESS_S = 300.0

Produce = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a world lives."""

    spark: Any
    bootstrap: str
    topic: str
    produce: Produce
    folder: Path


class Meanwhile:
    """The store for a batch layer that takes its time: something happens before its part arrives."""

    def __init__(self, store: Store, happens: Callable[[], None]) -> None:
        self._store = store
        self._happens = happens

    def put_batch(self, part: BatchPart) -> ViewState:
        self._happens()
        return self._store.put_batch(part)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


class World:
    """The platform and the model side by side. Steps are methods without arguments."""

    def __init__(self, place: Place, rng: random.Random) -> None:
        self._place = place
        self._rng = rng
        self._numbers = itertools.count()
        self._minute = 0
        self._amount_max = AMOUNT_MAX
        # The model: what was sent and not ingested, what staging holds (the first of each key), what was
        # accepted.
        self._sent: list[Order | None] = []
        self._ever: list[Order] = []
        self._staged: dict[str, Order] = {}
        self._accepted: dict[str, Order] = {}
        self._refused: set[str] = set()
        # What the view must show at each version of its table.
        self._at: dict[int, list[Order]] = {}
        self._open()

    # -- steps -------------------------------------------------------------------------------------

    def produce(self) -> None:
        """New orders in time and late ones, orders sent again (as they were, or changed), and broken ones."""
        for _ in range(self._rng.randint(2, 8)):
            self._minute += self._rng.randint(0, 2)
            kind = self._rng.choices(
                ["new", "late", "again", "changed", "outside", "broken"], [6, 2, 2, 1, 1, 1]
            )[0]
            if kind == "broken":
                value = self._rng.choice(
                    [b"{no json", b"", json.dumps({"order_id": "x", "amount": "many"}).encode()]
                )
                self._send(None, value)
                continue
            order = Order(
                f"o{next(self._numbers)}",
                self._rng.choice(SHOPS),
                self._rng.randint(0, AMOUNT_MAX),
                self._rng.choice([None, "ann", "ben", "cid", "dan", ""]),
                self._rng.choice(["new", "paid", "sent"]),
                self._minute - (60 if kind == "late" else 0),
            )
            if kind == "outside":
                order = replace(order, amount=self._rng.choice([-1, AMOUNT_MAX + 1]))
            elif kind in ("again", "changed") and self._ever:
                order = self._rng.choice(self._ever)
                if kind == "changed":
                    order = replace(order, amount=self._rng.randint(0, AMOUNT_MAX))
            self._send(order, as_json(order))

    def ingest(self) -> None:
        """Sent records go through the zones: each key once, broken ones into quarantine."""
        self.runner.drain()
        for order in self._sent:
            if order is not None and order.order_id not in self._staged:
                self._staged[order.order_id] = order
                if self._is_good(order):
                    self._accepted[order.order_id] = order
                else:
                    self._refused.add(order.order_id)
        self._sent.clear()
        self._note()

    def increments(self, table: TableName, rows: Any) -> Mapping[str, Any]:
        """A `Follower`, as the streaming application is one."""
        return self.views.increments(table, rows)

    def added(self, added: AddedRows) -> None:
        self._added.append(added)

    def catch_up(self) -> None:
        # Some is told of rows as they come, some is lost on the way, and some is told twice.
        told = [each for each in self._added if self._rng.random() < 0.8]
        self._added = self._added[-1:]
        self.views.catch_up("revenue", told)
        state = self.store.state("revenue")
        version = self.version()
        assert version < 0 or (state is not None and state.position.version == version)

    def refresh(self) -> None:
        """The horizon moves while nothing else happens."""
        self.views.refresh("revenue")

    def refresh_meanwhile(self) -> None:
        """The horizon moves while orders come in and are served: some are behind it, some before."""

        def happens() -> None:
            self.produce()
            self.ingest()
            if self._rng.random() < 0.8:
                self.catch_up()
            self.check()

        parts = Meanwhile(self.store, happens)
        Views(self._place.spark, self.pipeline, parts).refresh("revenue")

    def restart(self) -> None:
        """Every process ends and begins again."""
        self.store.close()
        self._open()

    def correct(self) -> None:
        """A person changes and deletes rows of the view's table."""
        known = sorted(self._accepted)
        if not known:
            return
        gone = self._rng.sample(known, min(2, len(known)))
        moved = self._rng.choice(known)
        path = self.pipeline.lake_location.identifier(ORDERS)
        listed = ", ".join(f"'{name}'" for name in gone)
        shop = self._rng.choice(SHOPS)
        self._place.spark.sql(f"UPDATE {path} SET shop = '{shop}' WHERE order_id = '{moved}'")
        self._accepted[moved] = replace(self._accepted[moved], shop=shop)
        self._note()
        self._place.spark.sql(f"DELETE FROM {path} WHERE order_id IN ({listed})")
        for name in gone:
            del self._accepted[name]
        self._note()

    def replay(self) -> None:
        """Rules change, and everything that ever came goes through the zones anew: rows come and go; what was
        mended by hand is as it was sent again."""
        from barnabas.pipeline.ingest.rewriting.replay import replay

        self._amount_max = self._rng.choice([AMOUNT_MAX - 20, AMOUNT_MAX, AMOUNT_MAX + 1])
        self.restart()
        replay(self._place.spark, self.pipeline, "orders")
        self._accepted = {name: order for name, order in self._staged.items() if self._is_good(order)}
        self._refused = {name for name in self._staged if name not in self._accepted}
        self._note()

    def release(self) -> None:
        """A rule becomes milder, and what it had refused comes out of quarantine."""
        from barnabas.pipeline.ingest.rewriting.release import release

        self._amount_max = AMOUNT_MAX + 1
        self.restart()
        if not self.pipeline.lake_location.exists(self._place.spark, QUARANTINE):
            return
        release(self._place.spark, self.pipeline, "orders")
        for name in [name for name in self._refused if self._is_good(self._staged[name])]:
            self._accepted[name] = self._staged[name]
            self._refused.discard(name)
        self._note()

    def compact(self) -> None:
        if self.version() >= 0:
            self._place.spark.sql(f"OPTIMIZE {self.pipeline.lake_location.identifier(ORDERS)}")
            self._note()

    # -- what must be true -------------------------------------------------------------------------

    def check(self) -> None:
        """Serving answers what the model answers from the orders that were accepted up to the view's
        position."""
        state = self.store.state("revenue")
        if state is None:
            return
        answer = self.store.answer(Query("revenue"))
        wanted = expected(self._at[state.position.version])
        assert by_key(answer.rows.to_pylist()) == wanted, f"at version {state.position.version}"
        assert answer.freshness[0].position.version == state.position.version

    def version(self) -> int:
        return self.pipeline.lake_location.version(self._place.spark, ORDERS)

    # -- how it is made ----------------------------------------------------------------------------

    def _open(self) -> None:
        self.pipeline = self._described()
        self.runner = SourceRunner(self._place.spark, self.pipeline, "orders", listener=self)
        self._added: list[AddedRows] = []
        parts = lake_parts(self.pipeline)
        self.store: Store = open_store("duckdb", name="shop", folder=self._place.folder / "store", lake=parts)
        self.views = Views(self._place.spark, self.pipeline, self.store)

    def _described(self) -> Pipeline:
        place = self._place
        source = TopicSource(
            name="orders",
            bootstrap_servers=place.bootstrap,
            subscribe=place.topic,
            schema=Schema(ddl=DDL),
            event_time="at",
            lateness_s=LATENESS_S,
        )
        rules = [not_null("order_id"), in_range("amount", 0, self._amount_max)]
        return Pipeline(
            name="shop",
            lake=str(place.folder / "lake"),
            sources=[source],
            staging=[Staging(name="orders", source="orders", key=["order_id"])],
            trusted=[Trusted(name="orders", staging="orders", rules=rules)],
            views=[View(name="revenue", source="trusted.orders", sql=SQL, keys=["shop"], measures=MEASURES)],
        )

    def _send(self, order: Order | None, value: bytes) -> None:
        self._place.produce(self._place.topic, [value])
        self._sent.append(order)
        if order is not None:
            self._ever.append(order)

    def _is_good(self, order: Order) -> bool:
        return 0 <= order.amount <= self._amount_max

    def _note(self) -> None:
        self._at[self.version()] = list(self._accepted.values())


def as_json(order: Order) -> bytes:
    return json.dumps(
        {
            "order_id": order.order_id,
            "shop": order.shop,
            "amount": order.amount,
            "customer": order.customer,
            "status": order.status,
            "at": order.at.isoformat(),
        }
    ).encode()


def live(world: World, rng: random.Random, steps: int) -> list[str]:
    """Random steps, each followed by the check; says what was done."""
    weights = {
        world.produce: 3,
        world.ingest: 3,
        world.catch_up: 3,
        world.refresh: 1,
        world.refresh_meanwhile: 1.5,
        world.restart: 1,
        world.correct: 1,
        world.replay: 1,
        world.release: 0.7,
        world.compact: 0.5,
    }
    # Each kind at least once; the rest as it comes.
    chosen = [*weights, *rng.choices(list(weights), list(weights.values()), k=max(0, steps - len(weights)))]
    rng.shuffle(chosen)
    for step in chosen:
        step()
        world.check()
    return [step.__name__ for step in chosen]


def meet(world: World) -> list[str]:
    """The steps in which zones and views meet: rows come while the horizon moves, people correct rows, and
    everything is replayed by other rules."""
    chosen = [world.refresh_meanwhile, world.correct, world.catch_up, world.replay, world.catch_up]
    for step in chosen:
        step()
        world.check()
    return [step.__name__ for step in chosen]
