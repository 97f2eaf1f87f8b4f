"""Answers of the transaction coordinator that say no: one error for everything that a request asked.

In: a request that was not handled (`refusal`), or an answer whose records could not be written after all
(`spoil`). Out: the response in the shape that its API has for errors.
Does not know: why; errors of single partitions or ids are the shard's.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol import KafkaError, Message
from barnabas.protocol.apis import response_class
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.end_txn import EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse

BATCHED_SINCE = 4
NO_ID = -1

Result = AddPartitionsToTxnResponse.AddPartitionsToTxnResult
TopicResult = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
PartitionResult = AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult


def refusal(request: Message, error: KafkaError, version: int) -> Message:
    """The answer to a request that is not handled at all."""
    if isinstance(request, AddPartitionsToTxnRequest):
        return add_partitions(request, error, version)
    if isinstance(request, DescribeTransactionsRequest):
        return DescribeTransactionsResponse(
            transaction_states=[
                DescribeTransactionsResponse.TransactionState(
                    transactional_id=transactional_id, error_code=error.code
                )
                for transactional_id in request.transactional_ids
            ]
        )
    key = request.schema.key
    assert key is not None
    response: Any = response_class(key)()
    response.error_code = error.code
    if isinstance(response, InitProducerIdResponse):
        response.producer_epoch = NO_ID
    assert isinstance(response, Message)
    return response


def add_partitions(
    request: AddPartitionsToTxnRequest, error: KafkaError, version: int
) -> AddPartitionsToTxnResponse:
    if version < BATCHED_SINCE:
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=topic_results(request.v3_and_below_topics, error)
        )
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            Result(
                transactional_id=transaction.transactional_id,
                topic_results=topic_results(transaction.topics, error),
            )
            for transaction in request.transactions
        ]
    )


def topic_results(
    topics: list[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic], error: KafkaError
) -> list[TopicResult]:
    return [
        TopicResult(
            name=topic.name,
            results_by_partition=[
                PartitionResult(partition_index=partition, partition_error_code=error.code)
                for partition in topic.partitions
            ],
        )
        for topic in topics
    ]


def spoil(response: Any, error: KafkaError) -> None:
    """Turn an answer that was ready into one that says no: what it rests on is lost."""
    code = error.code
    if isinstance(response, AddPartitionsToTxnResponse):
        results = [topic for each in response.results_by_transaction for topic in each.topic_results]
        for topic in (*results, *response.results_by_topic_v3_and_below):
            for partition in topic.results_by_partition:
                partition.partition_error_code = partition.partition_error_code or code
    elif isinstance(response, DescribeTransactionsResponse):
        response.transaction_states = [
            DescribeTransactionsResponse.TransactionState(
                transactional_id=described.transactional_id, error_code=described.error_code or code
            )
            for described in response.transaction_states
        ]
    else:
        response.error_code = response.error_code or code
        if isinstance(response, InitProducerIdResponse | EndTxnResponse):
            response.producer_id = response.producer_epoch = NO_ID
