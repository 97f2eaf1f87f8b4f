"""Wrong programs: a checker must refuse each line that ends with `# refused`, and no other.

`test_types` has mypy check this file. Nothing runs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barnabas.streams import JoinWindows, KStream, Message, StreamsBuilder, TestDriver, TimeWindows
from barnabas.streams.serdes.formats import LONG


@dataclass(frozen=True)
class Order:
    user: str
    amount: float


builder = StreamsBuilder("refused")
orders = builder.stream("orders", value=Order)
grouped = orders.group_by_key()
counts = grouped.count()
users = builder.table("users", value=str)
numbers = builder.table("numbers", key=int, value=str)
windows = JoinWindows(1, 1)

# Fields and functions that the type of the value does not have
orders.filter(lambda user, order: order.price > 1)  # refused
orders.filter(lambda order: True)  # refused
orders.map_values(lambda order: order.upper())  # refused
orders.map_values(lambda user, order: order)  # refused
orders.flat_map_values(lambda order: 5)  # refused
orders.flat_map(lambda user, order: [order])  # refused
orders.map(lambda user, order: order)  # refused
orders.select_key(lambda user, order: order.name)  # refused
orders.peek(lambda user, order: order.name)  # refused
orders.restamp(lambda user, order: order.user)  # refused
orders.split({"large": lambda user, order: order.price})  # refused
counts.filter(lambda user, count: count.amount)  # refused
counts.map_values(lambda count: count.upper())  # refused
counts.to_stream().map_values(lambda count: count.upper())  # refused

# Results that their formats cannot write
orders.map_values(lambda order: order.amount, value=str)  # refused
orders.map(lambda user, order: (user, 1), value=str)  # refused
orders.select_key(lambda user, order: user, key=int)  # refused
orders.to("copies", value=str)  # refused
counts.to_stream().to("counts", value=str)  # refused
counts.to_stream().to("counts", key=LONG)  # refused
orders.to(lambda user, order: order.amount)  # refused
orders.group_by(lambda user, order: order.user, key=int)  # refused
grouped.aggregate(lambda: 0, lambda user, order, n: f"{n}", value=int)  # refused
grouped.aggregate(lambda: "", lambda user, order, n: n, value=int)  # refused
grouped.reduce(lambda one, other: other.amount)  # refused

# Keys and values of joins
orders.join(numbers, lambda order, text: text)  # refused
orders.join(users, lambda order, text: text.amount)  # refused
orders.left_join(users, lambda order, text: text.upper())  # refused
orders.join(orders, lambda one, other: one)  # refused
orders.outer_join(orders, lambda one, other: one.amount, windows)  # refused
users.join(numbers, lambda one, other: one)  # refused
users.join(numbers, lambda one, other: one, foreign_key=lambda text: text)  # refused
users.join(orders, lambda one, other: one)  # refused

# Windows
minutes = grouped.windowed_by(TimeWindows(1, 1)).count()
minutes.to_stream().map_values(lambda window, count: window.upper(), with_key=True)  # refused
minutes.join(counts, lambda one, other: one)  # refused
cogrouped = orders.group_by_key().cogroup(lambda user, order, n: n)
windowed = grouped.windowed_by(TimeWindows(1, 1))
cogrouped.cogroup(windowed, lambda user, order, n: n)  # refused


class Lengths:
    def init(self, context: Any) -> None: ...

    def process(self, record: Message[str, str]) -> None: ...


orders.process(Lengths)  # refused
wrong: KStream[str, str] = orders.map_values(lambda order: order.amount, value=float)  # refused


def written(driver: TestDriver) -> None:
    driver.input("orders", value=Order).pipe("ann", "an order")  # refused
    driver.input("orders", value=Order).pipe(1, Order("ann", 1.0))  # refused
