"""Transactional batches in a produce request: found and verified before anything is appended.

In: a request. Out: the error that refuses it as a whole, or the verification for the batch of each partition.
Only headers of batches are read; the append validates the batches.
Does not know: appending, responses.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING

from barnabas.broker.produce.verifying import Level, NotVerified, Producer, Verified, verify
from barnabas.metadata.steps import Steps, at_once
from barnabas.protocol import ApiKey, ErrorCode, KafkaError
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.records.batch import BATCH_OVERHEAD, MAGIC, MAGIC_AT, TRANSACTIONAL_FLAG, BatchHeader

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.partitions.partition import Partition
    from barnabas.replication.verification import Verification

TOPIC_IDS_SINCE = 13
TV1_SINCE = 11
TV2_SINCE = 12
FLAGS_AT = 22  # the lower byte of the attributes
# Producers do not expect these errors of a partition and would fail. NOT_ENOUGH_REPLICAS makes them retry.
RETRIED = (
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)

MISSING_TRANSACTIONAL_ID = KafkaError(
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch needs a transactional id"
)
Data = ProduceRequest.TopicProduceData


def is_transactional(records: memoryview | None) -> bool:
    return (
        records is not None
        and len(records) >= BATCH_OVERHEAD
        and bool(records[FLAGS_AT] & TRANSACTIONAL_FLAG)
        and records[MAGIC_AT] == MAGIC
    )


def has_transactions(request: ProduceRequest) -> bool:
    """Whether a request has a transactional batch."""
    return at_once(find_transactions(request))


def find_transactions(request: ProduceRequest) -> Steps[bool]:
    for data in request.topic_data:
        for given in data.partition_data:
            if is_transactional(given.records):
                return True
            yield
    return False


def batches(request: ProduceRequest) -> list[tuple[Data, int, BatchHeader]]:
    """The transactional batches: topic, partition, header."""
    found = []
    for data in request.topic_data:
        for given in data.partition_data:
            records = given.records
            if records is not None and is_transactional(records):
                header = BatchHeader(records)
                if header.producer_id >= 0:
                    found.append((data, given.index, header))
    return found


def missing_transactional_id(request: ProduceRequest) -> KafkaError | None:
    """The error for transactional batches in a request that has no transactional id; None without any."""
    return MISSING_TRANSACTIONAL_ID.copy() if has_transactions(request) else None


def verify_request(
    request: ProduceRequest, transactional_id: str, context: RequestContext
) -> Verified | Awaitable[Verified]:
    """Verify the transactional batches of a request (see `verifying`). KafkaError refuses the request as a
    whole."""
    found = batches(request)
    if len({(header.producer_id, header.producer_epoch) for _, _, header in found}) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING, "the batches of one transaction are of several producers"
        )
    version = context.version
    partitions = context.broker.partitions
    sequences: dict[Partition, int] = {}
    rights = context.rights
    for data, index, header in found:
        try:
            if rights is not None and not may_write(data, context, rights):
                continue  # the append reports it; nothing is added to the transaction
            if version < TOPIC_IDS_SINCE:
                partition = partitions.leader(data.name, index)
            else:
                partition = partitions.leader_by_id(data.topic_id, index)
        except KafkaError:
            continue  # the append reports the error
        sequences[partition] = header.base_sequence
    if not sequences:
        return {}
    producer = Producer(transactional_id, found[0][2].producer_id, found[0][2].producer_epoch)
    level = level_of(version)
    verified = verify(context.broker, producer, sequences, level, retries=level is Level.TV2)
    if isinstance(verified, dict):
        return translated(verified, level)
    if not context.owns_frame:
        copy_out_of_arena(request)
    return translated_later(verified, level)


def may_write(data: Data, context: RequestContext, rights: Rights) -> bool:
    name = data.name
    if context.version >= TOPIC_IDS_SINCE:
        found = context.broker.image.topics.by_id.get(data.topic_id)
        name = found.name if found is not None else ""
    return rights.allow_write(name, ApiKey.PRODUCE)


def level_of(version: int) -> Level:
    if version >= TV2_SINCE:
        return Level.TV2
    return Level.TV1 if version >= TV1_SINCE else Level.TV0


async def translated_later(verified: Awaitable[Verified], level: Level) -> Verified:
    return translated(await verified, level)


def translated(verified: Verified, level: Level) -> Verified:
    """Turn errors of the coordinator into errors that make a producer retry."""
    return {partition: as_producers_know(found, level) for partition, found in verified.items()}


def as_producers_know(found: Verification | NotVerified, level: Level) -> Verification | NotVerified:
    if isinstance(found, NotVerified) and (
        found.code in RETRIED or (found.code == ErrorCode.CONCURRENT_TRANSACTIONS and level is not Level.TV2)
    ):
        return NotVerified(
            ErrorCode.NOT_ENOUGH_REPLICAS, f"the transaction cannot be verified now: {found.code.name}"
        )
    return found


def copy_out_of_arena(request: ProduceRequest) -> None:
    """Copy the batches of a request that outlives this turn of the loop: the arena will be overwritten."""
    for data in request.topic_data:
        for given in data.partition_data:
            if given.records is not None:
                given.records = memoryview(bytearray(given.records))
