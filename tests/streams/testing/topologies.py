"""The topologies that `java/Oracle.java` builds, in the DSL: same operators, same functions, same windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.plans.interpreter.records import Message
from barnabas.plans.plan import Plan
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.windows import UnlimitedWindows
from barnabas.streams import JoinWindows, SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows
from barnabas.streams.dsl.cogroups import CogroupedStream
from barnabas.streams.dsl.groups import GroupedStream
from barnabas.streams.dsl.suppressions import until_time_limit, until_window_closes
from barnabas.streams.dsl.tables import KTable
from barnabas.streams.serdes.formats import STRING

TUMBLING = TimeWindows(10, 10, grace_ms=5)
HOPPING = TimeWindows(15, 5, grace_ms=4)
SLIDING = SlidingWindows(10, grace_ms=8)
SESSIONS = SessionWindows(6, grace_ms=5)
JOINED = JoinWindows(7, 10, grace_ms=5)
Build = Callable[[StreamsBuilder], None]


def text(value: Any) -> str:
    return "null" if value is None else str(value)


def pair(left: Any, right: Any) -> str:
    return f"{text(left)}|{text(right)}"


def add(key: Any, value: Any, aggregate: str) -> str:
    return aggregate + text(value)


def merge(key: Any, one: str, two: str) -> str:
    return one + two


def remove(key: Any, value: str, aggregate: str) -> str:
    return aggregate.replace(value, "", 1)


def first(value: str) -> str | None:
    return None if value.startswith("d") else value[:1]


def starts(letter: str) -> Callable[[Any, Any], bool]:
    return lambda key, value: value.startswith(letter)


def stream(builder: StreamsBuilder, topic: str = "one") -> Any:
    return builder.stream(topic, value=str)


def table(builder: StreamsBuilder, topic: str = "one") -> Any:
    return builder.table(topic, value=str)


def grouped(builder: StreamsBuilder) -> GroupedStream:
    grouped: GroupedStream = stream(builder).group_by_key()
    return grouped


def out(result: Any) -> None:
    records = result.to_stream() if isinstance(result, KTable) else result
    records.to("out", key=STRING, value=STRING)


def numbers(result: KTable) -> None:
    out(result.to_stream().map_values(lambda value: None if value is None else str(value)))


def windows(result: KTable) -> None:
    named = result.to_stream().select_key(lambda key, value: f"{key.key}@{key.start}/{key.end}", key=str)
    named = named.map_values(lambda value: None if value is None else str(value))
    out(named)


def aggregated(builder: StreamsBuilder, kind: Any, is_final: bool = False) -> KTable:
    # Kafka Streams loses final results behind the retention: the oracle has a longer one, and sliding windows
    # look at windows behind their own.
    found = grouped(builder).windowed_by(kind, retention_ms=10_000 if is_final else None)
    found = found.final() if is_final else found
    merger = merge if isinstance(kind, SessionWindows) else None
    return found.aggregate(lambda: "", add, merger, value=str)


def counted(builder: StreamsBuilder, kind: Any) -> KTable:
    return grouped(builder).windowed_by(kind).count()


def by_letter(builder: StreamsBuilder) -> Any:
    return table(builder).group_by(lambda key, value: (value[:1], value), key=str, value=str)


class Summing:
    def init(self, context: Any) -> None:
        self.context, self.store = context, context.store("seen")
        context.schedule(20, "stream", self.tell)
        context.schedule(50, "wall clock", lambda now: context.forward(Message("wall", "w", now)))

    def tell(self, now: int) -> None:
        for key, value in list(self.store.all()):
            self.context.forward(Message(key, f"t{value}", now))

    def process(self, record: Message) -> None:
        if record.key is None:
            return
        old = self.store.get(record.key)
        if record.value is None:
            self.store.delete(record.key)
        else:
            self.store.put(record.key, record.value if old is None else old + record.value)
        self.context.forward(record._replace(value=f"p{text(record.value)}"))


def stateless(builder: StreamsBuilder) -> None:
    records = stream(builder).filter(lambda key, value: value is not None).map_values(lambda v: v + "!")
    records = records.flat_map_values(lambda v: [v, v + "?"]).select_key(lambda key, value: value[:1])
    records = records.map(lambda key, value: (key + key, value))
    records = records.flat_map(lambda key, value: [(key, value), ("x", value)])
    out(records.filter_not(starts("b")).peek(lambda key, value: None))


def split(builder: StreamsBuilder) -> None:
    records = stream(builder).filter(lambda key, value: value is not None)
    parts = records.split({"a": starts("a"), "b": starts("b")}, default="rest", name="p-")
    out(parts["a"].map_values(lambda v: "A" + v).merge(parts["rest"]))


def self_join(builder: StreamsBuilder) -> None:
    one = stream(builder)
    out(one.join(one, pair, JOINED))


def to_table(builder: StreamsBuilder) -> None:
    out(stream(builder).select_key(lambda k, v: k if v is None else v[:1], key=str).to_table())


def group_by(builder: StreamsBuilder) -> None:
    letters = stream(builder).group_by(lambda key, value: None if value is None else value[:1], key=str)
    out(letters.aggregate(lambda: "", add, value=str))


def time_limit(limit_ms: int, records_max: int | None = None) -> Build:
    rules = until_time_limit(limit_ms, records_max=records_max)
    return lambda b: out(grouped(b).reduce(lambda one, two: one + two).suppress(rules))


def kept_filter(builder: StreamsBuilder) -> None:
    kept = table(builder).filter(lambda key, value: not value.startswith("a"), store="kept")
    out(kept.map_values(lambda v: v + "!"))


def group_reduce(builder: StreamsBuilder) -> None:
    kept = table(builder).filter(lambda key, value: not value.startswith("a"))
    letters = kept.group_by(lambda key, value: (value[:1], value), key=str, value=str)
    out(letters.reduce(lambda one, two: one + two, lambda a, v: a.replace(v, "", 1)))


def global_join(builder: StreamsBuilder, is_left: bool) -> None:
    one = stream(builder)
    found = builder.global_table("two", value=str)
    if is_left:
        out(one.left_join(found, pair, on=lambda key, value: key))
    else:
        out(one.join(found, pair, on=lambda key, value: None if value is None else value[:1]))


def add_marked(key: Any, value: Any, aggregate: str) -> str:
    return aggregate + "/" + text(value)


def both(builder: StreamsBuilder) -> CogroupedStream:
    return grouped(builder).cogroup(add).cogroup(stream(builder, "two").group_by_key(), add_marked)


def cogroup_keys(builder: StreamsBuilder) -> None:
    letters = stream(builder, "two").group_by(lambda k, v: k if v is None else v[:1], key=str)
    one = grouped(builder)
    out(one.cogroup(add).cogroup(letters, add_marked).aggregate(lambda: "", value=str))


def versions(builder: StreamsBuilder, topic: str = "one") -> Any:
    return builder.table(topic, value=str, store=f"{topic}-versions", history_ms=20)


def no_a(key: Any, value: Any) -> bool:
    return not value.startswith("a")


def versioned_group(builder: StreamsBuilder) -> None:
    letters = versions(builder).group_by(lambda key, value: (value[:1], value), key=str, value=str)
    out(letters.aggregate(lambda: "", add, remove, value=str))


def versioned_to_table(builder: StreamsBuilder) -> None:
    keyed = stream(builder).select_key(lambda k, v: k if v is None else v[:1], key=str)
    out(keyed.to_table(store="kept", history_ms=20))


def values_flat(builder: StreamsBuilder) -> None:
    one = stream(builder).map_values(lambda k, v: text(k) + text(v), with_key=True)
    one = one.flat_map_values(lambda k, v: [v, text(k)], with_key=True)
    out(one.merge(stream(builder, "two")).filter_not(lambda key, value: value is None))


def chained_windows(builder: StreamsBuilder) -> None:
    keyed = stream(builder).select_key(lambda k, v: k if v is None else v[:1], key=str)
    counts = keyed.group_by_key().windowed_by(TUMBLING).count().to_stream()
    again = counts.select_key(lambda key, value: key.key, key=str).map_values(str, value=str).group_by_key()
    windows(again.windowed_by(TimeWindows(20, 20, grace_ms=9)).aggregate(lambda: "", add, value=str))


SEEN = StoreSpec("seen", StoreKind.KEY_VALUE, STRING, STRING)
TOPOLOGIES: dict[str, Build] = {
    "stateless": stateless,
    "split": split,
    "count": lambda b: numbers(grouped(b).count()),
    "reduce": lambda b: out(grouped(b).reduce(lambda one, two: one + two)),
    "aggregate": lambda b: out(
        grouped(b).aggregate(lambda: "", lambda k, v, a: None if v.startswith("c") else a + v, value=str)
    ),
    "group_by": group_by,
    "tumbling": lambda b: windows(aggregated(b, TUMBLING)),
    "tumbling_count": lambda b: windows(counted(b, TUMBLING)),
    "hopping": lambda b: windows(aggregated(b, HOPPING)),
    "hopping_reduce": lambda b: windows(
        stream(b)
        .filter(lambda key, value: value is not None)
        .group_by_key()
        .windowed_by(HOPPING)
        .reduce(lambda one, two: one + two)
    ),
    "sliding": lambda b: windows(aggregated(b, SLIDING)),
    "sliding_count": lambda b: windows(counted(b, SLIDING)),
    "session": lambda b: windows(aggregated(b, SESSIONS)),
    "session_count": lambda b: windows(counted(b, SESSIONS)),
    "tumbling_closed": lambda b: windows(aggregated(b, TUMBLING).suppress(until_window_closes())),
    "hopping_closed": lambda b: windows(counted(b, HOPPING).suppress(until_window_closes())),
    "session_closed": lambda b: windows(aggregated(b, SESSIONS).suppress(until_window_closes())),
    "sliding_closed": lambda b: windows(aggregated(b, SLIDING).suppress(until_window_closes())),
    "tumbling_final": lambda b: windows(aggregated(b, TUMBLING, True)),
    "session_final": lambda b: windows(aggregated(b, SESSIONS, True)),
    "sliding_final": lambda b: windows(aggregated(b, SLIDING, True)),
    "time_limit": time_limit(12),
    "time_limit_bound": time_limit(30, 2),
    "stream_inner": lambda b: out(stream(b).join(stream(b, "two"), pair, JOINED)),
    "stream_left": lambda b: out(stream(b).left_join(stream(b, "two"), pair, JOINED)),
    "stream_left_eager": lambda b: out(stream(b).left_join(stream(b, "two"), pair, JOINED, is_eager=True)),
    "stream_outer_eager": lambda b: out(stream(b).outer_join(stream(b, "two"), pair, JOINED, is_eager=True)),
    "stream_outer": lambda b: out(stream(b).outer_join(stream(b, "two"), pair, JOINED)),
    "stream_self": self_join,
    "stream_table": lambda b: out(stream(b).join(table(b, "two"), pair)),
    "stream_table_left": lambda b: out(stream(b).left_join(table(b, "two"), pair)),
    "global": lambda b: global_join(b, False),
    "global_left": lambda b: global_join(b, True),
    "table_inner": lambda b: out(table(b).join(table(b, "two"), pair)),
    "table_left": lambda b: out(table(b).left_join(table(b, "two"), pair)),
    "table_outer": lambda b: out(table(b).outer_join(table(b, "two"), pair)),
    "table_three": lambda b: out(
        table(b).left_join(table(b, "two"), pair, value=str).outer_join(table(b, "three"), pair)
    ),
    "foreign_inner": lambda b: out(table(b).join(table(b, "two"), pair, foreign_key=first, value=str)),
    "foreign_left": lambda b: out(table(b).left_join(table(b, "two"), pair, foreign_key=first, value=str)),
    "table_filter": lambda b: out(
        table(b).filter(lambda k, v: not v.startswith("a")).map_values(lambda v: v + "!")
    ),
    "table_stored_filter": kept_filter,
    "table_group": lambda b: out(by_letter(b).aggregate(lambda: "", add, remove, value=str)),
    "table_group_reduce": group_reduce,
    "table_group_count": lambda b: numbers(by_letter(b).count()),
    "to_table": to_table,
    "repartition": lambda b: out(stream(b).repartition("again")),
    "cogroup": lambda b: out(both(b).aggregate(lambda: "", value=str)),
    "cogroup_tumbling": lambda b: windows(both(b).windowed_by(TUMBLING).aggregate(lambda: "", value=str)),
    "cogroup_session": lambda b: windows(
        both(b).windowed_by(SESSIONS).aggregate(lambda: "", merge, value=str)
    ),
    "cogroup_keys": cogroup_keys,
    "versioned_table": lambda b: out(versions(b)),
    "versioned_filter": lambda b: out(versions(b).filter(no_a).map_values(lambda v: v + "!")),
    "versioned_join": lambda b: out(stream(b).join(versions(b, "two"), pair)),
    "versioned_join_left": lambda b: out(stream(b).left_join(versions(b, "two"), pair)),
    "versioned_join_filter": lambda b: out(stream(b).join(versions(b, "two").filter(no_a), pair)),
    "versioned_grace": lambda b: out(stream(b).join(versions(b, "two"), pair, grace_ms=9)),
    "versioned_grace_left": lambda b: out(stream(b).left_join(versions(b, "two"), pair, grace_ms=9)),
    "versioned_group": versioned_group,
    "versioned_join_tables": lambda b: out(versions(b).outer_join(versions(b, "two"), pair)),
    "versioned_to_table": versioned_to_table,
    "unlimited": lambda b: windows(aggregated(b, UnlimitedWindows(5))),
    "hopping_final": lambda b: windows(aggregated(b, HOPPING, True)),
    "session_reduce": lambda b: windows(
        stream(b)
        .filter(lambda key, value: value is not None)
        .group_by_key()
        .windowed_by(SESSIONS)
        .reduce(lambda one, two: one + two)
    ),
    "sliding_reduce": lambda b: windows(grouped(b).windowed_by(SLIDING).reduce(lambda one, two: one + two)),
    "values_flat": values_flat,
    "chained_windows": chained_windows,
    "process": lambda b: out(stream(b).process(Summing, SEEN)),
}


def plan_of(name: str, application_id: str = "app") -> Plan:
    builder = StreamsBuilder(application_id, default_serde=STRING)
    TOPOLOGIES[name](builder)
    return builder.build()
