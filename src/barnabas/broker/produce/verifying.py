"""The verification that partitions belong to a transaction, before its records are appended (KIP-890).

In: a producer, and the partitions that it writes to in which no transaction of it is open yet. Out: for each
partition a verification or the error that refuses the append; now, or when the coordinator has responded. For
newer producers this adds the partitions to the transaction; older ones have added them before.
Does not know: records, requests, the state of transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.partitions.partition import Partition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.replication.verification import NOT_REQUIRED, ONGOING, Verification

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.transactions.outcome import TopicPartition

ENABLED = "transaction.partition.verification.enable"
RETRY_MS = "add.partitions.to.txn.retry.backoff.ms"
RETRIES_MS_MAX = "add.partitions.to.txn.retry.backoff.max.ms"


class Level(IntEnum):
    """The transaction version (KIP-890) that a client supports, by the version of its request."""

    TV0 = 0
    TV1 = 1  # knows TRANSACTION_ABORTABLE: it can abort the transaction and begin another
    TV2 = 2  # a write adds the partition to the transaction


class Producer(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int


class NotVerified(KafkaError):
    """The error of a batch that is refused before its partition is asked to append it."""


Verified = dict[Partition, Verification | NotVerified]
Asked = dict["TopicPartition", tuple[Partition, Verification]]


def verify(
    broker: Broker, producer: Producer, sequences: Mapping[Partition, int], level: Level, *, retries: bool
) -> Verified | Awaitable[Verified]:
    """Verify a producer's batches. `sequences` has the first sequence number for each partition. With
    `retries` this waits a little for the end of the producer's previous transaction."""
    is_required: bool = broker.settings[ENABLED]
    if level < Level.TV2 and not is_required:
        return dict.fromkeys(sequences, NOT_REQUIRED)
    verified, asked = begin(broker, producer, sequences, level, is_required=is_required)
    if not asked:
        return verified
    codes = broker.transactions.verify(*producer, list(asked), add=level is Level.TV2)
    if isinstance(codes, dict) and not (retries and is_concurrent(codes)):
        return finish(verified, asked, codes, level)
    question = broker, producer, sequences, level
    return wait(question, codes, verified, asked, is_required=is_required, retries=retries)


def verify_at_once(
    broker: Broker, producer: Producer, partition: Partition, sequence: int, level: Level
) -> Verification | None:
    """Verify one partition now. Returns None if it is refused, or if the coordinator responds later."""
    is_required: bool = broker.settings[ENABLED]
    if level < Level.TV2 and not is_required:
        return NOT_REQUIRED
    if not broker.transactions.verifies_at_once(producer.transactional_id):
        return None
    verified, asked = begin(broker, producer, {partition: sequence}, level, is_required=is_required)
    found = verified[partition]
    if asked:
        adds = level is Level.TV2
        codes = broker.transactions.verify(*producer, list(asked), add=adds, counted=False)
        if not isinstance(codes, dict):
            return None
        found = finish(verified, asked, codes, level)[partition]
    return None if isinstance(found, NotVerified) else found


def begin(
    broker: Broker, producer: Producer, sequences: Mapping[Partition, int], level: Level, *, is_required: bool
) -> tuple[Verified, Asked]:
    """The partitions that are verified already, and those that the coordinator must be asked about."""
    from barnabas.transactions.outcome import TopicPartition

    verified: Verified = {}
    asked: Asked = {}
    now_ms = broker.clock.now_ms()
    is_adding = level is Level.TV2
    for partition, sequence in sequences.items():
        try:
            started = partition.log.producers.start_verification(
                producer.producer_id, sequence, producer.producer_epoch, bumps_epoch=is_adding, now_ms=now_ms
            )
        except KafkaError as error:
            verified[partition] = NotVerified(error.code, error.message)
            continue
        verified[partition] = ONGOING if is_required else NOT_REQUIRED
        if started is not None:
            asked[TopicPartition(partition.topic, partition.index)] = (
                partition,
                started if is_required else NOT_REQUIRED,
            )
    return verified, asked


def finish(
    verified: Verified,
    asked: Asked,
    codes: Mapping[TopicPartition, int],
    level: Level,
) -> Verified:
    for topic_partition, (partition, started) in asked.items():
        code = translated(ErrorCode(codes.get(topic_partition, ErrorCode.NONE)), level)
        verified[partition] = (
            NotVerified(code, f"{topic_partition} is not in the transaction") if code else started
        )
    return verified


def translated(code: ErrorCode, level: Level) -> ErrorCode:
    """Turn an error of the coordinator into one that producers expect of a partition."""
    if code == ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code == ErrorCode.TRANSACTION_ABORTABLE and level is Level.TV0:
        return ErrorCode.INVALID_TXN_STATE
    return code


def is_concurrent(codes: Mapping[TopicPartition, int]) -> bool:
    """Whether the previous transaction is not complete yet."""
    return ErrorCode.CONCURRENT_TRANSACTIONS in codes.values()


async def wait(
    question: tuple[Broker, Producer, Mapping[Partition, int], Level],
    codes: Mapping[TopicPartition, int] | Awaitable[Mapping[TopicPartition, int]],
    verified: Verified,
    asked: Asked,
    *,
    is_required: bool,
    retries: bool,
) -> Verified:
    """Finish a verification that takes time. Each retry starts again: a marker may have been written
    meanwhile."""
    broker, producer, sequences, level = question
    settings = broker.settings
    patience_ms = min(settings[RETRIES_MS_MAX], settings["request.timeout.ms"]) if retries else 0
    deadline_ms = broker.clock.now_ms() + patience_ms
    while True:
        found = codes if isinstance(codes, Mapping) else await codes
        if not is_concurrent(found) or broker.clock.now_ms() >= deadline_ms:
            return finish(verified, asked, found, level)
        await asyncio.sleep(settings[RETRY_MS] / 1000)
        verified, asked = begin(broker, producer, sequences, level, is_required=is_required)
        if not asked:
            return verified
        codes = broker.transactions.verify(*producer, list(asked), add=level is Level.TV2)
