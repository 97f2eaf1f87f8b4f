"""Verification of a producer's partitions by a transaction coordinator on another broker (KIP-890).

In: the broker that coordinates, the producer, the partitions. Out: an error code for each partition, from an
AddPartitionsToTxn response. If the broker cannot be reached, the code is one that producers retry.
Does not know: what the result is used for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.quorum import lanes

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.transactions.outcome import TopicPartition

Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic


async def verify_remotely(
    broker: Broker,
    coordinator: int,
    owner: tuple[str, int, int],
    partitions: Sequence[TopicPartition],
    add: bool,
) -> dict[TopicPartition, int]:
    """Add the partitions to the transaction (`add`), or check that they are in it."""
    topics: dict[str, list[int]] = {}
    for topic_partition in partitions:
        topics.setdefault(topic_partition.topic, []).append(topic_partition.partition)
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
        response = await broker.others.send_request(coordinator, request, lanes.VERIFICATION)
    except KafkaError:
        return dict.fromkeys(partitions, int(ErrorCode.NETWORK_EXCEPTION))
    if response.error_code:
        return dict.fromkeys(partitions, int(ErrorCode.INVALID_TXN_STATE))
    return codes_in(response, partitions)


def codes_in(
    response: AddPartitionsToTxnResponse, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    codes = {
        (topic.name, partition.partition_index): partition.partition_error_code
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for partition in topic.results_by_partition
    }
    return {
        topic_partition: codes.get(
            (topic_partition.topic, topic_partition.partition), int(ErrorCode.UNKNOWN_SERVER_ERROR)
        )
        for topic_partition in partitions
    }
