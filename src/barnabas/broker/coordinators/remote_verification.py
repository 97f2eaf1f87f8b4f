"""A partition asks the coordinator of a transaction on another broker (AddPartitionsToTxn, KIP-890).

In: the broker that coordinates, the producer, the partitions. Out: an error code for each partition; a broker
that cannot be reached is an error that producers try again.
Does not know: what the answer is good for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.transactions.outcome import TopicPartition

Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
LANE = "verifying"


async def verify_remotely(
    broker: Broker,
    coordinator: int,
    owner: tuple[str, int, int],
    partitions: Sequence[TopicPartition],
    add: bool,
) -> dict[TopicPartition, int]:
    """`add` brings the partitions into the transaction, else they are only looked up in it."""
    topics: dict[str, list[int]] = {}
    for where in partitions:
        topics.setdefault(where.topic, []).append(where.partition)
    transactional_id, producer_id, producer_epoch = owner
    request = AddPartitionsToTxnRequest(
        transactions=[
            Transaction(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                verify_only=not add,
                topics=[Topic(name=name, partitions=indexes) for name, indexes in topics.items()],
            )
        ]
    )
    try:
        answer = await broker.others.ask(coordinator, request, LANE)
    except KafkaError:
        return dict.fromkeys(partitions, int(ErrorCode.NETWORK_EXCEPTION))
    if answer.error_code:
        return dict.fromkeys(partitions, int(ErrorCode.INVALID_TXN_STATE))
    return codes_in(answer, partitions)


def codes_in(
    answer: AddPartitionsToTxnResponse, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    codes = {
        (topic.name, partition.partition_index): partition.partition_error_code
        for transaction in answer.results_by_transaction
        for topic in transaction.topic_results
        for partition in topic.results_by_partition
    }
    return {
        where: codes.get((where.topic, where.partition), int(ErrorCode.UNKNOWN_SERVER_ERROR))
        for where in partitions
    }
