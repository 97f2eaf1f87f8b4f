"""Retention and compaction at work under producers and consumers: nobody sees a gap that the policy does not
explain.

Writers keep count of what they wrote where; readers go over each topic again and again, from wherever it
starts, and hold every record against that, and every gap against the policy. Seconds in the tests, minutes in
`make soak`.
"""

from __future__ import annotations

import random
import threading
import time
from typing import Any, Self

import pytest

from barnabas.protocol import ApiKey, ErrorCode
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.records.batch import compute_crc, headers
from barnabas.records.record import iter_records
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from interop.frames import Wire
from interop.requests import batch
from interop.talk import decode, encode, request_header_version

SETTINGS = {
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "50",
    "log.segment.delete.delay.ms": "100",
    "log.cleaner.backoff.ms": "50",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.index.interval.bytes": "512",
}
SEGMENT_BYTES = 1 << 20
KEYS = 200
HEADER_BYTES = 5
PartitionData = FetchResponse.FetchableTopicResponse.PartitionData
Written = tuple[bytes, bytes | None]  # key and value

pytestmark = pytest.mark.timeout(1800)


class Connection:
    def __init__(self, port: int) -> None:
        self.wire = Wire(port)

    def ask(self, api: ApiKey, version: int, **body: Any) -> dict[str, Any]:
        sent = self.wire.send(api, version, request_header_version(api, version), encode(api, version, body))
        return decode(api, version, self.wire.receive(), sent)

    def offset(self, topic: str, timestamp: int) -> int:
        partitions = [{"partition_index": 0, "timestamp": timestamp}]
        topics = [{"name": topic, "partitions": partitions}]
        answer = self.ask(ApiKey.LIST_OFFSETS, 8, replica_id=-1, topics=topics)
        return int(answer["topics"][0]["partitions"][0]["offset"])

    def fetch(self, topic: str, offset: int) -> PartitionData:
        place = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 300_000}
        topics = [{"topic": topic, "partitions": [place]}]
        body = {
            "max_bytes": 300_000,
            "max_wait_ms": 50,
            "min_bytes": 1,
            "session_epoch": -1,
            "topics": topics,
        }
        self.wire.send(ApiKey.FETCH, 12, 2, encode(ApiKey.FETCH, 12, body))
        answer = FetchResponse.decode(self.wire.receive()[HEADER_BYTES:], 12)
        return answer.responses[0].partitions[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.wire.close()


class Topic:
    """What was written, and what readers have to say about it. `tombstones`: one record in ten has no
    value."""

    def __init__(self, name: str, *, is_compacted: bool, is_deleted: bool, tombstones: bool = False) -> None:
        self.name = name
        self.is_compacted = is_compacted
        self.is_deleted = is_deleted
        self.tombstones = tombstones
        self.written: dict[int, Written] = {}
        self.last_of: dict[bytes, int] = {}  # key: the offset of its last record
        self.complaints: list[str] = []
        self.gaps = 0
        self.rounds = 0

    def note(self, offset: int, key: bytes, value: bytes | None) -> None:
        self.written[offset] = (key, value)
        self.last_of[key] = offset

    # -- what a reader may see ---------------------------------------------------------------------

    def check_record(self, offset: int, key: bytes, value: bytes | None) -> None:
        if self.written.get(offset, (key, value)) != (key, value):
            self.complaints.append(f"{self.name}: another record is at offset {offset}")

    def check_gap(self, start: int, stop: int, log_start: int) -> None:
        """Offsets that a reader was not given, where it had asked for the first of them."""
        for offset in range(start, stop):
            self.gaps += 1
            if offset < log_start and self.is_deleted:
                continue
            known = self.written.get(offset)
            if known is None or (self.is_compacted and self.last_of[known[0]] > offset):
                continue
            if self.is_compacted and known[1] is None:
                continue  # a tombstone whose time is over
            self.complaints.append(
                f"{self.name}: offset {offset} is missing, key {known[0]!r} was not written again"
            )
            return

    def configs(self) -> dict[str, object]:
        policy = ",".join(
            name for name, wanted in (("compact", self.is_compacted), ("delete", self.is_deleted)) if wanted
        )
        configs: dict[str, object] = {"cleanup.policy": policy, "segment.bytes": SEGMENT_BYTES}
        if self.is_deleted and self.is_compacted:  # what is left of a compacted log is small: it goes by age
            configs |= {"retention.ms": 2_000, "segment.ms": 500}
        elif self.is_deleted:
            configs["retention.bytes"] = 3 * SEGMENT_BYTES
        if self.is_compacted:
            configs["delete.retention.ms"] = 500
        return configs


def write(port: int, topic: Topic, stopping: threading.Event, seed: int) -> None:
    with Connection(port) as connection:
        write_on(connection, topic, stopping, seed)


def write_on(connection: Connection, topic: Topic, stopping: threading.Event, seed: int) -> None:
    rng = random.Random(seed)
    number = 0
    while not stopping.is_set() and not topic.complaints:
        key = b"key-%d" % rng.randrange(KEYS)
        is_tombstone = topic.tombstones and rng.random() < 0.1
        value = None if is_tombstone else b"%d " % number + bytes(rng.randrange(200, 3000))
        number += 1
        records = batch(value, key=key, time_ms=int(time.time() * 1000))
        data = [{"name": topic.name, "partition_data": [{"index": 0, "records": records}]}]
        answer = connection.ask(
            ApiKey.PRODUCE, 9, acks=-1, timeout_ms=10_000, transactional_id=None, topic_data=data
        )
        found = answer["responses"][0]["partition_responses"][0]
        if found["error_code"] != "NONE":
            topic.complaints.append(f"{topic.name}: a produce was answered {found['error_code']}")
            return
        topic.note(found["base_offset"], key, value)


def read(port: int, topic: Topic, stopping: threading.Event) -> None:
    with Connection(port) as connection:
        while not stopping.is_set() and not topic.complaints:
            read_once(connection, topic)


def read_once(connection: Connection, topic: Topic) -> dict[bytes, bytes | None]:
    """From the start of the log to its end as it was then; the last value of each key that was seen."""
    position, end = connection.offset(topic.name, -2), connection.offset(topic.name, -1)
    state: dict[bytes, bytes | None] = {}
    while position < end:
        found = connection.fetch(topic.name, position)
        if found.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            start = connection.offset(topic.name, -2)
            if start <= position:
                topic.complaints.append(
                    f"{topic.name}: offset {position} is refused, the log starts at {start}"
                )
                return state
            position = start
            continue
        if found.error_code:
            topic.complaints.append(f"{topic.name}: a fetch was answered {found.error_code}")
            return state
        following = read_batches(bytes(found.records or b""), topic, position, found.log_start_offset, state)
        if following == position and found.high_watermark >= end:
            topic.check_gap(position, end, found.log_start_offset)
            break
        position = following
    topic.rounds += 1
    return state


def read_batches(
    data: bytes, topic: Topic, position: int, log_start: int, state: dict[bytes, bytes | None]
) -> int:
    """Every record and every gap from `position` on; where the next fetch goes on."""
    for at, header in headers(data):
        if at + header.size > len(data):
            break
        if compute_crc(data, at, header.size) != header.crc:
            topic.complaints.append(f"{topic.name}: a damaged batch at offset {header.base_offset}")
        for record in iter_records(data, position=at):
            if record.offset >= position:
                topic.check_gap(position, record.offset, log_start)
                assert record.key is not None
                key, value = bytes(record.key), None if record.value is None else bytes(record.value)
                topic.check_record(record.offset, key, value)
                state[key] = value
                position = record.offset + 1
        if header.next_offset > position:  # the batch reaches further than its last record that is left
            topic.check_gap(position, header.next_offset, log_start)
            position = header.next_offset
    return position


@pytest.mark.long
def test_no_gap_that_the_policy_does_not_explain(broker: Broker, request: pytest.FixtureRequest) -> None:
    seconds = float(request.config.getoption("--soak-seconds"))
    topics = [
        Topic("aged", is_compacted=False, is_deleted=True),
        Topic("kept", is_compacted=True, is_deleted=False),
        Topic("forgotten", is_compacted=True, is_deleted=False, tombstones=True),
        Topic("both", is_compacted=True, is_deleted=True),
    ]
    for topic in topics:
        broker.create_topic(topic.name, configs=topic.configs())
    writing, reading = threading.Event(), threading.Event()
    writers = [
        threading.Thread(target=write, args=(broker.port, topic, writing, seed))
        for seed, topic in enumerate(topics)
    ]
    readers = [
        threading.Thread(target=read, args=(broker.port, topic, reading))
        for topic in topics
        for _ in range(2)
    ]
    for thread in [*writers, *readers]:
        thread.start()
    over = time.monotonic() + seconds

    def is_over() -> bool:
        """Whatever the machine's speed, both policies have had something to do."""
        if any(topic.complaints for topic in topics):
            return True
        return time.monotonic() > over and all(has_aged(broker, topic) for topic in topics)

    try:
        wait_until(is_over, seconds + 120, "both policies had something to do")
    finally:
        writing.set()
        for thread in writers:
            thread.join()
        reading.set()
        for thread in readers:
            thread.join()

    assert [complaint for topic in topics for complaint in topic.complaints] == []
    for topic in topics:
        assert topic.rounds > 0
        last = {key: topic.written[offset][1] for key, offset in topic.last_of.items()}
        with Connection(broker.port) as connection:
            state = read_once(connection, topic)
            start = connection.offset(topic.name, -2)
        if not topic.is_deleted:
            lost = [key for key, value in last.items() if value is not None and state.get(key) != value]
            assert not lost, f"{topic.name}: the last value of {lost[:3]} is gone"
            assert topic.gaps > 0, f"{topic.name} was never compacted"
        else:
            assert start > 0, f"{topic.name} never aged"
    assert [complaint for topic in topics for complaint in topic.complaints] == []


def has_aged(broker: Broker, topic: Topic) -> bool:
    if topic.is_deleted:
        with Connection(broker.port) as connection:
            return connection.offset(topic.name, -2) > 0
    return topic.gaps > 0 and len(topic.written) > 2 * KEYS
