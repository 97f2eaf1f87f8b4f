"""A topology with each operator, and the types that a checker must infer. `test_types` has mypy check it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_type

from barnabas.plans.serdes import Serde
from barnabas.streams import (
    F,
    GlobalKTable,
    GroupedStream,
    GroupedTable,
    JoinWindows,
    KStream,
    KTable,
    Message,
    SessionWindows,
    StreamsBuilder,
    TestDriver,
    TimeWindows,
    Windowed,
    arrow_function,
    case,
    col,
    key,
    pandas_function,
    until_time_limit,
    until_window_closes,
    value,
)
from barnabas.streams.dsl.cogroups import CogroupedStream
from barnabas.streams.serdes.formats import LONG, STRING, WindowedSerde, serde_of
from barnabas.streams.serdes.registered import RegisteredSerde, avro, json_schema


@dataclass(frozen=True)
class Order:
    user: str
    amount: float


@dataclass(frozen=True)
class User:
    name: str


@dataclass(frozen=True)
class Bill:
    name: str
    amount: float


builder = StreamsBuilder("types")

# Sources: keys are text and values anything unless a format tells more. Names of formats tell nothing.
assert_type(builder.stream("anything"), KStream[str, Any])
assert_type(builder.stream("ints", key=int, value=LONG), KStream[int, int])
assert_type(builder.stream("named", key="int32", value="int64"), KStream[Any, Any])
assert_type(builder.stream("named", value="int64"), KStream[str, Any])
orders = builder.stream("orders", value=Order)
assert_type(orders, KStream[str, Order])
users = builder.table("users", value=User)
assert_type(users, KTable[str, User])
versions = builder.table("versions", key=int, value=User, history_ms=10)
assert_type(versions, KTable[int, User])
everywhere = builder.global_table("everywhere", key=int, value=User)
assert_type(everywhere, GlobalKTable[int, User])

# Serdes
assert_type(serde_of(Order), Serde[Order])
assert_type(serde_of("int64"), Serde[Any])
assert_type(avro("http://registry", of=Order), RegisteredSerde[Order])
assert_type(json_schema("http://registry", "{}"), RegisteredSerde[Any])
assert_type(builder.stream("avro", value=avro("http://registry", of=Order)), KStream[str, Order])
minutes = TimeWindows(60_000, 60_000)
assert_type(WindowedSerde(STRING, minutes), WindowedSerde[str])
assert_type(builder.stream("windows", key=WindowedSerde(STRING, minutes)), KStream[Windowed[str], Any])

# Stateless steps
assert_type(orders.filter(lambda user, order: order.amount > 0), KStream[str, Order])
assert_type(orders.filter_not(lambda user, order: user.startswith("x")), KStream[str, Order])
assert_type(orders.map(lambda user, order: (len(user), order.amount)), KStream[int, float])
assert_type(
    orders.map(lambda user, order: (len(user), order.amount), key=int, value=float), KStream[int, float]
)
assert_type(orders.map_values(lambda order: order.user), KStream[str, str])
assert_type(orders.map_values(lambda order: order.user, value="string"), KStream[str, str])
assert_type(
    orders.map_values(lambda user, order: (user, order), with_key=True), KStream[str, tuple[str, Order]]
)
assert_type(orders.flat_map(lambda user, order: [(len(user), order)]), KStream[int, Order])
assert_type(orders.flat_map_values(lambda order: order.user.split()), KStream[str, str])
assert_type(orders.flat_map_values(lambda user, order: [len(user)], with_key=True), KStream[str, int])
assert_type(orders.select_key(lambda user, order: len(user)), KStream[int, Order])
assert_type(orders.restamp(lambda user, order: int(order.amount)), KStream[str, Order])
assert_type(orders.peek(lambda user, order: print(order.amount)), KStream[str, Order])
orders.foreach(lambda user, order: print(order.amount))
amounts = orders.map_values(lambda order: order.amount, value=float)
assert_type(amounts, KStream[str, float])
assert_type(orders.merge(orders), KStream[str, Order])
assert_type(orders.merge(amounts), KStream[str, Order | float])
branches = orders.split({"large": lambda user, order: order.amount > 9}, default="small")
assert_type(branches, dict[str, KStream[str, Order]])
orders.to("copies")
orders.to("copies", key=str, value=Order)
orders.to(lambda user, order: f"orders-{order.user}")
assert_type(orders.through("middle"), KStream[str, Order])
assert_type(orders.repartition(partitions=3), KStream[str, Order])
assert_type(orders.to_table(), KTable[str, Order])

# Expressions and functions over batches in the place of functions
assert_type(orders.filter(col("amount") > 10), KStream[str, Order])
assert_type(orders.map((key(), value())), KStream[Any, Any])
assert_type(orders.map((key(), value()), key=int, value=Order), KStream[int, Order])
assert_type(orders.map_values(col("user"), value=str), KStream[str, str])
assert_type(orders.map_values(case((col("amount") > 10, "large"), default="small")), KStream[str, Any])
assert_type(orders.select_key(col("user"), key=str), KStream[str, Order])


@pandas_function
def doubled(series: Any) -> Any:
    return series * 2


assert_type(amounts.map_values(doubled), KStream[str, Any])
assert_type(amounts.map_values(doubled, value=float), KStream[str, float])
assert_type(amounts.filter(arrow_function(lambda array: array)), KStream[str, float])

# Groups and aggregations
grouped = orders.group_by_key()
assert_type(grouped, GroupedStream[str, Order])
by_amount = orders.group_by(lambda user, order: order.amount, key=float)
assert_type(by_amount, GroupedStream[float, Order])
assert_type(by_amount.count(), KTable[float, int])
assert_type(
    grouped.reduce(lambda one, other: max(one, other, key=lambda order: order.amount)), KTable[str, Order]
)
assert_type(
    grouped.aggregate(lambda: 0.0, lambda user, order, total: total + order.amount), KTable[str, float]
)
total = grouped.aggregate(lambda: 0.0, lambda user, order, total: total + order.amount, value=float)
assert_type(total, KTable[str, float])
assert_type(grouped.aggregate(n=F.count(), total=F.sum("amount")), KTable[str, Any])
assert_type(grouped.aggregate(user=F.latest("user"), amount=F.sum("amount"), value=Order), KTable[str, Order])

# Windows
windowed = grouped.windowed_by(minutes)
assert_type(windowed, GroupedStream[str, Order, Windowed[str]])
assert_type(windowed.final().count(), KTable[Windowed[str], int])
assert_type(
    windowed.on_close(lambda window, result: print(window.key, window.end)).count(),
    KTable[Windowed[str], int],
)
sessions = grouped.windowed_by(SessionWindows(timedelta(minutes=1)))
spent = sessions.aggregate(
    lambda: 0.0,
    lambda user, order, total: total + order.amount,
    lambda user, one, other: one + other,
    value=float,
)
assert_type(spent, KTable[Windowed[str], float])
assert_type(spent.suppress(until_window_closes()), KTable[Windowed[str], float])
texts = spent.to_stream().map(lambda window, total: (f"{window.key}@{window.start}", total))
assert_type(texts, KStream[str, float])

# Cogroups
cogrouped = grouped.cogroup(lambda user, order, total: total + order.amount)


def add_amount(user: str, amount: float, total: float) -> float:
    return total + amount


both = (
    amounts.group_by_key()
    .cogroup(add_amount)
    .cogroup(grouped, lambda user, order, total: total + order.amount)
)
assert_type(both, CogroupedStream[str, float])
assert_type(both.aggregate(lambda: 0.0), KTable[str, float])
assert_type(both.windowed_by(minutes).final().aggregate(lambda: 0.0), KTable[Windowed[str], float])

# Tables
assert_type(users.filter(lambda user, row: row.name != ""), KTable[str, User])
assert_type(users.filter_not(lambda user, row: row.name == ""), KTable[str, User])
names = users.map_values(lambda row: row.name, value=str, store="names")
assert_type(names, KTable[str, str])
assert_type(users.map_values(lambda user, row: len(user + row.name), with_key=True), KTable[str, int])
assert_type(names.to_stream(), KStream[str, str])
by_name = users.group_by(lambda user, row: (row.name, len(user)), key=str, value=int)
assert_type(by_name, GroupedTable[str, int])
assert_type(by_name.count(), KTable[str, int])
assert_type(by_name.reduce(lambda one, other: one + other, lambda one, other: one - other), KTable[str, int])
assert_type(
    by_name.aggregate(lambda: 0.0, lambda name, row, sum: sum + row, lambda name, row, sum: sum - row),
    KTable[str, float],
)
assert_type(names.suppress(until_time_limit(1000)), KTable[str, str])

# Joins of streams
minute = JoinWindows(60_000, 60_000)
assert_type(orders.join(amounts, lambda order, amount: order.amount + amount, minute), KStream[str, float])
assert_type(
    orders.join(amounts, lambda user, order, amount: (user, amount), minute, with_key=True),
    KStream[str, tuple[str, float]],
)
assert_type(
    orders.left_join(amounts, lambda order, amount: (order.user, amount), minute),
    KStream[str, tuple[str, float | None]],
)
assert_type(
    orders.outer_join(amounts, lambda order, amount: (order, amount), minute),
    KStream[str, tuple[Order | None, float | None]],
)
bills = orders.join(users, lambda order, user: Bill(user.name, order.amount), value=Bill)
assert_type(bills, KStream[str, Bill])
assert_type(
    orders.left_join(users, lambda order, user: None if user is None else user.name), KStream[str, str | None]
)
assert_type(
    orders.join(everywhere, lambda order, user: user.name, on=lambda key, order: len(order.user)),
    KStream[str, str],
)
assert_type(
    orders.left_join(
        everywhere, lambda key, order, user: (key, user), on=lambda key, order: 1, with_key=True
    ),
    KStream[str, tuple[str, User | None]],
)

# Joins of tables
assert_type(users.join(names, lambda user, name: user.name + name), KTable[str, str])
assert_type(users.left_join(names, lambda user, name: name), KTable[str, str | None])
assert_type(
    users.outer_join(names, lambda user, name: (user, name)), KTable[str, tuple[User | None, str | None]]
)
assert_type(
    users.join(versions, lambda user, other: (user, other), foreign_key=lambda user: len(user.name)),
    KTable[str, tuple[User, User]],
)


# Processors
class Lengths:
    def init(self, context: Any) -> None:
        self.context = context

    def process(self, record: Message[str, Order]) -> None:
        self.context.forward(Message(record.key, len(record.value.user), record.timestamp))


lengths: KStream[str, int] = orders.process(Lengths)
assert_type(lengths.filter(lambda user, length: length > 3), KStream[str, int])
assert_type(orders.process(Lengths), KStream[Any, Any])
assert_type(orders.process_values(Lengths), KStream[str, Any])


# Annotations without parameters mean any keys and values.
def passed_on(stream: KStream, table: KTable) -> KStream:
    return stream.join(table, lambda one, other: one)


# The test driver
def written(driver: TestDriver) -> None:
    driver.input("orders", value=Order).pipe("ann", Order("ann", 1.0))
    driver.input("users", value=User).pipe("ann", None)
    assert_type(driver.output("totals", value=float).table(), dict[str, float])
    assert_type(driver.output("totals", key=int, value=LONG).pairs(), list[tuple[int, int]])
    assert_type(driver.output("totals").read(), list[Message[str, Any]])
