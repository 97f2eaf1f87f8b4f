"""AddPartitionsToTxn and AddOffsetsToTxn: add partitions to a transaction; the first one begins it.

In: the state of the id, partitions, the producer. Out: the value of a record, or None if nothing changes. For
a verification (KIP-890): which partitions are in the transaction.
Does not know: the shard, other ids, why a broker sent the request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from barnabas.metadata.topics import TopicsImage
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.transaction_state import TransactionLogValue
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.transactions.outcome import TopicPartition
from barnabas.transactions.states import State
from barnabas.transactions.transaction import EPOCH_BUMPS_SINCE, Transaction

BATCHED_SINCE = 4  # of AddPartitionsToTxn: a request may hold many transactions, and only brokers send it
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

RequestedTransaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult
Errors = Mapping[TopicPartition, int]


def requested_transactions(request: AddPartitionsToTxnRequest, version: int) -> list[RequestedTransaction]:
    """The transactions of a request, in any version."""
    if version >= BATCHED_SINCE:
        return request.transactions
    return [
        RequestedTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
    ]


def client_version(version: int) -> int:
    """The transaction version that a version of AddPartitionsToTxn implies."""
    return EPOCH_BUMPS_SINCE if version >= BATCHED_SINCE else 0


def partitions_of(requested: RequestedTransaction) -> dict[TopicPartition, None]:
    return {
        TopicPartition(topic.name, partition): None
        for topic in requested.topics
        for partition in topic.partitions
    }


def refused(
    partitions: Collection[TopicPartition], topics: TopicsImage, version: int
) -> dict[TopicPartition, int] | None:
    """The errors if one of the partitions cannot be written to; then none is added. Clients may not add
    partitions of Kafka's internal topics; brokers do, for offsets."""
    errors: dict[TopicPartition, int] = {}
    for partition in partitions:
        if version < BATCHED_SINCE and partition.topic in INTERNAL_TOPICS:
            errors[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topics.partition(*partition) is None:
            errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if not errors:
        return None
    return {partition: errors.get(partition, ErrorCode.OPERATION_NOT_ATTEMPTED) for partition in partitions}


def check(transaction: Transaction | None, producer_id: int, producer_epoch: int) -> Transaction:
    """The transaction, if partitions may be added to it now; else KafkaError."""
    if transaction is not None and transaction.state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return check_owner(transaction, producer_id, producer_epoch)


def check_owner(transaction: Transaction | None, producer_id: int, producer_epoch: int) -> Transaction:
    if transaction is None or transaction.producer_id != producer_id:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if transaction.producer_epoch != producer_epoch:
        raise KafkaError(ErrorCode.PRODUCER_FENCED)
    return transaction


def add(
    transaction: Transaction, partitions: Iterable[TopicPartition], client_version: int, now_ms: int
) -> TransactionLogValue | None:
    """The value of the record; None if all partitions are in the transaction already."""
    known = transaction.partitions
    new = [partition for partition in partitions if partition not in known]
    is_ongoing = transaction.state is State.ONGOING
    if is_ongoing and not new:
        return None
    return transaction.value(
        State.ONGOING,
        now_ms,
        partitions=[*known, *new],
        transaction_start_timestamp_ms=transaction.start_ms if is_ongoing else now_ms,
        client_transaction_version=client_version,
    )


def verify(
    transaction: Transaction | None,
    producer_id: int,
    producer_epoch: int,
    partitions: Iterable[TopicPartition],
) -> dict[TopicPartition, int]:
    known = check_owner(transaction, producer_id, producer_epoch)
    if known.state.is_prepared:
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)
    return {
        partition: ErrorCode.NONE if partition in known.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for partition in partitions
    }


def result(requested: RequestedTransaction, errors: Errors | int) -> Result:
    """The result of one transaction: each partition once with its error, or one error for all as
    requested."""
    if isinstance(errors, int):
        named = [
            (topic.name, [(number, errors) for number in topic.partitions]) for topic in requested.topics
        ]
    else:
        topics: dict[str, list[tuple[int, int]]] = {}
        for topic_partition, code in errors.items():
            topics.setdefault(topic_partition.topic, []).append((topic_partition.partition, code))
        named = list(topics.items())
    return Result(
        transactional_id=requested.transactional_id,
        topic_results=[
            TopicResult(
                name=name,
                results_by_partition=[
                    PartitionResult(partition_index=number, partition_error_code=code)
                    for number, code in numbers
                ],
            )
            for name, numbers in named
        ],
    )


def response(results: list[Result], version: int) -> AddPartitionsToTxnResponse:
    if version >= BATCHED_SINCE:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[topic for result in results for topic in result.topic_results]
    )
