"""Count messages: the records of the audit topic, as JSON.

In: counts of one window of one counter. Out: bytes, and back. A message says which range of its stream it
covers (`start` to `end`): offsets of a partition, numbers of batches, or sequence numbers of a counter. So a
message that was sent twice, or counted again after a restart, is recognized (`streams.py`). The increments of
KAFKA-260 are understood too. Does not know: topics' partitions, clients.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from barnabas.audit.core.buckets import NO_TIME, WIDTH_MS, bucket_of, check_width
from barnabas.audit.core.contents import MODULUS_MASK
from barnabas.audit.core.delays import INDEX_MAX, Delays

VERSION = 1
ENTRIES_MAX = 500  # of one message; a window with more takes several
NO_PARTITION = -1
NO_EPOCH = -1
NO_CORRECTION = -1
NO_OFFSET = -1
NUMBER_MAX = 2**63 - 1
TEXT_MAX = 1_000
OTHERS = ("dropped", "aborted", "failed")  # numbers that most messages do not have


class MessageError(ValueError):
    """A record of the audit topic that is no count message."""


class StreamKind(StrEnum):
    OFFSETS = "offsets"  # of one partition: whoever counts a range again finds the same counts
    BATCHES = "batches"  # numbers of a pipeline's or a query's batches: the same
    SESSION = "session"  # sequence numbers of a counter in memory, which ends with a last message


class Tally(NamedTuple):
    """Numbers of records. Only `counted` and `dropped` make a tier complete."""

    counted: int = 0
    dropped: int = 0  # left out on purpose: by a filter, as a duplicate, into quarantine
    aborted: int = 0  # of aborted transactions
    failed: int = 0  # never acknowledged
    summed: int = 0  # records whose contents are in the sum
    content: int = 0  # sum of the records' contents (`contents.py`), modulo 2^64

    def plus(self, other: Tally, sign: int = 1) -> Tally:
        found = Tally(*(mine + sign * theirs for mine, theirs in zip(self, other, strict=True)))
        return found._replace(content=found.content & MODULUS_MASK)


@dataclass(frozen=True, slots=True)
class Entry:
    bucket_ms: int
    tally: Tally
    partition: int = NO_PARTITION
    delays: Delays = field(default_factory=Delays)
    first: int = NO_OFFSET  # the smallest offset of these records, if it is known


@dataclass(frozen=True, slots=True)
class CountMessage:
    tier: str
    topic: str  # empty: the message only says that its session lives
    host: str
    stream: str
    kind: StreamKind
    start: int
    end: int
    time_ms: int  # when the window was closed, by the host's clock
    entries: tuple[Entry, ...] = ()
    width_ms: int = WIDTH_MS
    application: str = ""
    expired: int = 0  # offsets that were gone from the log, or damaged, before they were counted
    is_last: bool = False  # the session ends
    epoch: int = (
        NO_EPOCH  # of the last batch that was counted; of a correction: the first one behind the loss
    )
    # A correction replaces what was counted before: of offsets everything from `start` on, since an election
    # has removed the records from this offset on; of batches the counts of its batch.
    correction: int = NO_CORRECTION
    age_ms: int = 0  # of a session: for how long it has been counting
    is_compacted: bool = False  # the log keeps only the last record of each key
    sees_aborted: bool = False  # a consumer that does not ask for committed records only

    @property
    def is_correction(self) -> bool:
        return self.correction != NO_CORRECTION


def encode(message: CountMessage) -> bytes:
    counts = []
    for entry in message.entries:
        one: dict[str, Any] = {"bucket": entry.bucket_ms, "count": entry.tally.counted}
        if entry.partition != NO_PARTITION:
            one["partition"] = entry.partition
        for name in OTHERS:
            if value := getattr(entry.tally, name):
                one[name] = value
        if entry.tally.summed or entry.tally.content:
            one["summed"], one["content"] = entry.tally.summed, f"{entry.tally.content:016x}"
        delays = entry.delays
        if delays.counts:
            one["delays"] = {str(index): delays.counts[index] for index in sorted(delays.counts)}
            one["delay_max"] = delays.max_ms
        if delays.ahead_max_ms:
            one["ahead_max"] = delays.ahead_max_ms
        if entry.first != NO_OFFSET:
            one["first"] = entry.first
        counts.append(one)
    body: dict[str, Any] = {
        "version": VERSION,
        "tier": message.tier,
        "topic": message.topic,
        "host": message.host,
        "stream": message.stream,
        "kind": message.kind.value,
        "start": message.start,
        "end": message.end,
        "time": message.time_ms,
        "width": message.width_ms,
        "counts": counts,
    }
    if message.application:
        body["application"] = message.application
    if message.expired:
        body["expired"] = message.expired
    if message.is_last:
        body["last"] = True
    if message.epoch != NO_EPOCH:
        body["epoch"] = message.epoch
    if message.is_correction:
        body["correction"] = message.correction
    if message.age_ms:
        body["age"] = message.age_ms
    if message.is_compacted:
        body["compacted"] = True
    if message.sees_aborted:
        body["uncommitted"] = True
    return json.dumps(body, separators=(",", ":")).encode()


def decode(value: bytes | None) -> CountMessage:
    """MessageError for a record that is no count message."""
    try:
        body = json.loads(value or b"")
        if not isinstance(body, dict):
            raise MessageError("a count message is a JSON object")
        return of_kafka_260(body) if "guid" in body else of_body(body)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        if isinstance(error, MessageError):
            raise
        raise MessageError(f"no count message: {error!r}") from None


def of_body(body: dict[str, Any]) -> CountMessage:
    if body["version"] != VERSION:
        raise MessageError(f"version {body['version']}: this program reads version {VERSION}")
    start, end = number(body["start"]), number(body["end"])
    correction = number(body.get("correction", NO_CORRECTION), NO_CORRECTION)
    if start > end or (start == end and correction == NO_CORRECTION) or len(body["counts"]) > ENTRIES_MAX:
        raise MessageError(f"the range {start} to {end} with {len(body['counts'])} counts")
    return CountMessage(
        text(body["tier"]),
        text(body["topic"]),
        text(body["host"]),
        text(body["stream"]),
        StreamKind(body["kind"]),
        start,
        end,
        number(body["time"]),
        tuple(map(of_entry, body["counts"])),
        width(body["width"]),
        text(body.get("application", "")),
        number(body.get("expired", 0), 0),
        body.get("last", False) is True,
        number(body.get("epoch", NO_EPOCH), NO_EPOCH),
        correction,
        number(body.get("age", 0), 0),
        body.get("compacted", False) is True,
        body.get("uncommitted", False) is True,
    )


def of_entry(body: dict[str, Any]) -> Entry:
    tally = Tally(number(body["count"], 0), *(number(body.get(name, 0), 0) for name in (*OTHERS, "summed")))
    tally = tally._replace(content=content_sum(body.get("content", "0")))
    counts = {delay_index(index): number(count, 0) for index, count in body.get("delays", {}).items()}
    return Entry(
        number(body["bucket"], NO_TIME),
        tally,
        number(body.get("partition", NO_PARTITION), NO_PARTITION),
        Delays(counts, number(body.get("delay_max", 0)), number(body.get("ahead_max", 0))),
        number(body.get("first", NO_OFFSET), NO_OFFSET),
    )


def of_kafka_260(body: dict[str, Any]) -> CountMessage:
    """An increment of the form that was proposed for Apache Kafka: its guid makes it count once."""
    start_ms, end_ms = number(body["bucket_start"], 0), number(body["bucket_end"])
    width_ms = width(end_ms - start_ms)
    return CountMessage(
        text(body["tier"]),
        text(body["topic"]),
        text(body.get("host", "")),
        text(body["guid"]),
        StreamKind.BATCHES,
        0,
        1,
        number(body["time"]),
        (Entry(bucket_of(start_ms, width_ms), Tally(number(body["count"], 0))),),
        width_ms,
        text(body.get("application", "")),
    )


def number(value: object, least: int = -NUMBER_MAX) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= NUMBER_MAX:
        raise MessageError(f"{str(value)[:50]}: a whole number of at least {least}, in 64 bits")
    return value


def width(value: object) -> int:
    """Milliseconds of a bucket: a part of a day, so that buckets of two widths line up."""
    try:
        return check_width(number(value, 1))
    except ValueError as error:
        raise MessageError(str(error)) from None


def delay_index(value: str) -> int:
    found = int(value)
    if not 0 <= found <= INDEX_MAX:
        raise MessageError(f"the delay {value[:50]} of at most {INDEX_MAX}")
    return found


def content_sum(value: object) -> int:
    """Hexadecimal text: numbers of 64 bits are not safe in every reader of JSON."""
    found = int(text(value), 16)
    if not 0 <= found <= MODULUS_MASK:
        raise MessageError(f"{value!r} is no sum of 64 bits")
    return found


def text(value: object) -> str:
    """Names stand in tables, pages and metrics, so line ends and halves of characters become a `?`."""
    if not isinstance(value, str) or len(value) > TEXT_MAX:
        raise MessageError(f"{str(value)[:50]!r} is no text of at most {TEXT_MAX} characters")
    return value if value.isprintable() else "".join(each if each.isprintable() else "?" for each in value)
