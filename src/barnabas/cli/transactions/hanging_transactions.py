"""Finds hanging transactions: open on a partition for too long, and unknown to every coordinator.

In: an Admin, the scope of the search, the longest time that a transaction may run. Out: a row for each. A
coordinator knows an open transaction if it has the partition in the transaction of the producer's id.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.cli.frame.parsing import ToolError
from barnabas.cli.frame.progress import progress
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.transactions import ActiveProducer
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

HEADERS = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)
PARTITIONS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Search:
    topic: str | None
    partition: int | None
    broker_id: int | None
    timeout_ms_max: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    where: TopicPartition
    producer: ActiveProducer


async def find_hanging(admin: Admin, search: Search) -> list[tuple[str, ...]]:
    now_ms = int(time.time() * 1000)
    open_long = await open_transactions(admin, search, now_ms)
    hanging = await unknown_to_coordinators(admin, open_long)
    return [row(each, now_ms) for each in hanging]


async def partitions_to_search(admin: Admin, search: Search) -> list[TopicPartition]:
    if search.topic is not None and search.partition is not None:
        return [TopicPartition(search.topic, search.partition)]
    names = [search.topic] if search.topic else [topic.name for topic in await admin.list_topics()]
    try:
        described = await admin.describe_topics(names)
    except KafkaError as error:
        raise ToolError(f"Failed to describe {len(names)} topics: {error.message}") from None
    return [
        TopicPartition(topic.name, each.index)
        for topic in described
        for each in topic.partitions
        if search.broker_id is None or search.broker_id in each.replicas
    ]


async def open_transactions(admin: Admin, search: Search, now_ms: int) -> list[OpenTransaction]:
    """Transactions that are open for longer than allowed."""
    partitions = await partitions_to_search(admin, search)
    found: list[OpenTransaction] = []
    with progress("partitions", len(partitions)) as advance:
        for start in range(0, len(partitions), PARTITIONS_AT_ONCE):
            some = partitions[start : start + PARTITIONS_AT_ONCE]
            for where, result in (await admin.describe_producers(some, search.broker_id)).items():
                if isinstance(result, KafkaError):
                    raise ToolError(f"Failed to describe producers of {where}: {result.message}")
                found += [
                    OpenTransaction(where, producer)
                    for producer in result
                    if producer.transaction_start is not None
                    and now_ms - producer.last_timestamp > search.timeout_ms_max
                ]
            advance(len(some))
    return found


async def unknown_to_coordinators(
    admin: Admin, candidates: Sequence[OpenTransaction]
) -> list[OpenTransaction]:
    if not candidates:
        return []
    wanted = sorted({each.producer.producer_id for each in candidates})
    listed = await admin.list_transactions(producer_ids=wanted)
    ids = {each.producer_id: each.transactional_id for each in listed}
    described = await admin.describe_transactions(ids.values())
    known: set[tuple[int, TopicPartition]] = set()
    for producer_id, transactional_id in ids.items():
        description = described[transactional_id]
        if not isinstance(description, KafkaError):
            known |= {(producer_id, where) for where in description.partitions}
        elif description.code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise ToolError(f"Failed to describe {len(ids)} transactions: {description.message}")
    return [each for each in candidates if (each.producer.producer_id, each.where) not in known]


def row(found: OpenTransaction, now_ms: int) -> tuple[str, ...]:
    producer = found.producer
    return (
        found.where.topic,
        str(found.where.partition),
        str(producer.producer_id),
        str(producer.producer_epoch),
        str(producer.coordinator_epoch),
        str(producer.transaction_start),
        str(producer.last_timestamp),
        str((now_ms - producer.last_timestamp) // 60_000),
    )
