"""Kafka Streams in Python: topologies, serdes, a test driver, and what runs them on Spark."""

from barnabas.plans.aggregates import F
from barnabas.plans.expressions import call, case, col, key, left, lit, right, struct, timestamp, value
from barnabas.plans.interpreter.records import Message
from barnabas.plans.stores import StoreKind, StoreSpec
from barnabas.plans.windows import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    Windowed,
)
from barnabas.streams.dsl.builder import StreamsBuilder
from barnabas.streams.dsl.groups import GroupedStream
from barnabas.streams.dsl.streams import KStream
from barnabas.streams.dsl.suppressions import until_time_limit, until_window_closes
from barnabas.streams.dsl.tables import GlobalKTable, GroupedTable, KTable
from barnabas.streams.dsl.vectorised import arrow_function, pandas_function
from barnabas.streams.testing.driver import TestDriver

__all__ = [
    "F",
    "GlobalKTable",
    "GroupedStream",
    "GroupedTable",
    "JoinWindows",
    "KStream",
    "KTable",
    "Message",
    "SessionWindows",
    "SlidingWindows",
    "StoreKind",
    "StoreSpec",
    "StreamsBuilder",
    "TestDriver",
    "TimeWindows",
    "UnlimitedWindows",
    "Windowed",
    "arrow_function",
    "call",
    "case",
    "col",
    "key",
    "left",
    "lit",
    "pandas_function",
    "right",
    "struct",
    "timestamp",
    "until_time_limit",
    "until_window_closes",
    "value",
]
