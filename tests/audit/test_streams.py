"""Each range of a stream counts once, whatever order and however often its messages come."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.audit.core.buckets import NO_TIME, bucket_of
from barnabas.audit.core.delays import Delays
from barnabas.audit.core.ledger import Applied, Ledger
from barnabas.audit.core.messages import (
    CountMessage,
    Entry,
    MessageError,
    StreamKind,
    Tally,
    encode,
)
from barnabas.audit.core.partial import dump, merge
from barnabas.audit.counters.counted_ranges import CountedRanges

WIDTH = 100


def message(timestamps: list[int], start: int, end: int, host: str = "broker-1") -> CountMessage:
    """What a counter says of the records from `start` to `end` of a log."""
    numbers: dict[int, int] = {}
    for timestamp in timestamps[start:end]:
        bucket = bucket_of(timestamp, WIDTH)
        numbers[bucket] = numbers.get(bucket, 0) + 1
    entries = tuple(Entry(bucket, Tally(count), 0) for bucket, count in sorted(numbers.items()))
    return CountMessage("cluster", "orders", host, "log-0", StreamKind.OFFSETS, start, end, 0, entries, WIDTH)


def sums(ledger: Ledger) -> dict[int, int]:
    return {bucket: column["cluster"].total.counted for (_, bucket), column in ledger.columns.items()}


def truth(timestamps: list[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for timestamp in timestamps:
        bucket = bucket_of(timestamp, WIDTH)
        found[bucket] = found.get(bucket, 0) + 1
    return found


logs = st.lists(st.integers(-1, 1_000), min_size=1, max_size=60)


def leaders(data: st.DataObject, size: int) -> Iterator[tuple[int, int, str]]:
    """Counters that take over from each other: each begins where some stored message ended, and those before
    it may go on for a while without knowing. Their messages interleave."""
    ends = [0]
    places = {"first": 0}
    for number in range(data.draw(st.integers(0, 25))):
        if data.draw(st.booleans()):
            places[f"leader-{number}"] = data.draw(st.sampled_from(sorted(set(ends))[-8:]))
        host = data.draw(st.sampled_from(sorted(places)[-3:]))
        start = places[host]
        if start < size:
            end = places[host] = min(size, start + data.draw(st.integers(1, 9)))
            yield start, end, host
            ends.append(end)
    if max(ends) < size:
        yield max(ends), size, "last"


@given(logs, st.data())
def test_leaders_that_count_the_same_records_count_them_once(
    timestamps: list[int], data: st.DataObject
) -> None:
    ledger = Ledger()
    for start, end, host in leaders(data, len(timestamps)):
        sent = message(timestamps, start, end, host)
        for _ in range(data.draw(st.integers(1, 2))):  # it may be stored twice
            ledger.apply(sent, 0)
    assert sums(ledger) == truth(timestamps)
    assert not ledger.conflicts and not list(ledger.gaps())


@given(logs, st.data())
def test_messages_of_one_counter_may_come_in_any_order(timestamps: list[int], data: st.DataObject) -> None:
    cuts = sorted({0, len(timestamps), *data.draw(st.lists(st.integers(1, len(timestamps)), max_size=8))})
    sent = [message(timestamps, start, end) for start, end in pairwise(cuts)]
    order = data.draw(st.permutations([*sent, *sent]))
    ledger = Ledger()
    for each in order:
        ledger.apply(each, 0)
    assert sums(ledger) == truth(timestamps)
    assert ledger.repeated == len(sent)


@given(logs, st.data())
def test_a_range_that_nobody_counted_is_told(timestamps: list[int], data: st.DataObject) -> None:
    size = len(timestamps)
    ledger = Ledger()
    ledger.apply(message(timestamps, 0, 1), 0)
    ledger.apply(message([*timestamps, 0, 0, 0], size + 2, size + 3), 0)
    assert list(ledger.gaps()) == [("cluster", "log-0", size + 1)]


@given(logs, st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 3), st.booleans()), max_size=30))
def test_ledgers_of_different_streams_are_merged_to_the_ledger_of_all(
    timestamps: list[int], sent: list[tuple[str, int, bool]]
) -> None:
    """As executors sum up streams, and the driver their sums."""
    whole, parts = Ledger(), {name: Ledger() for name in "abcd"}
    for number, (name, partition, is_last) in enumerate(sent):
        delays = Delays()
        delays.add(number * 10)
        entry = Entry(bucket_of(timestamps[0], WIDTH), Tally(number, 1, 2, 3), partition, delays)
        message = CountMessage(
            "cluster", "orders", f"host-{partition}", name, StreamKind.SESSION, number // 2, number // 2 + 1,
            number * 10_000, (entry,), WIDTH, expired=number, is_last=is_last,
        )  # fmt: skip
        for ledger in (whole, parts[name]):
            ledger.apply(message, number)
    merged = Ledger()
    for each in parts.values():
        merge(merged, dump(each))
    assert merged.columns == whole.columns and merged.sessions == whole.sessions
    assert (merged.expired, merged.totals) == (whole.expired, whole.totals)
    assert sorted(merged.gaps()) == sorted(whole.gaps()) and merged.repeated == whole.repeated


def test_an_overlap_that_cannot_be_resolved_counts_nothing_and_is_told() -> None:
    timestamps = list(range(20))
    ledger = Ledger()
    ledger.apply(message(timestamps, 0, 10), 0)
    assert ledger.apply(message(timestamps, 5, 15), 0) is Applied.REPEATED
    assert sums(ledger) == {0: 10}
    assert ledger.conflicts == 1


@given(logs, logs, st.data())
def test_what_an_unclean_election_has_removed_is_taken_back(
    old: list[int], new: list[int], data: st.DataObject
) -> None:
    """The old leader counted records that the new one does not have, and goes on for a while."""
    kept = data.draw(st.integers(0, len(old)))
    log = [*old[:kept], *new]
    cuts = sorted({0, len(old), *data.draw(st.lists(st.integers(1, len(old)), max_size=8))})
    sent = [(message(old, start, end), 3) for start, end in pairwise(cuts)]
    stored = data.draw(st.integers(0, len(sent)))
    ledger, ranges = Ledger(), CountedRanges("cluster")

    def store(each: CountMessage) -> None:
        ledger.apply(each, 0)
        ranges.note(each)

    for each, epoch in sent[:stored]:
        store(replace(each, epoch=epoch))
    counted = ranges.streams.get("log-0")
    at = 0 if counted is None else counted.end
    late: list[CountMessage] = []  # without a correction nothing tells old counts from new ones
    if counted is not None and counted.end > kept:
        cut = counted.cut_before(kept)
        assert cut is not None
        correction = replace(message(log, cut, cut), epoch=4, correction=kept)
        for _ in range(data.draw(st.integers(1, 2))):
            store(correction)
        at, late = cut, [replace(each, epoch=epoch) for each, epoch in sent[stored:]]
    cuts = sorted({at, len(log), *data.draw(st.lists(st.integers(at, len(log)), max_size=8))})
    fresh = [
        replace(message(log, start, end), epoch=3 if end <= kept else 5) for start, end in pairwise(cuts)
    ]
    for each in fresh:
        if late and data.draw(st.booleans()):
            ledger.apply(late.pop(0), 0)
        ledger.apply(each, 0)
    assert {bucket: count for bucket, count in sums(ledger).items() if count} == truth(log)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.booleans()), max_size=30))
def test_a_correction_replaces_the_counts_of_its_batch(sent: list[tuple[int, int, bool]]) -> None:
    ledger, expected = Ledger(), dict[int, int]()
    for batch, count, is_correction in sent:
        each = CountMessage(
            "cluster", "orders", "h", "query", StreamKind.BATCHES, batch, batch + 1, 0,
            (Entry(0, Tally(count), 0),), WIDTH, correction=0 if is_correction else -1,
        )  # fmt: skip
        ledger.apply(each, 0)
        if is_correction or batch not in expected:
            expected[batch] = count
    assert sums(ledger).get(0, 0) == sum(expected.values()) and not ledger.conflicts


def test_records_of_a_topic_that_was_made_again_are_added() -> None:
    ledger = Ledger()
    first = message([1, 2, 3], 0, 3)
    again = CountMessage(
        "cluster", "orders", "broker-1", "other-id-0", StreamKind.OFFSETS, 0, 3, 0, first.entries, WIDTH
    )
    ledger.apply(first, 0)
    ledger.apply(again, 0)
    assert sums(ledger) == {0: 6}


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([1_000, 60_000, 600_000, 86_400_000]))
def test_a_bucket_begins_at_a_multiple_of_its_width_and_holds_its_timestamp(time_ms: int, width: int) -> None:
    bucket = bucket_of(time_ms, width)
    if time_ms < 0:
        assert bucket == NO_TIME
    else:
        assert bucket % width == 0 and bucket <= time_ms < bucket + width


@given(
    st.sampled_from(["cluster", "mirror/dc2"]),
    st.text(max_size=5).filter(str.isprintable),
    st.sampled_from(StreamKind),
    st.integers(0, 2**40),
    st.integers(1, 5),
    st.integers(-1, 9),
    st.sampled_from([-1, -1, 3]),
)
def test_ranges_are_the_same_from_bytes_and_from_messages(
    tier: str, name: str, kind: StreamKind, start: int, size: int, epoch: int, correction: int
) -> None:
    entry = Entry(0, Tally(5), 0)
    sent = CountMessage(
        tier, "orders", "b1", f"log{name}", kind, start, start + size, 0, (entry,), 600_000, name,
        epoch=epoch, correction=correction,
    )  # fmt: skip
    decoded, seen = CountedRanges("cluster"), CountedRanges("cluster")
    for _ in range(2):
        decoded.note(sent)
        seen.see(encode(sent))
    assert decoded.streams == seen.streams
    with pytest.raises(MessageError):
        seen.see(b"{}")
