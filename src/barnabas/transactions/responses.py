"""Responses in the form of the request's version, and those that need no coordinator.

In: requests, errors. Out: responses. Clients that do not know PRODUCER_FENCED get INVALID_PRODUCER_EPOCH.
`early` is the response that Apache Kafka gives before it looks up the coordinator.
Does not know: transactions, authorization.
"""

from __future__ import annotations

from typing import Any

from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from barnabas.transactions import adding, beginning
from barnabas.transactions.listing import described
from barnabas.transactions.records import NO_PRODUCER_ID
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.transaction import NO_PRODUCER_EPOCH

FENCED_SINCE: dict[type[Message], int] = {
    InitProducerIdRequest: 4,
    AddPartitionsToTxnRequest: 2,
    AddOffsetsToTxnRequest: 2,
    EndTxnRequest: 2,
}


def refusal(request: Message, code: int, version: int) -> Message:
    """The response to a request of one transaction that failed as a whole."""
    code = error_for(request, code, version)
    if isinstance(request, InitProducerIdRequest):
        return InitProducerIdResponse(
            error_code=code, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
        )
    if isinstance(request, AddPartitionsToTxnRequest):
        return adding.response(
            [adding.result(requested, code) for requested in adding.requested_transactions(request, version)],
            version,
        )
    if isinstance(request, AddOffsetsToTxnRequest):
        return AddOffsetsToTxnResponse(error_code=code)
    if isinstance(request, EndTxnRequest):
        return EndTxnResponse(error_code=code)
    if isinstance(request, ListTransactionsRequest):
        return ListTransactionsResponse(error_code=code)
    assert isinstance(request, DescribeTransactionsRequest), type(request)
    state = DescribeTransactionsResponse.TransactionState
    return DescribeTransactionsResponse(
        transaction_states=[
            state(transactional_id=each, error_code=code) for each in request.transactional_ids
        ]
    )


def error_for(request: Message, code: int, version: int) -> int:
    if code == ErrorCode.PRODUCER_FENCED and version < FENCED_SINCE.get(type(request), 0):
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code


def early(
    request: Message, version: int, settings: TransactionSettings, image: MetadataImage
) -> Message | None:
    """The response to a request (of one transaction) that needs no coordinator, or None."""
    if isinstance(request, InitProducerIdRequest):
        try:
            beginning.check(request, settings)
        except KafkaError as error:
            return refusal(request, error.code, version)
    elif isinstance(request, AddPartitionsToTxnRequest):
        return early_for_partitions(request, version, image)
    elif isinstance(request, AddOffsetsToTxnRequest | EndTxnRequest):
        if not request.transactional_id:
            return refusal(request, ErrorCode.INVALID_REQUEST, version)
    elif isinstance(request, DescribeTransactionsRequest) and not any(request.transactional_ids):
        states = [described(each, None) for each in request.transactional_ids]
        return DescribeTransactionsResponse(transaction_states=states)
    return None


def early_for_partitions(
    request: AddPartitionsToTxnRequest, version: int, image: MetadataImage
) -> AddPartitionsToTxnResponse | None:
    results = []
    all_requested = adding.requested_transactions(request, version)
    for requested in all_requested:
        partitions = adding.partitions_of(requested)
        errors = adding.refused(partitions, image.topics, version)
        if errors is not None:
            results.append(adding.result(requested, errors))
        elif not requested.transactional_id:
            results.append(adding.result(requested, ErrorCode.INVALID_REQUEST))
    return adding.response(results, version) if len(results) == len(all_requested) else None


def turn_into_error(response: Any, error: KafkaError) -> None:
    """Turn a prepared response into an error, because the records it depends on are lost."""
    code = error.code
    if isinstance(response, AddPartitionsToTxnResponse):
        results = [topic for each in response.results_by_transaction for topic in each.topic_results]
        for topic in (*results, *response.results_by_topic_v3_and_below):
            for partition in topic.results_by_partition:
                partition.partition_error_code = partition.partition_error_code or code
    elif isinstance(response, DescribeTransactionsResponse):
        response.transaction_states = [
            DescribeTransactionsResponse.TransactionState(
                transactional_id=each.transactional_id, error_code=each.error_code or code
            )
            for each in response.transaction_states
        ]
    else:
        response.error_code = response.error_code or code
        if isinstance(response, InitProducerIdResponse | EndTxnResponse):
            response.producer_id, response.producer_epoch = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        elif isinstance(response, ListTransactionsResponse):
            response.transaction_states = []
