"""The same segments under the same settings in both brokers: the same ones are left."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, field

import pytest

from barnabas.protocol import ApiKey
from barnabas.records.record import Record, build_batch
from barnabas.testing import Broker
from barnabas.testing.apache import ApacheKafka

from .requests import produce
from .talk import Talk

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("java"), pytest.mark.slow, pytest.mark.timeout(300)]

DAY_MS = 24 * 3600 * 1000
EARLIEST, LATEST = -2, -1
PATIENCE_S = 60.0
SETTINGS = {
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "500",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
LARGE = 600_000  # two of them do not fit into a segment


@dataclass(frozen=True, slots=True)
class Case:
    """Batches by age in days and size; each is a segment of its own, if it is large or much older than the
    next."""

    name: str
    batches: tuple[tuple[float, int], ...]
    configs: dict[str, str] = field(default_factory=dict)


def aged(*days: float) -> tuple[tuple[float, int], ...]:
    return tuple((age, 100) for age in days)


def sized(count: int, days: float = 0.0) -> tuple[tuple[float, int], ...]:
    return ((days, LARGE),) * count


WEEK = {
    "retention_ms": str(7 * DAY_MS),
    "segment_ms": str(DAY_MS // 4),
    "message_timestamp_after_max_ms": str(2**62),
}
SMALL = {"segment_bytes": "1048576", "retention_ms": "-1"}
CASES = [
    Case("scenario", aged(12, 10, 6, 5, 2), WEEK),
    Case("all-are-over", aged(12, 10, 9), WEEK),
    Case("none-is-over", aged(3, 2, 1), WEEK),
    Case("a-young-one-first", aged(1, 12, 12), WEEK),
    Case("the-future-first", aged(-30, 12, 12), WEEK),
    Case("the-future-last", aged(12, 12, -30), WEEK),
    Case("one-segment-of-all-ages", aged(12, 2, 12), {**WEEK, "segment_ms": str(2**62)}),
    Case("nothing-is-kept-by-time", aged(2, 1, 0), {**WEEK, "retention_ms": "0"}),
    Case("for-ever", aged(1000, 500, 100), {**WEEK, "retention_ms": "-1"}),
    *(
        Case(f"bytes-{size}", sized(5), {**SMALL, "retention_bytes": str(size)})
        for size in (-1, 0, 1, LARGE, LARGE + 5_000, 2 * LARGE, 3 * LARGE + 5_000, 10 * LARGE)
    ),
    Case(
        "bytes-and-time",
        sized(3, 12) + sized(3, 1),
        {**WEEK, **SMALL, "retention_ms": str(7 * DAY_MS), "retention_bytes": str(5 * LARGE)},
    ),
    Case(
        "compacted",
        aged(12, 10, 2),
        {**WEEK, "cleanup_policy": "compact", "min_cleanable_dirty_ratio": "1.0"},
    ),
]


def starts(port: int) -> dict[str, tuple[int, int]]:
    """The first and the next offset of every case, when nothing moves any more."""
    with closing(Talk(port, "retention")) as talk:
        now_ms = int(time.time() * 1000)
        for case in CASES:
            name = talk.topic(case.name, **case.configs)
            for days, size in case.batches:
                record = Record(timestamp=now_ms - int(days * DAY_MS), key=b"k", value=bytes(size))
                answer = talk.silently(ApiKey.PRODUCE, 9, **produce(talk, name, bytes(build_batch([record]))))
                assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE", answer
        deadline = time.monotonic() + PATIENCE_S
        last: dict[str, tuple[int, int]] = {}
        seen_since = time.monotonic()
        while time.monotonic() < deadline:
            found = {
                case.name: (offset(talk, case.name, EARLIEST), offset(talk, case.name, LATEST))
                for case in CASES
            }
            if found != last:
                last, seen_since = found, time.monotonic()
            elif time.monotonic() - seen_since > 3 and found["scenario"][0] > 0:
                return found
            time.sleep(0.1)
        raise TimeoutError(f"never at rest: {last}")


def offset(talk: Talk, case: str, timestamp: int) -> int:
    topics = [{"name": talk.name(case), "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
    answer = talk.silently(ApiKey.LIST_OFFSETS, 8, replica_id=-1, topics=topics)
    return int(answer["topics"][0]["partitions"][0]["offset"])


@pytest.mark.long
def test_the_same_segments_are_left() -> None:
    with Broker(overrides=SETTINGS) as broker:
        ours = starts(broker.port)
    with ApacheKafka(overrides=SETTINGS, heap="512M") as kafka:
        theirs = starts(kafka.port)

    assert ours == theirs
    assert ours["scenario"] == (2, 5)
