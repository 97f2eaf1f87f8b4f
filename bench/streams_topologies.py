"""The topologies of the comparison in our DSL: by built-in functions, and with functions in Python.

In: an application id. Out: plans. `bench/java/StreamsBench.java` builds the same for Java. Does not know: how
they are measured.
"""

from __future__ import annotations

from collections.abc import Callable

from barnabas.plans.plan import Plan
from barnabas.streams import JoinWindows, StreamsBuilder, TimeWindows, call, key, left, lit, right, value

MINUTE_MS = 60_000
Build = Callable[[StreamsBuilder], None]


def words(builder: StreamsBuilder) -> None:
    split = builder.stream("lines", value=str).flat_map_values(call("split", value(), lit(" ")), value=str)
    counted = split.group_by(value(), key=str, name="words").count()
    counted.to_stream().to("counts")


def words_in_python(builder: StreamsBuilder) -> None:
    split = builder.stream("lines", value=str).flat_map_values(lambda line: line.split(" "), value=str)
    counted = split.group_by(lambda _, word: word, key=str, name="words").count()
    counted.to_stream().to("counts")


def minutes(builder: StreamsBuilder) -> None:
    windows = TimeWindows(MINUTE_MS, MINUTE_MS, grace_ms=MINUTE_MS)
    counted = builder.stream("clicks", value=str).group_by_key().windowed_by(windows).count()
    counted.to_stream().to("minutes")


def join(builder: StreamsBuilder) -> None:
    orders, payments = builder.stream("orders", value=str), builder.stream("payments", value=str)
    windows = JoinWindows(5 * MINUTE_MS, 5 * MINUTE_MS, grace_ms=MINUTE_MS)
    orders.join(payments, call("concat", left(), lit("|"), right()), windows, value=str).to("paid")


def enrich(builder: StreamsBuilder) -> None:
    users = builder.global_table("users", value=str)
    clicks = builder.stream("clicks", value=str)
    clicks.join(users, call("concat", left(), lit("|"), right()), on=key(), value=str).to("enriched")


def enrich_in_python(builder: StreamsBuilder) -> None:
    users = builder.global_table("users", value=str)
    clicks = builder.stream("clicks", value=str)
    joined = clicks.join(users, lambda a, b: f"{a}|{b}", on=lambda user, click: user, value=str)
    joined.to("enriched")


def enrich_table(builder: StreamsBuilder) -> None:
    users = builder.table("users", value=str)
    clicks = builder.stream("clicks", value=str)
    clicks.join(users, call("concat", left(), lit("|"), right()), value=str).to("enriched")


def stateless(builder: StreamsBuilder) -> None:
    clicks = builder.stream("clicks", value=str).filter(~value().like("/9%"))
    clicks.map_values(call("upper", value()), value=str).to("upper")


TOPOLOGIES: dict[str, Build] = {
    "words": words,
    "words-python": words_in_python,
    "minutes": minutes,
    "join": join,
    "enrich": enrich,
    "enrich-python": enrich_in_python,
    "enrich-table": enrich_table,
    "stateless": stateless,
}


def plan_of(name: str, application_id: str) -> Plan:
    builder = StreamsBuilder(application_id)
    if name.startswith("idle-"):
        for number in range(int(name.removeprefix("idle-"))):
            builder.stream(f"quiet-{number}", value=str).to(f"quiet-{number}-results")
    else:
        TOPOLOGIES[name](builder)
    return builder.build()
