"""What the shop's pipeline must answer, computed by plain Python from what was sent."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from barnabas.pipeline.demo.generator import Record

KEYS = {"orders": "order_id", "payments": "payment_id", "page_views": "view_id"}


@dataclass
class Expected:
    """Everything that follows from the records and customers."""

    sent: Counter[str] = field(default_factory=Counter)
    accepted: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    countries: dict[int, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        customers: Iterable[tuple[int, str, str, str]],
        least_order: float = 0.0,
    ) -> Expected:
        found = cls(countries={row[0]: row[3] for row in customers})
        for record in records:
            found.sent[record.topic] += 1
            try:
                event = json.loads(record.value)
            except ValueError:
                continue
            least = least_order if record.topic == "orders" else 0.0
            if event["at"] == "yesterday" or not least <= event.get("amount", 0) <= 10_000:
                continue
            found.accepted[record.topic].setdefault(event[KEYS[record.topic]], event)
        return found

    def revenue(self) -> dict[str, tuple[int, float]]:
        return summed((each["shop"], each["amount"]) for each in self.accepted["orders"].values())

    def fraud_alerts(self) -> dict[str, tuple[int, float]]:
        return summed(
            (each["country"], each["amount"])
            for each in self.accepted["payments"].values()
            if each["country"] == "XX" or each["amount"] > 300
        )

    def warehouse(self) -> dict[str, tuple[int, float]]:
        return summed(
            (self.countries[each["customer_id"]], each["amount"])
            for each in self.accepted["orders"].values()
            if each["customer_id"] in self.countries
        )

    def recommendations(self) -> dict[str, tuple[int, int]]:
        views: Counter[str] = Counter()
        people: dict[str, set[int]] = defaultdict(set)
        for each in self.accepted["page_views"].values():
            views[each["product"]] += 1
            people[each["product"]].add(each["customer_id"])
        return {product: (count, len(people[product])) for product, count in views.items()}


def summed(pairs: Iterable[tuple[str, float]]) -> dict[str, tuple[int, float]]:
    found: dict[str, tuple[int, float]] = {}
    for key, amount in pairs:
        count, total = found.get(key, (0, 0.0))
        found[key] = (count + 1, total + amount)
    return found
