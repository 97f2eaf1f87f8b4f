"""A partition with transactions, over segments, restarts and truncations, against a plain list of batches."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.fetch.partition_data import READ_COMMITTED, Asked, read_partition
from barnabas.broker.metrics import Metrics
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.topic_rules import TopicRules
from barnabas.broker.produce.tick import Tick
from barnabas.connection.arena import Arena
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.record import Record, build_batch
from barnabas.records.validation import AppendRules
from barnabas.replication.verification import NOT_REQUIRED, ONGOING
from barnabas.settings import TopicSettings
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings
from barnabas.transactions.outcome import TransactionEnd

from .read_committed import ReadCommitted

NOW_MS = 1_700_000_000_000
SMALL = LogSettings(segment_bytes=700, index_interval_bytes=150)
PRODUCERS = 4
STEPS = 150


@dataclass(slots=True)
class Batch:
    first: int
    count: int
    producer: int = -1  # none
    epoch: int = -1
    transactional: bool = False
    aborts: bool | None = None  # a marker, or None for data

    @property
    def end(self) -> int:
        return self.first + self.count


class World:
    """A real log and partition, and the list of records written to them."""

    def __init__(self, folder: str) -> None:
        self.folder = f"{folder}/t-0"
        self.tick = Tick(Arena(), lambda turn: None, lambda due, done: done({}))
        self.log = Log.create(self.folder, SMALL, now_ms=NOW_MS)
        self.batches: list[Batch] = []
        self.staged: list[Batch] = []
        self.lead()

    def lead(self) -> None:
        self.partition = Partition("t", 0, b"i" * 16, self.log, 1, self.tick, Metrics().topic("t"))
        self.partition.configure(TopicRules(TopicSettings(), SMALL, AppendRules()))
        self.partition.lead(0, (1,))

    # What was written, plainly

    def last_of(self, producer: int) -> Batch | None:
        known = [batch for batch in self.batches + self.staged if batch.producer == producer]
        return known[-1] if known else None

    def epoch_of(self, producer: int) -> int:
        last = self.last_of(producer)
        return 0 if last is None else last.epoch

    def next_sequence(self, producer: int) -> int:
        epoch = self.epoch_of(producer)
        return sum(
            batch.count
            for batch in self.batches + self.staged
            if batch.producer == producer and batch.epoch == epoch and batch.aborts is None
        )

    def transactions(self) -> Iterator[tuple[int, int, Batch | None]]:
        """Producer, first offset, and the marker if there is one."""
        for producer in range(PRODUCERS):
            first = None
            for batch in self.batches:
                if batch.producer != producer:
                    continue
                if batch.aborts is not None and first is not None:
                    yield producer, first, batch
                    first = None
                elif batch.transactional and batch.aborts is None and first is None:
                    first = batch.first
            if first is not None:
                yield producer, first, None

    def open_since(self, producer: int) -> int:
        return next(
            (first for who, first, marker in self.transactions() if who == producer and not marker), -1
        )

    def stable_offset(self) -> int:
        end = self.batches[-1].end if self.batches else 0
        return min([end, *(first for _, first, marker in self.transactions() if marker is None)])

    def committed(self) -> list[int]:
        """Offsets that a consumer of committed records sees."""
        stable = self.stable_offset()
        aborted = [
            (who, first, m.first) for who, first, m in self.transactions() if m is not None and m.aborts
        ]
        return [
            offset
            for batch in self.batches
            if batch.aborts is None
            for offset in range(batch.first, batch.end)
            if offset < stable
            and not (
                batch.transactional
                and any(who == batch.producer and first <= offset < end for who, first, end in aborted)
            )
        ]

    # What is done to both

    def produce(self, producer: int, count: int, *, transactional: bool) -> None:
        epoch = self.epoch_of(producer) if producer >= 0 else -1
        sequence = self.next_sequence(producer) if producer >= 0 else -1
        records = [Record(offset=i, timestamp=NOW_MS, value=b"v" * 20) for i in range(count)]
        data = build_batch(
            records,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        is_open = self.is_open(producer)
        if is_open and not transactional:
            with pytest.raises(KafkaError) as refused:
                self.partition.append(memoryview(data), 1, 12, NOW_MS)
            assert refused.value.code == ErrorCode.INVALID_TXN_STATE
            return
        verification = ONGOING if is_open else NOT_REQUIRED
        base_offset, _ = self.partition.append(
            memoryview(data), 1, 12, NOW_MS, verification if transactional else None
        )
        self.staged.append(Batch(base_offset, count, producer, epoch, transactional))

    def is_open(self, producer: int) -> bool:
        batches = [b for b in self.batches + self.staged if b.producer == producer and b.transactional]
        return bool(batches) and batches[-1].aborts is None

    def end(self, producer: int, *, commit: bool, version: int) -> None:
        epoch = self.epoch_of(producer) + (version == 2)
        offset = self.partition.append_marker(TransactionEnd(producer, epoch, 3, commit, version), NOW_MS)
        self.staged.append(Batch(offset, 1, producer, epoch, True, not commit))

    def close_tick(self) -> None:
        self.tick.close()
        self.batches += self.staged
        self.staged = []

    def restart(self, how: str, torn_bytes: int) -> None:
        if how == "clean":
            self.close_tick()
            self.log.close()
        else:
            if torn_bytes % 2:
                self.close_tick()
            self.tick.close()  # what was staged may be written, too, when the process dies
            self.batches += self.staged
            self.staged = []
            if how == "torn":
                path = self.log.active.path
                os.truncate(path, max(self.log.active.size - torn_bytes, 0))
        recovery_point = self.log.recovery_point
        self.log = Log.open(
            self.folder, SMALL, recovery_point=recovery_point, clean=how == "clean", now_ms=NOW_MS
        )
        self.forget_from(self.log.end_offset)
        self.lead()

    def truncate(self, back: int) -> None:
        self.close_tick()
        kept = self.batches[: max(len(self.batches) - back, 0)]
        offset = kept[-1].end if kept else 0
        self.log.truncate_to(offset)
        self.partition.state.truncate(offset)
        self.forget_from(offset)

    def forget_from(self, offset: int) -> None:
        self.batches = [batch for batch in self.batches if batch.end <= offset]

    def check(self, bytes_max: int) -> None:
        partition = self.partition
        assert partition.last_stable_offset == self.stable_offset()
        consumer = ReadCommitted()
        seen: list[int] = []
        while consumer.offset < self.stable_offset():
            asked = Asked(fetch_offset=consumer.offset)
            answer = read_partition(partition, asked, bytes_max, READ_COMMITTED, at_least_one=True)
            records: Any = answer.records
            aborted = [(each.producer_id, each.first_offset) for each in answer.aborted_transactions or ()]
            before = consumer.offset
            seen += [record.offset for record in consumer.feed(records.read(), aborted)]
            assert consumer.offset > before
        assert seen == self.committed()
        known = {state.producer_id: state for state in self.log.producers}
        for producer in range(PRODUCERS):
            last = self.last_of(producer)
            assert (producer in known) == (last is not None)
            if last is not None:
                state = known[producer]
                assert state.txn_first_offset == self.open_since(producer)
                assert state.producer_epoch == last.epoch
                assert state.next_sequence == self.next_sequence(producer)


def random_step(rng: random.Random) -> tuple[Any, ...]:
    kind = rng.choices(
        ["produce", "end", "tick", "roll", "restart", "truncate", "sync"], [40, 20, 15, 4, 5, 4, 4]
    )[0]
    match kind:
        case "produce":
            producer = rng.randrange(-1, PRODUCERS)
            return kind, producer, rng.randrange(1, 5), rng.random() < 0.8, rng.random() < 0.3
        case "end":
            return kind, rng.randrange(PRODUCERS), rng.random() < 0.5, rng.choice([0, 1, 2])
        case "restart":
            return kind, rng.choice(["clean", "killed", "torn"]), rng.randrange(1, 400)
        case "truncate":
            return kind, rng.randrange(1, 4)
    return (kind,)


@pytest.mark.parametrize("seed", range(20))
def test_readers_of_committed_records_see_what_was_committed_and_nothing_else(
    seed: int, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    world = World(str(tmp_path))
    for _ in range(STEPS):
        take(world, random_step(rng))
        if not world.staged:
            world.check(rng.choice([1, 200, 1000, 100_000]))
    world.close_tick()
    world.check(100_000)
    world.log.close()


def take(world: World, step: tuple[Any, ...]) -> None:
    match step:
        case "produce", producer, count, transactional, at_once:
            world.produce(producer, count, transactional=transactional and producer >= 0)
            if at_once:
                world.close_tick()
        case "end", producer, commit, version:
            if version == 2 and not world.is_open(producer):
                return  # a marker that ends nothing would be one that came twice
            world.end(producer, commit=commit, version=version)
        case ("tick",):
            world.close_tick()
        case ("roll",):
            world.close_tick()
            world.log.roll(now_ms=NOW_MS)
        case "restart", how, torn_bytes:
            world.restart(how, torn_bytes)
        case "truncate", back:
            world.truncate(back)
        case ("sync",):
            world.close_tick()
            world.log.sync()
