"""The tick writes records, syncs them, and then shows them to readers, in this order."""

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.broker.metrics import Metrics
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.topic_rules import TopicRules
from barnabas.broker.produce.tick import Tick
from barnabas.connection.arena import Arena
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.record import Record, build_batch
from barnabas.records.validation import AppendRules
from barnabas.settings import TopicSettings
from barnabas.simulation.world.disk import Failure, SimulatedDisk
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings

NOW_MS = 1_700_000_000_000
SYNCED = LogSettings(flush_messages=1)


def test_a_batch_that_could_not_be_staged_keeps_its_bytes() -> None:
    """A log that cannot roll refuses it; the produce request is then looked at once more, from its bytes."""
    disk = SimulatedDisk()
    log = Log.create("/t-0", LogSettings(segment_ms=1), now_ms=NOW_MS, context=LogContext(disk))
    tick = Tick(Arena(), lambda turn: None, lambda due, done: done({}))
    partition = Partition("t", 0, b"i" * 16, log, 1, tick, Metrics().topic("t"))
    partition.configure(TopicRules(TopicSettings(), LogSettings(segment_ms=1), AppendRules()))
    partition.lead(5, (1,))
    partition.append(memoryview(build_batch([Record(timestamp=NOW_MS, value=b"v")])), -1, 11, NOW_MS)
    tick.close()
    disk.failures.append(Failure(frozenset({"create", "write", "truncate"})))
    batch = build_batch([Record(timestamp=NOW_MS + 1000, value=b"v")])
    before = bytes(batch)

    with pytest.raises(KafkaError) as refused:
        partition.append(memoryview(batch), -1, 11, NOW_MS + 1000)

    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert batch == before


class SlowDisk:
    """Syncs that end when the test says so."""

    def __init__(self, directory: str) -> None:
        self.syncs: list[Callable[[dict[Partition, KafkaError]], None]] = []
        self.tick = Tick(Arena(), lambda turn: None, lambda due, done: self.syncs.append(done))
        log = Log.create(directory, SYNCED, now_ms=NOW_MS)
        self.partition = Partition("t", 0, b"i" * 16, log, 1, self.tick, Metrics().topic("t"))
        self.partition.configure(TopicRules(TopicSettings(), SYNCED, AppendRules()))
        self.partition.lead(0, (1,))

    def append(self) -> None:
        batch = build_batch([Record(timestamp=NOW_MS, value=b"v")])
        self.partition.append(memoryview(batch), -1, 11, NOW_MS)
        self.tick.close()


def test_the_tick_ends_when_the_receive_memory_is_used_up(tmp_path: Path) -> None:
    """After a channel has handled its bytes: when another channel needs memory it is too late."""
    arena = Arena()
    tick = Tick(arena, lambda turn: None, lambda due, done: done({}))
    partition = SlowDisk(str(tmp_path / "t-0")).partition
    tick.staged(partition)
    tick.channel_done()  # alone: it need not wait for others
    assert not tick.is_open
    for position, is_open in ((arena.limit, True), (arena.limit + 1, False)):
        tick.staged(partition)
        arena.position = position
        tick.channel_done()
        assert tick.is_open == is_open
    assert arena.position == 0


@pytest.fixture
def slow(tmp_path: Path) -> SlowDisk:
    return SlowDisk(str(tmp_path / "t-0"))


def test_a_sync_moves_the_high_watermark_only_over_batches_written_before_it(slow: SlowDisk) -> None:
    slow.append()
    slow.append()

    slow.syncs[0]({})

    assert slow.partition.high_watermark == 1


def test_records_that_arrive_during_a_sync_share_the_next_one(slow: SlowDisk) -> None:
    for _ in range(3):
        slow.append()
    assert len(slow.syncs) == 1

    slow.syncs[0]({})
    assert slow.partition.high_watermark == 1
    assert len(slow.syncs) == 2

    slow.syncs[1]({})
    assert slow.partition.high_watermark == 3
    assert slow.partition.state.log_end_offset == 3
    assert len(slow.syncs) == 2


def test_a_failed_sync_does_not_move_the_high_watermark(slow: SlowDisk) -> None:
    slow.append()

    slow.syncs[0]({slow.partition: KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)})

    assert slow.partition.high_watermark == 0
