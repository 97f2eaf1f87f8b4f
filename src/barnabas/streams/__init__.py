"""Kafka Streams in Python: topologies, serdes, a test driver, and what runs them on Spark."""

from barnabas.plans.aggregates import F
from barnabas.plans.expressions import call, case, col, key, left, lit, right, struct, timestamp, value
from barnabas.plans.windows import JoinWindows, SessionWindows, SlidingWindows, TimeWindows, Windowed
from barnabas.streams.dsl.builder import StreamsBuilder
from barnabas.streams.testing.driver import TestDriver

__all__ = [
    "F",
    "JoinWindows",
    "SessionWindows",
    "SlidingWindows",
    "StreamsBuilder",
    "TestDriver",
    "TimeWindows",
    "Windowed",
    "call",
    "case",
    "col",
    "key",
    "left",
    "lit",
    "right",
    "struct",
    "timestamp",
    "value",
]
