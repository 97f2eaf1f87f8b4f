"""Random batches give over columns the last value of each key that the interpreter gives, and its pages."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from tests.streams.columns.batches import Both, global_state, part, plan, random_records

from barnabas.plans.nodes import Restamp
from barnabas.streams import (
    F,
    JoinWindows,
    StreamsBuilder,
    TimeWindows,
    call,
    case,
    key,
    left,
    lit,
    right,
    timestamp,
    value,
)

TEXTS: list[bytes | None] = [b"to be", b"or not", b"", b"a b  c", "Straße Ü".encode(), b"%_", None]
NUMBERS: list[bytes | None] = [number.to_bytes(8, "big", signed=True) for number in (0, 1, -5, 70, 2**62)]
JSON: list[bytes | None] = [b'{"n":1,"x":0.1}', b'{"n":2,"x":0.2}', b'{"n":-3}', b"{}", b'{"n":null,"x":3}']
Build = Callable[[StreamsBuilder], None]


def stateless(builder: StreamsBuilder) -> None:
    records = builder.stream("in", value=str).filter(value().is_not_null() & ~value().like("%be"))
    records = records.map_values(call("upper", call("concat", value(), lit("!"))), value=str)
    records.map((call("coalesce", key(), lit("none")), value()), key=str, value=str).to("out")


def split(builder: StreamsBuilder) -> None:
    words = builder.stream("in", value=str).flat_map_values(call("split", value(), lit(" ")), value=str)
    words.group_by(value(), key=str, name="words").count().to_stream().to("out")


def in_python(builder: StreamsBuilder) -> None:
    records = builder.stream("in", value=str).filter(lambda key, text: text is not None)
    records = records.flat_map(lambda key, text: [(word, len(word)) for word in text.split()], value=int)
    records.map_values(lambda number: number + 1, value=int).select_key(lambda key, n: f"{key}{n}").to("out")


def branches(builder: StreamsBuilder) -> None:
    records = builder.stream("in", value=str).filter(value().is_not_null())
    parts = records.split({"a": value().like("%o%"), "b": call("length", value()) == lit(0)}, default="rest")
    parts["a"].map_values(call("upper", value()), value=str).merge(parts["rest"]).to("out")
    parts["b"].select_key(lit("empty")).to("out")


def count(builder: StreamsBuilder) -> None:
    builder.stream("in", value=str).group_by_key().count().to_stream().to("out")


def reduce(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in", value=str).group_by_key()
    grouped.reduce(lambda one, two: None if len(one) > 20 else one + two).to_stream().to("out")


def aggregate(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in").group_by_key()
    totals = grouped.aggregate(n=F.count(), total=F.sum("n"), low=F.min("x"), mean=F.avg("x"))
    totals.filter(lambda key, row: row["n"] % 2 == 0).map_values(lambda row: [row]).to_stream().to("out")


def tumbling(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in", value=str).group_by_key().windowed_by(TimeWindows(10, 10, grace_ms=5))
    grouped.count().to_stream().to("out")


def counted_hopping(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in", value=str).group_by_key().windowed_by(TimeWindows(15, 4, grace_ms=9))
    grouped.count().to_stream().to("out")


def hopping(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in").filter(value().is_not_null()).group_by_key()
    windowed = grouped.windowed_by(TimeWindows(15, 4, grace_ms=4)).aggregate(total=F.sum("n"))
    windowed.to_stream().select_key(lambda windowed, row: f"{windowed.key}@{windowed.start}").to("out")


def conditions(builder: StreamsBuilder) -> None:
    records = builder.stream("in", value=int)
    doubled = case((value() > lit(10), value() - lit(10)), default=value() * lit(2))
    records.filter((value() / lit(2) >= lit(0.5)) | key().is_null()).map_values(doubled, value=int).to("out")


def times(builder: StreamsBuilder) -> None:
    builder.stream("in", value=str).map_values(timestamp() % lit(7), value=int).to("out")


def restamped(builder: StreamsBuilder) -> None:
    stream = builder.stream("in", value=str)
    stream = stream._then(Restamp(**stream._name("RESTAMP", None), function=lambda key, text: len(text) - 1))
    stream.group_by_key().count().to_stream().to("out")


def table(builder: StreamsBuilder) -> None:
    changed = builder.table("in", value=str).to_stream()
    changed.map_values(lambda text: None if text is None else text + "!", value=str).to("out")


CASES: dict[str, tuple[Build, list[bytes | None], int]] = {
    "stateless": (stateless, TEXTS, 0),
    "split": (split, TEXTS, 0),
    "counted words": (split, TEXTS, 1),
    "python": (in_python, TEXTS, 0),
    "branches": (branches, TEXTS, 0),
    "count": (count, TEXTS, 0),
    "reduce": (reduce, TEXTS, 0),
    "aggregate": (aggregate, JSON, 0),
    "tumbling": (tumbling, TEXTS, 0),
    "counted hopping": (counted_hopping, TEXTS, 0),
    "hopping": (hopping, JSON, 0),
    "conditions": (conditions, NUMBERS[:4], 0),
    "times": (times, TEXTS, 0),
    "restamped": (restamped, TEXTS, 0),
    "table": (table, TEXTS, 0),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_one_source(name: str, seed: int) -> None:
    build, values, number = CASES[name]
    both = Both(plan(build), number)
    [topic] = both.columns.subtopology.source_topics
    rng = random.Random(f"{name} {seed}")
    for batch in range(4):
        both.run([part(topic, random_records(rng, rng.randint(1, 60), values, start=30 * batch))])
    both.check()


def joined(kind: str) -> Build:
    def build(builder: StreamsBuilder) -> None:
        users = builder.table("users", value=str)
        joiner = call("concat", left(), lit("|"), call("coalesce", right(), lit("nobody")))
        stream = builder.stream("in", value=str)
        join = stream.join if kind == "inner" else stream.left_join
        join(users, joiner, value=str).to("out")

    return build


@pytest.mark.parametrize("kind", ["inner", "left"])
@pytest.mark.parametrize("seed", range(4))
def test_a_record_finds_the_row_that_was_the_newest_when_it_came(kind: str, seed: int) -> None:
    both = Both(plan(joined(kind)))
    rng = random.Random(f"{kind} {seed}")
    for batch in range(4):
        given = [
            part(topic, random_records(rng, rng.randint(1, 40), TEXTS, start=30 * batch))
            for topic in ("users", "in")
            if rng.random() < 0.8
        ]
        if given:
            both.run(given)
    both.check()


@pytest.mark.parametrize("kind", ["inner", "left"])
def test_a_global_table_is_looked_up(kind: str) -> None:
    def build(builder: StreamsBuilder) -> None:
        users = builder.global_table("users", value=str)
        stream = builder.stream("in", value=str)
        join: Any = stream.join if kind == "inner" else stream.left_join
        selected = call("replace", key(), lit("c"), lit("a"))
        join(users, call("concat", left(), lit("|"), right()), on=selected, value=str).to("out")

    found = plan(build)
    rng = random.Random(kind)
    rows = random_records(rng, 30, TEXTS, null_keys=0)
    [number] = [each.number for each in found.subtopologies if not each.is_global]
    both = Both(found, number, global_state(found, rows))
    for batch in range(3):
        both.run([part("in", random_records(rng, 50, TEXTS, start=30 * batch))])
    both.check()


def streams_joined(builder: StreamsBuilder) -> None:
    orders, payments = builder.stream("orders", value=str), builder.stream("payments", value=str)
    windows = JoinWindows(7, 10, grace_ms=5)
    orders.join(payments, call("concat", left(), lit("|"), right()), windows, value=str).to("out")


@pytest.mark.parametrize("seed", range(8))
def test_records_of_two_streams_meet_in_a_window(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 2:
        monkeypatch.setattr("barnabas.streams.dsl.joins.PAGE_MS_MIN", 1)  # a window meets two pages of a key
    both = Both(plan(streams_joined))
    rng = random.Random(f"joined {seed}")
    for batch in range(5):
        given = [
            part(topic, random_records(rng, rng.randint(1, 40), TEXTS, start=30 * batch))
            for topic in ("orders", "payments")
            if rng.random() < 0.8
        ]
        if given:
            both.run(given)
    both.check()
    assert [each for each in both.columns.written if each[0] == "out"] == [
        each for each in both.interpreter.written if each[0] == "out"
    ]


def test_the_order_of_records_is_kept() -> None:
    both = Both(plan(in_python))
    both.run([part("in", random_records(random.Random(3), 200, TEXTS))])
    assert both.columns.written == both.interpreter.written
