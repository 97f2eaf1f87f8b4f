"""Partitions are verified as part of a transaction before they take records, however long that takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.broker.broker import Broker
from barnabas.broker.metrics import Metrics
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.topic_rules import TopicRules
from barnabas.broker.produce.tick import Tick
from barnabas.broker.produce.verifying import Level, NotVerified, Producer, Verified, verify
from barnabas.connection.arena import Arena
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.records.record import Record, build_batch
from barnabas.records.validation import AppendRules
from barnabas.replication.verification import NOT_REQUIRED, ONGOING
from barnabas.settings import TopicSettings
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings
from barnabas.transactions.outcome import TopicPartition, TransactionEnd

NOW_MS = 1_700_000_000_000
PRODUCER = Producer("id", 7, 0)
WHERE = TopicPartition("t", 0)
CONCURRENT = {WHERE: int(ErrorCode.CONCURRENT_TRANSACTIONS)}
Answer = Mapping[TopicPartition, int]


class Coordinator:
    """Gives the responses that the test set, one after the other."""

    def __init__(self, *answers: Answer | Awaitable[Answer]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[list[TopicPartition], bool]] = []

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: list[TopicPartition],
        *,
        add: bool,
    ) -> Answer | Awaitable[Answer]:
        assert (transactional_id, producer_id, epoch) == PRODUCER
        self.asked.append((partitions, add))
        return self.answers.pop(0)


class World:
    def __init__(self, folder: Path, coordinator: Coordinator, **settings: Any) -> None:
        self.coordinator = coordinator
        log_settings = LogSettings()
        log = Log.create(str(folder / "t-0"), log_settings, now_ms=NOW_MS)
        self.tick = Tick(Arena(), lambda turn: None, lambda due, done: done({}))
        self.partition = Partition("t", 0, b"i" * 16, log, 1, self.tick, Metrics().topic("t"))
        self.partition.configure(TopicRules(TopicSettings(), log_settings, AppendRules()))
        self.partition.lead(0, (1,))
        values = {
            "transaction.partition.verification.enable": True,
            "add.partitions.to.txn.retry.backoff.ms": 1,
            "add.partitions.to.txn.retry.backoff.max.ms": 10_000,
            "request.timeout.ms": 30_000,
        }
        clock = SimpleNamespace(now_ms=lambda: NOW_MS)
        self.broker = SimpleNamespace(
            clock=clock,
            transactions=coordinator,
            settings=values | {n.replace("_", "."): v for n, v in settings.items()},
        )

    def ask(self, level: Level = Level.TV2, *, retries: bool = True) -> Verified | Awaitable[Verified]:
        return verify(cast(Broker, self.broker), PRODUCER, {self.partition: 0}, level, retries=retries)

    def at_once(self, level: Level = Level.TV2) -> Any:
        found = self.ask(level)
        assert isinstance(found, dict)
        return found[self.partition]

    def append(self, verification: Any, sequence: int = 0) -> int:
        batch = build_batch(
            [Record(timestamp=NOW_MS, value=b"x")],
            producer_id=PRODUCER.producer_id,
            producer_epoch=PRODUCER.producer_epoch,
            base_sequence=sequence,
            transactional=True,
        )
        offset, _ = self.partition.append(memoryview(batch), -1, 12, NOW_MS, verification)
        self.tick.close()
        return offset

    def end(self, epoch: int = 0) -> None:
        self.partition.append_marker(TransactionEnd(PRODUCER.producer_id, epoch, 0, False, 0), NOW_MS)
        self.tick.close()


def test_a_partition_that_is_in_the_transaction_takes_its_records(tmp_path: Path) -> None:
    world = World(tmp_path, Coordinator({WHERE: 0}))
    assert world.append(world.at_once()) == 0
    assert world.coordinator.asked == [([WHERE], True)]


def test_an_open_transaction_is_verified_once(tmp_path: Path) -> None:
    world = World(tmp_path, Coordinator({WHERE: 0}))
    world.append(world.at_once())
    assert world.at_once() is ONGOING
    assert world.append(ONGOING, 1) == 1


@pytest.mark.parametrize("level", [Level.TV0, Level.TV1])
def test_older_producers_have_added_their_partitions_before(tmp_path: Path, level: Level) -> None:
    world = World(tmp_path, Coordinator({WHERE: 0}))
    world.append(world.at_once(level))
    assert world.coordinator.asked == [([WHERE], False)]


@pytest.mark.parametrize(
    ("said", "level", "heard"),
    [
        (ErrorCode.PRODUCER_FENCED, Level.TV2, ErrorCode.INVALID_PRODUCER_EPOCH),
        (ErrorCode.TRANSACTION_ABORTABLE, Level.TV0, ErrorCode.INVALID_TXN_STATE),
        (ErrorCode.TRANSACTION_ABORTABLE, Level.TV1, ErrorCode.TRANSACTION_ABORTABLE),
        (ErrorCode.NOT_COORDINATOR, Level.TV2, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_errors_of_the_coordinator_become_errors_that_the_client_knows(
    tmp_path: Path, said: ErrorCode, level: Level, heard: ErrorCode
) -> None:
    world = World(tmp_path, Coordinator({WHERE: int(said)}))
    found = world.at_once(level)
    assert isinstance(found, NotVerified) and found.code == heard


def test_without_verification_older_producers_ask_no_coordinator(tmp_path: Path) -> None:
    world = World(tmp_path, Coordinator(), transaction_partition_verification_enable=False)
    assert world.at_once(Level.TV1) is NOT_REQUIRED
    assert world.append(NOT_REQUIRED) == 0


def test_partitions_are_added_when_verification_is_off(tmp_path: Path) -> None:
    world = World(tmp_path, Coordinator({WHERE: 0}), transaction_partition_verification_enable=False)
    assert world.append(world.at_once()) == 0
    assert world.coordinator.asked == [([WHERE], True)]


def test_a_marker_that_comes_before_the_response_keeps_the_records_out(tmp_path: Path) -> None:
    async def scenario() -> None:
        answer: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        world = World(tmp_path, Coordinator(answer))
        waiting = world.ask(Level.TV1)
        assert not isinstance(waiting, dict)
        world.end()
        answer.set_result({WHERE: 0})
        verified = await waiting
        with pytest.raises(KafkaError) as refused:
            world.append(verified[world.partition])
        assert refused.value.code == ErrorCode.INVALID_TXN_STATE
        assert world.partition.last_stable_offset == world.partition.high_watermark

    asyncio.run(scenario())


def test_records_wait_for_the_end_of_the_previous_transaction(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, Coordinator(CONCURRENT, CONCURRENT, {WHERE: 0}))
        waiting = world.ask()
        assert not isinstance(waiting, dict)
        assert world.append((await waiting)[world.partition]) == 0
        assert len(world.coordinator.asked) == 3

    asyncio.run(scenario())


def test_a_concurrent_transaction_is_an_error_when_retries_are_used_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        world = World(tmp_path, Coordinator(CONCURRENT), add_partitions_to_txn_retry_backoff_max_ms=0)
        waiting = world.ask()
        assert not isinstance(waiting, dict)
        found = (await waiting)[world.partition]
        assert isinstance(found, NotVerified) and found.code == ErrorCode.CONCURRENT_TRANSACTIONS

    asyncio.run(scenario())
