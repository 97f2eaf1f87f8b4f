"""Producer ids and transactions of the core on a scripted coordinator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from barnabas.client.core.errors import RequestTimeout
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.transaction import Fenced, Transaction
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

from .scripted import SILENCE, ScriptedNetwork, cluster_of, metadata, run

WHERE = TopicPartition("t", 3)
NOT_ATTEMPTED = ErrorCode.OPERATION_NOT_ATTEMPTED


class Coordinator:
    """Answers with the codes in `codes`, kind by kind of request, then without error."""

    def __init__(self, codes: dict[type[Message], list[Any]]) -> None:
        self._codes: dict[type[Message], Iterator[Any]] = {kind: iter(each) for kind, each in codes.items()}
        self.network = ScriptedNetwork(
            {
                1: {
                    MetadataRequest: metadata(dict, (1,)),
                    FindCoordinatorRequest: self._find,
                    **dict.fromkeys(
                        (
                            InitProducerIdRequest,
                            AddPartitionsToTxnRequest,
                            AddOffsetsToTxnRequest,
                            TxnOffsetCommitRequest,
                            EndTxnRequest,
                        ),
                        self._answer,
                    ),
                }
            }
        )

    def _find(self, request: FindCoordinatorRequest, version: int) -> FindCoordinatorResponse:
        found = [
            FindCoordinatorResponse.Coordinator(key=key, node_id=1, host="broker", port=1)
            for key in request.coordinator_keys
        ]
        return FindCoordinatorResponse(coordinators=found)

    def _answer(self, request: Any, version: int) -> Any:
        code = next(self._codes.get(type(request), iter(())), 0)
        if code is None or code is SILENCE:
            return code
        if isinstance(request, InitProducerIdRequest):
            return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=2)
        if isinstance(request, AddOffsetsToTxnRequest):
            return AddOffsetsToTxnResponse(error_code=code)
        if isinstance(request, EndTxnRequest):
            return EndTxnResponse(error_code=code)
        if isinstance(request, TxnOffsetCommitRequest):
            nested = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
            partition = nested.TxnOffsetCommitResponsePartition(partition_index=3, error_code=code)
            return TxnOffsetCommitResponse(topics=[nested(name="t", partitions=[partition])])
        assert isinstance(request, AddPartitionsToTxnRequest)
        topic = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(name="t")
        topic.results_by_partition = [
            AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                partition_index=index, partition_error_code=code if index == 3 or not code else NOT_ATTEMPTED
            )
            for each in request.v3_and_below_topics
            for index in each.partitions
        ]
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])

    def transaction(self, transactional_id: str | None = "id") -> Transaction:
        made = Transaction(cluster_of(self.network), transactional_id, timeout_ms=1_000, wait_ms=60_000)
        run(made.init())
        return made


def test_an_idempotent_producer_asks_any_broker_and_has_no_transaction() -> None:
    coordinator = Coordinator({InitProducerIdRequest: [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]})
    transaction = coordinator.transaction(None)
    assert (transaction.producer_id, transaction.producer_epoch) == (7, 2)
    run(transaction.add(WHERE))
    run(transaction.end(commit=True))
    kinds = {type(request) for _, request, _ in coordinator.network.seen}
    assert not kinds & {FindCoordinatorRequest, AddPartitionsToTxnRequest, EndTxnRequest}


def test_a_partition_is_added_once_and_the_next_transaction_adds_it_again() -> None:
    coordinator = Coordinator({})
    transaction = coordinator.transaction()
    for _ in range(2):
        run(transaction.add(WHERE))
        run(transaction.add(WHERE))
        run(transaction.end(commit=True))
        run(transaction.end(commit=True))
    assert len(coordinator.network.requests(AddPartitionsToTxnRequest)) == 2
    assert len(coordinator.network.requests(EndTxnRequest)) == 2


def test_partitions_are_added_with_one_request() -> None:
    coordinator = Coordinator({})
    transaction = coordinator.transaction()
    run(transaction.add_all([WHERE, TopicPartition("u", 0), TopicPartition("t", 1)]))
    run(transaction.add_all([WHERE, TopicPartition("u", 1)]))
    asked = [
        [(topic.name, topic.partitions) for topic in request.v3_and_below_topics]
        for _, request in coordinator.network.requests(AddPartitionsToTxnRequest)
    ]
    assert asked == [[("t", [1, 3]), ("u", [0])], [("u", [1])]]


def test_of_several_partitions_the_one_that_is_refused_is_told() -> None:
    coordinator = Coordinator({AddPartitionsToTxnRequest: [ErrorCode.TOPIC_AUTHORIZATION_FAILED]})
    transaction = coordinator.transaction()
    with pytest.raises(KafkaError) as caught:
        run(transaction.add_all([TopicPartition("t", 1), WHERE]))
    assert caught.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    run(transaction.add_all([WHERE]))
    assert len(coordinator.network.requests(AddPartitionsToTxnRequest)) == 2


@pytest.mark.parametrize(
    "trouble",
    [ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, None],
    ids=str,
)
def test_what_passes_is_tried_again(trouble: ErrorCode | None) -> None:
    coordinator = Coordinator({AddPartitionsToTxnRequest: [trouble, trouble]})
    run(coordinator.transaction().add(WHERE))
    assert len(coordinator.network.requests(AddPartitionsToTxnRequest)) == 3


@pytest.mark.parametrize("code", [ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH])
@pytest.mark.parametrize("kind", [AddPartitionsToTxnRequest, TxnOffsetCommitRequest, EndTxnRequest])
def test_a_fenced_producer_learns_it_at_once(code: ErrorCode, kind: type[Message]) -> None:
    coordinator = Coordinator({kind: [code]})
    transaction = coordinator.transaction()
    with pytest.raises(Fenced, match="another attempt has taken over id"):
        run(transaction.add(WHERE))
        run(transaction.commit_offset("g", WHERE, 5, ""))
        run(transaction.end(commit=True))
    assert coordinator.network.pauses == []


def test_an_error_that_will_not_pass_is_told_at_once() -> None:
    coordinator = Coordinator({EndTxnRequest: [ErrorCode.INVALID_TXN_STATE]})
    transaction = coordinator.transaction()
    run(transaction.add(WHERE))
    with pytest.raises(KafkaError) as caught:
        run(transaction.end(commit=True))
    assert caught.value.code == ErrorCode.INVALID_TXN_STATE
    assert coordinator.network.pauses == []


def test_a_coordinator_that_stays_silent_is_given_up() -> None:
    coordinator = Coordinator({EndTxnRequest: [SILENCE] * 9})
    transaction = coordinator.transaction()
    run(transaction.add(WHERE))
    with pytest.raises(RequestTimeout):
        run(transaction.end(commit=False))
    assert len(coordinator.network.requests(EndTxnRequest)) == 2
