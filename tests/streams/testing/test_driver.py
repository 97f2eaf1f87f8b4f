"""Topologies of the DSL give Kafka Streams' results, without a broker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from barnabas.plans.interpreter.records import Message, TaskError, log_and_continue
from barnabas.plans.interpreter.task import Handlers
from barnabas.plans.plan import PlanError
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.streams import (
    F,
    JoinWindows,
    SessionWindows,
    StreamsBuilder,
    TestDriver,
    TimeWindows,
    Windowed,
    col,
)
from barnabas.streams.dsl.suppressions import until_time_limit, until_window_closes
from barnabas.streams.serdes.formats import JSON, LONG, STRING, WindowedSerde


def test_words_are_counted() -> None:
    builder = StreamsBuilder("words")
    lines = builder.stream("lines", value=str)
    words = lines.flat_map_values(lambda line: line.lower().split(), value=str)
    words.group_by(lambda _, word: word, key=str).count(store="counts").to_stream().to("counts")
    with TestDriver(builder.build()) as driver:
        driver.input("lines", value=str).pipe(None, "to be or not to be", 10)
        assert driver.output("counts", value=int).table() == {"to": 2, "be": 2, "or": 1, "not": 1}
        assert driver.store("counts").get("be") == 2
        assert {each.topic for each in driver.changelog} == {"words-counts-changelog"}


def test_nodes_have_the_names_of_kafka_streams() -> None:
    builder = StreamsBuilder("words")
    lines = builder.stream("lines", value=str)
    words = lines.flat_map_values(str.split, value=str)
    words.group_by(lambda _, word: word, key=str).count(store="counts").to_stream().to("out")
    plan = builder.build()
    assert [node.name for node in plan.nodes] == [
        "KSTREAM-SOURCE-0000000000",
        "KSTREAM-FLATMAPVALUES-0000000001",
        "KSTREAM-KEY-SELECT-0000000002",
        "KSTREAM-FILTER-0000000005",
        "KSTREAM-SINK-0000000004",
        "KSTREAM-SOURCE-0000000006",
        "KSTREAM-AGGREGATE-0000000003",
        "KTABLE-TOSTREAM-0000000007",
        "KSTREAM-SINK-0000000008",
    ]
    assert [part.source_topics for part in plan.subtopologies] == [
        ("lines",),
        ("words-counts-repartition",),
    ]


def windowed(windows: Any, **how: Any) -> tuple[TestDriver, Any, Any]:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key().windowed_by(windows)
    table = (grouped.final() if how.get("final") else grouped).count()
    if how.get("suppress"):
        table = table.suppress(until_window_closes())
    table.to_stream().to("out")
    driver = TestDriver(builder.build())
    return driver, driver.input("in"), driver.output("out", WindowedSerde(STRING, windows), LONG)


def test_a_record_is_late_for_one_window_at_a_time() -> None:
    driver, records, results = windowed(TimeWindows(10, 5))
    for time in (12, 19, 11):  # at 19 the window [5, 15) has closed, [10, 20) is open
        records.pipe("a", 1, time)
    assert results.read() == [
        Message(Windowed("a", 5, 15), 1, 12),
        Message(Windowed("a", 10, 20), 1, 12),
        Message(Windowed("a", 10, 20), 2, 19),
        Message(Windowed("a", 15, 25), 1, 19),
        Message(Windowed("a", 10, 20), 3, 19),
    ]
    assert driver.dropped == {"late": 1}


@pytest.mark.parametrize("how", ["final", "suppress"])
def test_a_window_without_grace_closes_with_the_next_one(how: str) -> None:
    _, records, results = windowed(TimeWindows(10, 10), **{how: True})
    for time in (3, 10):
        records.pipe("a", 1, time)
    assert results.read() == [Message(Windowed("a", 0, 10), 1, 3)]


@pytest.mark.parametrize("how", ["final", "suppress"])
def test_a_window_has_one_result_when_it_closes(how: str) -> None:
    _, records, results = windowed(TimeWindows(10, 10, grace_ms=5), **{how: True})
    for key, time in (("b", 1), ("a", 2), ("a", 12), ("a", 9), ("a", 15)):
        records.pipe(key, 1, time)
    assert results.read() == [Message(Windowed("a", 0, 10), 2, 9), Message(Windowed("b", 0, 10), 1, 1)]


def test_sessions_merge_and_delete_what_they_were() -> None:
    _, records, results = windowed(SessionWindows(5, grace_ms=100))
    for time in (0, 10, 5):
        records.pipe("a", 1, time)
    assert results.read() == [
        Message(Windowed("a", 0, 0), 1, 0),
        Message(Windowed("a", 10, 10), 1, 10),
        Message(Windowed("a", 0, 0), None, 0),
        Message(Windowed("a", 10, 10), None, 10),
        Message(Windowed("a", 0, 10), 3, 10),
    ]


def test_a_left_join_gives_the_unmatched_when_their_window_has_passed() -> None:
    builder = StreamsBuilder()
    one, two = builder.stream("one"), builder.stream("two")
    one.left_join(two, lambda a, b: [a, b], JoinWindows(5, 5)).to("out")
    driver = TestDriver(builder.build())
    left, right = driver.input("one"), driver.input("two")
    left.pipe("a", 1, 0)
    left.pipe("b", 2, 1)
    right.pipe("b", 3, 4)
    assert driver.output("out").read() == [Message("b", [2, 3], 4)]
    left.pipe("c", 4, 20)
    left.pipe(None, 5, 20)
    assert driver.output("out").read() == [Message("a", [1, None], 0), Message(None, [5, None], 20)]


def test_tables_and_global_tables_are_looked_up() -> None:
    builder = StreamsBuilder()
    users, regions = builder.table("users"), builder.global_table("regions")
    views = builder.stream("views")
    joined = views.left_join(users, lambda view, user: {**view, "user": user})
    joined.join(regions, lambda view, name: {**view, "region": name}, on=col("region")).to("out")
    driver = TestDriver(builder.build())
    driver.input("regions").pipe("eu", "Europe", 0)
    driver.input("users").pipe("u", "Ada", 0)
    for user, region in (("u", "eu"), ("x", "eu"), ("u", "nowhere"), ("u", None)):
        driver.input("views").pipe(user, {"region": region}, 1)
    assert driver.output("out").pairs() == [
        ("u", {"region": "Europe", "user": "Ada"}),
        ("x", {"region": "Europe", "user": None}),
    ]


def test_a_grouped_table_takes_old_values_out_of_their_group() -> None:
    builder = StreamsBuilder("colours")
    table = builder.table("colours", value=str)
    table.group_by(lambda user, colour: (colour, user), key=str, value=str).count().to_stream().to("out")
    driver = TestDriver(builder.build())
    for user, colour in (("ann", "red"), ("bob", "red"), ("ann", "blue"), ("bob", None)):
        driver.input("colours", value=str).pipe(user, colour, 0)
    assert driver.output("out", value=int).pairs() == [
        ("red", 1),
        ("red", 2),
        ("red", 1),
        ("blue", 1),
        ("red", 0),
    ]


def test_suppress_gives_the_last_update_after_a_limit() -> None:
    builder = StreamsBuilder()
    builder.table("in").suppress(until_time_limit(10)).to_stream().to("out")
    driver = TestDriver(builder.build())
    for key, value, time in (("a", 1, 0), ("a", 2, 4), ("b", 3, 9), ("c", 4, 10)):
        driver.input("in").pipe(key, value, time)
    assert driver.output("out").read() == [Message("a", 2, 4)]


def test_built_in_functions_aggregate_fields() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").filter(col("amount") > 0).group_by_key()
    grouped.aggregate(total=F.sum("amount"), mean=F.avg("amount"), n=F.count()).to_stream().to("out")
    driver = TestDriver(builder.build())
    for amount in (1, 5, -3):
        driver.input("in").pipe("a", {"amount": amount}, 0)
    assert driver.output("out").table() == {"a": {"total": 6, "mean": 3.0, "n": 2}}


def test_branches_merge_and_dynamic_topics() -> None:
    builder = StreamsBuilder()
    parts = builder.stream("in").split({"small": lambda k, v: v < 10}, default="large")
    parts["small"].map_values(lambda v: -v).merge(parts["large"]).to(lambda k, v: f"out-{k}")
    driver = TestDriver(builder.build())
    driver.input("in").pipe("a", 3, 0)
    driver.input("in").pipe("b", 30, 0)
    assert driver.output("out-a").pairs() == [("a", -3)]
    assert driver.output("out-b").pairs() == [("b", 30)]


class Summing:
    """Adds values up; forwards all sums every ten milliseconds of stream time, and on the wall clock."""

    def init(self, context: Any) -> None:
        self.context, self.store = context, context.store("sums")
        context.schedule(10, "stream", lambda time: self.forward(time))
        context.schedule(1000, "wall clock", lambda time: self.forward(time))

    def process(self, record: Message) -> None:
        self.store.put(record.key, (self.store.get(record.key) or 0) + record.value)

    def forward(self, time: int) -> None:
        for key, value in self.store.all():
            self.context.forward(Message(key, value, time))


def test_processors_have_stores_and_timers() -> None:
    builder = StreamsBuilder()
    sums = StoreSpec("sums", StoreKind.KEY_VALUE, STRING, JSON)
    builder.stream("in").process(Summing, sums).to("out", key=str)
    driver = TestDriver(builder.build())
    for key, value, time in (("a", 1, 3), ("a", 2, 5), ("b", 4, 25), ("a", 1, 26)):
        driver.input("in").pipe(key, value, time)
    assert driver.output("out").read() == [Message("a", 1, 3), Message("a", 3, 25), Message("b", 4, 25)]
    driver.advance(1500)
    assert driver.output("out").read() == [Message("a", 4, 1500), Message("b", 4, 1500)]


@dataclass
class Order:
    shop: str
    amount: int


def test_dataclasses_are_values_and_bad_bytes_go_to_the_handler() -> None:
    builder = StreamsBuilder()
    builder.stream("in", value=Order).map_values(lambda order: order.amount, value=int).to("out")
    plan = builder.build()
    driver = TestDriver(plan, handlers=Handlers(deserialization=log_and_continue))
    driver.input("in", value=Order).pipe("a", Order("x", 3), 0)
    driver.pipe("in", b"a", b"{", 0)
    assert driver.output("out", value=int).pairs() == [("a", 3)]
    assert driver.dropped == {"deserialization": 1}
    with pytest.raises(TaskError, match="deserialization of record in-0@0 failed"):
        TestDriver(plan).pipe("in", b"a", b"{", 0)


def test_wrong_arguments_are_refused_where_the_topology_is_built() -> None:
    stream = StreamsBuilder().stream("in")
    with pytest.raises(TypeError, match="the predicate of filter is None"):
        stream.filter(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="needs windows"):
        stream.join(stream, lambda a, b: a)
    with pytest.raises(TypeError, match="no serde"):
        stream.to("out", value="yaml")
    with pytest.raises(ValueError, match="records would be lost"):
        TimeWindows(5, 10)


def test_a_join_with_a_grace_needs_versions() -> None:
    builder = StreamsBuilder("grace")
    with pytest.raises(TypeError, match="needs a versioned table"):
        builder.stream("s").join(builder.table("t"), lambda one, two: two, grace_ms=5)


def test_windows_belong_to_the_cogroup() -> None:
    grouped = StreamsBuilder("cogroup").stream("s").group_by_key()
    with pytest.raises(TypeError, match="windows belong to the cogroup"):
        grouped.windowed_by(TimeWindows(5, 5)).cogroup(lambda key, value, sofar: sofar)


def test_a_named_grouping_has_one_repartition_topic_however_often_it_is_aggregated() -> None:
    builder = StreamsBuilder("shops")
    orders = builder.stream("orders", key=str, value=int).select_key(lambda key, _: key[0], key=str)
    shops = orders.group_by_key(name="shops")
    shops.count(store="orders-of").to_stream().to("counts")
    shops.reduce(lambda one, other: one + other, store="sums-of").to_stream().to("sums")
    plan = builder.build()
    assert [topic.name for topic in plan.repartition_topics] == ["shops-shops-repartition"]

    with TestDriver(plan) as driver:
        orders_in = driver.input("orders", key=str, value=int)
        for key, value in (("a1", 3), ("a2", 4), ("b1", 5)):
            orders_in.pipe(key, value, 10)
        assert driver.output("counts", key=str, value=int).table() == {"a": 2, "b": 1}
        assert driver.output("sums", key=str, value=int).table() == {"a": 7, "b": 5}


def test_two_steps_may_not_write_one_repartition_topic() -> None:
    builder = StreamsBuilder("shops")
    orders = builder.stream("orders", key=str, value=int)
    orders.select_key(lambda key, _: key[0], key=str).group_by_key(name="shops").count()
    others = orders.select_key(lambda key, _: key[1], key=str).group_by_key(name="shops")
    with pytest.raises(PlanError, match="two steps write the repartition topic shops-shops-repartition"):
        others.count()
