"""Stores of every kind, as processors and the test driver see them."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.streams import SessionWindows, StreamsBuilder, TestDriver, TimeWindows, Windowed
from barnabas.streams.serdes.formats import JSON, LONG, STRING

GIVEN = (("a", 1, 3), ("ab", 2, 5), ("a", 3, 25), ("b", 4, 26))


def ran(act: Any, *stores: StoreSpec | str, build: Any = None) -> TestDriver:
    """The driver after `act(context, record)` was called for each record."""

    class Acting:
        def init(self, context: Any) -> None:
            self.context = context

        def process(self, record: Any) -> None:
            act(self.context, record)

    builder = StreamsBuilder()
    records = builder.stream("in", value=int)
    if build is not None:
        build(builder, records)
    records.process(Acting, *stores)
    driver = TestDriver(builder.build())
    if build is not None and "two" in driver._topics():
        driver.input("two", value=int).pipe("g", 7, 0)
    for key, value, time in GIVEN:
        driver.input("in", value=int).pipe(key, value, time)
    return driver


def test_key_value_stores_put_if_absent_and_scan_prefixes() -> None:
    seen: list[Any] = []

    def act(context: Any, record: Any) -> None:
        store = context.store("kept")
        seen.append(store.put_if_absent(record.key, record.value))
        store.put_all([(f"{record.key}!", record.value)])

    driver = ran(act, StoreSpec("kept", StoreKind.KEY_VALUE, STRING, LONG))
    assert seen == [None, None, 1, None]
    kept = driver.store("kept")
    assert list(kept.all()) == [("a", 1), ("a!", 3), ("ab", 2), ("ab!", 2), ("b", 4), ("b!", 4)]
    assert list(kept.prefix("ab")) == [("ab", 2), ("ab!", 2)]
    assert list(kept.prefix(b"a!")) == [("a!", 3)]
    assert list(kept.prefix("")) == list(kept.all())
    assert list(kept.range("a!", "ab")) == [("a!", 3), ("ab", 2)]


def test_window_stores_are_written_and_read() -> None:
    def act(context: Any, record: Any) -> None:
        store, start = context.store("kept"), record.timestamp // 10 * 10
        store.put(record.key, (store.get(record.key, start) or 0) + record.value, start)
        if record.value == 4:
            store.put("a", None, 0)

    spec = StoreSpec("kept", StoreKind.WINDOW, STRING, LONG, retention_ms=1000, window_size_ms=10)
    kept = ran(act, spec).store("kept")
    assert (kept.get("a", 20), kept.get("a", 0), kept.fetch("a")) == (3, None, [(20, 3)])
    assert list(kept.all()) == [
        (Windowed("a", 20, 30), 3),
        (Windowed("ab", 0, 10), 2),
        (Windowed("b", 20, 30), 4),
    ]
    assert [key.key for key, _ in kept.range("aa", "b", 0, 10)] == ["ab"]


def test_session_stores_are_written_and_read() -> None:
    def act(context: Any, record: Any) -> None:
        store = context.store("kept")
        store.put(record.key, record.value, record.timestamp, record.timestamp + 5)
        if record.value == 4:
            store.put("a", None, 3, 8)

    kept = ran(act, StoreSpec("kept", StoreKind.SESSION, STRING, LONG, retention_ms=1000)).store("kept")
    assert (kept.get("a", 25, 30), kept.get("a", 3, 8)) == (3, None)
    assert kept.fetch("ab", 10, 20) == [(Windowed("ab", 5, 10), 2)]
    assert [key.key for key, _ in kept.all()] == ["a", "ab", "b"]
    assert list(kept.range("b", "b")) == [(Windowed("b", 26, 31), 4)]


def test_versioned_stores_are_written_and_read() -> None:
    kept_ones: list[bool] = []

    def act(context: Any, record: Any) -> None:
        kept_ones.append(context.store("kept").put(record.key, record.value))
        if record.value == 4:
            kept_ones.append(context.store("kept").put("ab", 0, -1000))
            context.store("kept").put("b", 9, 1)

    spec = StoreSpec("kept", StoreKind.VERSIONED, STRING, LONG, history_ms=100)
    kept = ran(act, spec).store("kept")
    assert kept_ones == [True, True, True, True, False]
    assert (kept.get("a"), kept.get("a", 10), kept.version("a"), kept.version("a", 10)) == (
        3,
        1,
        (3, 25),
        (1, 3),
    )
    assert kept.versions("b") == [(1, 9), (26, 4)]
    assert dict(kept.all()) == {"a": 3, "ab": 2, "b": 4}


def test_global_tables_are_read_without_a_connection() -> None:
    seen: list[Any] = []

    def act(context: Any, record: Any) -> None:
        store = context.store("two")
        seen.append((store.get("g"), list(store.all())))
        with pytest.raises(TypeError, match="only its topic changes it"):
            store.put("g", 1)

    ran(act, build=lambda builder, records: builder.global_table("two", value=int, store="two"))
    assert seen == [(7, [("g", 7)])] * len(GIVEN)


def test_stores_of_the_topology_are_connected_by_name() -> None:
    seen: list[Any] = []

    def act(context: Any, record: Any) -> None:
        seen.append((context.store("counts").get(record.key), len(list(context.store("windows").all()))))

    def build(builder: StreamsBuilder, records: Any) -> None:
        grouped = records.group_by_key()
        grouped.count(store="counts")
        grouped.windowed_by(TimeWindows(10, 10, 1000)).count(store="windows")
        grouped.windowed_by(SessionWindows(10, 1000)).count(store="sessions")

    driver = ran(act, "counts", "windows", build=build)
    assert seen == [(1, 1), (1, 2), (2, 3), (1, 4)]
    assert driver.store("windows").fetch("a") == [(0, 1), (20, 1)]
    assert driver.store("sessions").fetch("a") == [(Windowed("a", 3, 3), 1), (Windowed("a", 25, 25), 1)]


def test_stores_that_are_not_there_are_named() -> None:
    with pytest.raises(ValueError, match="there is no store 'nothing'; the topology has: none"):
        StreamsBuilder().stream("in").process(object, "nothing")
    spec = StoreSpec("kept", StoreKind.KEY_VALUE, STRING, JSON)
    with pytest.raises(Exception, match="not connected to a store 'other'"):
        ran(lambda context, record: context.store("other"), spec)
