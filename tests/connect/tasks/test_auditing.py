"""Tasks count for the audit: sources what they wrote, sinks what they flushed, each record once."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from audit.counted import counts, ledger_of
from barnabas.audit import PRODUCER, sink
from barnabas.audit.core.contents import MODULUS_MASK, content_of
from barnabas.audit.core.messages import CountMessage
from barnabas.audit.counters.audit_counter import AuditSettings
from barnabas.client.core.topology import TopicPartition
from barnabas.connect.data.schema import Schema, Type
from barnabas.connect.jobs.encoding import Encoding
from barnabas.connect.jobs.pieces import Piece
from barnabas.connect.tasks import auditing
from barnabas.connect.tasks.auditing import SinkAudit
from barnabas.connect.tasks.polled import Polled
from barnabas.connect.tasks.raw_records import RawRecords
from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until
from connect.tasks.parts import States, runner, seen
from connect.tasks.test_loops import sink_config, source_config

AUDIT = {"barnabas_audit_enable": "true", "barnabas_audit_sums": "true"}
TEXT_CONVERTER = "org.apache.kafka.connect.storage.StringConverter"
PLACE = TopicPartition("orders", 0)
IDS = {"orders": bytes(16)}


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, 60)


def total(bootstrap: str, topic: str, tier: str) -> int:
    return sum(counts(bootstrap, topic, tier).values())


def test_a_source_and_a_sink_behind_it_count_the_same(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    """A flush of the sink fails once; what it had taken since the last one counts once all the same."""
    bootstrap = barnabas_broker.bootstrap
    tasks = runner(bootstrap, tmp_path, offset_storage_topic="counted-offsets", **AUDIT)
    tasks.start("made", 0, source_config(barnabas_topic, limit="40"), "STARTED", States())
    tasks.start("kept", 0, sink_config(barnabas_topic), "STARTED", States())
    until(lambda: len(seen("kept")["put"]) >= 40)
    until(lambda: total(bootstrap, barnabas_topic, sink("kept")) == 40)
    seen("kept")["flush fails"] = True
    tasks.start("more", 0, source_config(barnabas_topic, limit="25", counter="d"), "STARTED", States())
    until(lambda: total(bootstrap, barnabas_topic, sink("kept")) == 65)
    tasks.stop_all()
    until(lambda: total(bootstrap, barnabas_topic, PRODUCER) == 65)
    assert total(bootstrap, barnabas_topic, sink("kept")) == 65
    columns = ledger_of(bootstrap).columns
    for column in (each for (name, _), each in columns.items() if name == barnabas_topic):
        written, kept = column[PRODUCER].total, column[sink("kept")].total
        assert written.summed == written.counted and written == kept


class Sent(SinkAudit):
    """Keeps what would be sent, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__(AuditSettings("127.0.0.1:1"), "kept")
        self._cluster_id = "cluster"
        self.sent: list[CountMessage] = []
        self.fails = False
        self._cluster = self  # type: ignore[assignment]
        self._publisher = self  # type: ignore[assignment]

    async def send(self, messages: list[CountMessage]) -> None:
        if self.fails:
            raise OSError("no broker")
        self.sent += messages

    def ranges(self) -> list[tuple[int, int, int]]:
        return [
            (each.start, each.end, sum(entry.tally.counted for entry in each.entries)) for each in self.sent
        ]


def polled(first: int, count: int) -> Polled:
    empty = pa.nulls(count, pa.binary())
    offsets = pa.array(np.arange(first, first + count))
    stamps = pa.array(np.full(count, 1_700_000_400_000))
    raw = RawRecords("orders", empty, empty, pa.array([0] * count, pa.int32()), offsets, stamps)
    return Polled(PLACE, raw, first, first + count)


def test_only_whole_ranges_below_the_flushed_offset_are_sent() -> None:
    audit = Sent()
    audit.delivered([polled(0, 5), polled(5, 5)])
    audit.delivered([polled(12, 3)])  # 10 and 11 are markers of transactions
    audit.flushed({PLACE: 12}, IDS)
    audit.flushed({PLACE: 15}, IDS)
    assert audit.ranges() == [(0, 10, 10), (12, 15, 3)]


def test_records_that_come_again_count_once() -> None:
    audit = Sent()
    audit.delivered([polled(0, 5), polled(5, 5)])
    audit.rewound({PLACE: 5})
    audit.delivered([polled(5, 5)])
    audit.flushed({PLACE: 10}, IDS)
    assert audit.ranges() == [(0, 10, 10)]
    audit.delivered([polled(10, 5)])
    audit.forget([PLACE])
    audit.flushed({PLACE: 15}, IDS)
    assert audit.ranges() == [(0, 10, 10)]


def test_counts_wait_while_brokers_are_away() -> None:
    audit = Sent()
    audit.delivered([polled(0, 5)])
    audit.fails = True
    audit.flushed({PLACE: 5}, IDS)
    audit.fails = False
    audit.delivered([polled(5, 2)])
    audit.flushed({PLACE: 7}, IDS)
    assert audit.ranges() == [(0, 5, 5), (5, 7, 2)]


def test_counts_of_a_topic_that_was_just_deleted_do_not_stop_a_commit() -> None:
    audit = Sent()
    audit.delivered([polled(0, 5)])
    audit.flushed({PLACE: 5}, {})
    assert audit.ranges() == [(0, 5, 5)]


def test_counts_wait_although_the_cluster_was_never_reached() -> None:
    """The id of the cluster, a part of the stream's name, is asked for first."""
    audit = Sent()
    audit._cluster_id = ""  # `Sent` is no cluster that could be asked
    audit.delivered([polled(0, 5)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(auditing, "Admin", unreachable)
        audit.flushed({PLACE: 5}, IDS)
    audit._cluster_id = "cluster"
    audit.flushed({PLACE: 5}, IDS)
    assert audit.ranges() == [(0, 5, 5)]


def unreachable(cluster: object) -> None:
    raise OSError("no broker")


def test_a_piece_of_a_job_counts_what_the_brokers_have_at_the_time_of_their_log(
    barnabas_broker: Broker, barnabas_topic: str
) -> None:
    bootstrap, topic = barnabas_broker.bootstrap, f"{barnabas_topic}-appended"
    barnabas_broker.create_topic(topic, 1, {"message.timestamp.type": "LogAppendTime"})
    text = Schema(type=Type.STRING)
    converters = dict.fromkeys(("key.converter", "value.converter"), TEXT_CONVERTER)
    piece = Piece("c", 0, "source", {"name": "c"}, converters, (), {"bootstrap.servers": bootstrap}, True)
    rows = pa.RecordBatch.from_pydict({"key": ["a", "b"], "value": ["1", "2"]})
    before_ms = int(time.time() * 1000)
    [found] = Encoding(piece, topic, text, text).write(iter([rows]))
    report = json.loads(found.column("report")[0].as_py())
    [[name, partition, _, _, [[stamp, count, content]]]] = report["counts"]
    assert (name, partition, count) == (topic, 0, 2) and not report["failure"]
    assert before_ms <= stamp <= int(time.time() * 1000)
    expected = sum(content_of(key, value, stamp) for key, value in ((b"a", b"1"), (b"b", b"2")))
    assert content == expected & MODULUS_MASK
