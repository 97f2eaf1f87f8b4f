"""A small shop that makes orders, payments and page views, with the faults of real data.

In: a seed, and the rate of each fault. Out: records for three topics as JSON, and rows for a table of
customers. Some records are duplicates, some are late, some are broken: cut off, of a wrong type, with an
unknown customer or an impossible amount. The shop counts what it made, for comparison. Does not know:
brokers, databases (`demo.services`).
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

SHOPS = ("berlin", "lisbon", "oslo", "vienna", "zurich")
PRODUCTS = ("espresso", "filter", "cortado", "beans", "grinder", "kettle", "cups", "scale")
PRICES = {"espresso": 2.4, "filter": 3.1, "cortado": 3.4, "beans": 14.0, "grinder": 89.0, "kettle": 64.0}
CHANNELS = ("search", "newsletter", "direct", "shared link")
CUSTOMERS = 200


@dataclass(frozen=True, slots=True)
class Faults:
    """How often something goes wrong, as a share of all records."""

    twice: float = 0.03
    late: float = 0.02
    cut: float = 0.01
    wrong_type: float = 0.005
    unknown_customer: float = 0.005
    impossible_amount: float = 0.01


@dataclass(frozen=True, slots=True)
class Record:
    topic: str
    key: str
    value: bytes


@dataclass(slots=True)
class Shop:
    """`records(n)` makes the next n things that happen, in the order they reach the topics."""

    seed: int = 1
    faults: Faults = field(default_factory=Faults)
    counts: Counter[str] = field(default_factory=Counter)
    _number: int = 0
    _rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)

    def customers(self) -> list[tuple[int, str, str, str]]:
        """Rows of the table of customers: id, name, email, country."""
        rng = random.Random(self.seed)
        names = ("Ada", "Bela", "Cleo", "Dora", "Edin", "Fay", "Gil", "Hana", "Ivo", "Juno")
        return [
            (
                number,
                f"{rng.choice(names)} {number}",
                f"customer{number}@example.com",
                rng.choice(("AT", "CH", "DE", "NO", "PT")),
            )
            for number in range(1, CUSTOMERS + 1)
        ]

    def records(self, number: int, now: datetime | None = None) -> Iterator[Record]:
        for _ in range(number):
            yield from self._happening(now or datetime.now(UTC))

    def _happening(self, now: datetime) -> Iterator[Record]:
        rng = self._rng
        self._number += 1
        at = now
        if rng.random() < self.faults.late:
            at -= timedelta(minutes=rng.randrange(15, 90))
            self.counts["late"] += 1
        chance = rng.random()
        if chance < 0.70:
            yield from self._sent("page_views", self._page_view(at))
            return
        order = self._order(at)
        yield from self._sent("orders", order)
        if chance < 0.95:
            yield from self._sent("payments", self._payment(order, at))

    def _page_view(self, at: datetime) -> dict[str, object]:
        return {
            "view_id": f"v{self.seed}-{self._number}",
            "customer_id": self._rng.randrange(1, CUSTOMERS + 1),
            "product": self._rng.choice(PRODUCTS),
            "channel": self._rng.choice(CHANNELS),
            "at": stamp(at),
        }

    def _order(self, at: datetime) -> dict[str, object]:
        rng = self._rng
        product = rng.choice(PRODUCTS)
        amount = round(PRICES.get(product, 19.0) * rng.randrange(1, 5) * rng.uniform(0.9, 1.1), 2)
        order: dict[str, object] = {
            "order_id": f"o{self.seed}-{self._number}",
            "customer_id": rng.randrange(1, CUSTOMERS + 1),
            "shop": rng.choice(SHOPS),
            "product": product,
            "amount": amount,
            "at": stamp(at),
        }
        if rng.random() < self.faults.impossible_amount:
            order["amount"] = -amount
            self.counts["impossible amount"] += 1
        elif rng.random() < self.faults.unknown_customer:
            order["customer_id"] = CUSTOMERS + rng.randrange(1, 1000)
            self.counts["unknown customer"] += 1
        return order

    def _payment(self, order: dict[str, object], at: datetime) -> dict[str, object]:
        rng = self._rng
        digits = "".join(str(rng.randrange(10)) for _ in range(12))
        return {
            "payment_id": f"p{self.seed}-{self._number}",
            "order_id": order["order_id"],
            "card": f"4{digits}{rng.randrange(100, 1000)}",
            "country": rng.choice(("AT", "CH", "DE", "DE", "NO", "PT", "XX")),
            "amount": order["amount"],
            "at": stamp(at + timedelta(seconds=1)),
        }

    def _sent(self, topic: str, event: dict[str, object]) -> Iterator[Record]:
        rng = self._rng
        self.counts[topic] += 1
        key = str(next(iter(event.values())))
        if rng.random() < self.faults.wrong_type:
            event = {**event, "at": "yesterday"}
            self.counts["wrong type"] += 1
        value = json.dumps(event).encode()
        if rng.random() < self.faults.cut:
            value = value[: rng.randrange(1, len(value) - 1)]
            self.counts["cut"] += 1
        record = Record(topic, key, value)
        yield record
        if rng.random() < self.faults.twice:
            self.counts["twice"] += 1
            yield record


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
