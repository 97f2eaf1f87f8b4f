"""Requests that no transcript covers: batches of brokers, responses without a coordinator, invalid input."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
)
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.transactions.outcome import Caller, TopicPartition
from barnabas.transactions.responses import early, refusal, turn_into_error
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.states import BEFORE, BY_LABEL, State
from barnabas.transactions.timing import ENDED_PER_TURN, IDS_PER_TURN

from .host import Host, durable

TOPICS = {"t": 3}
Asked = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic


@pytest.fixture
def host() -> Host:
    return Host(topics=TOPICS)


def begin(host: Host, name: str, timeout_ms: int = 60_000) -> tuple[int, int]:
    answer: Any = host.ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=timeout_ms), 4)
    assert answer.error_code == ErrorCode.NONE
    return answer.producer_id, answer.producer_epoch


def asked(name: str, producer: tuple[int, int], *partitions: int, verify_only: bool = False) -> Asked:
    topics = [Topic(name="t", partitions=list(partitions))]
    return Asked(
        transactional_id=name,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=verify_only,
        topics=topics,
    )


def codes(answer: Message) -> dict[tuple[str, int], str]:
    assert isinstance(answer, AddPartitionsToTxnResponse)
    return {
        (result.transactional_id, partition.partition_index): ErrorCode(partition.partition_error_code).name
        for result in answer.results_by_transaction
        for topic in result.topic_results
        for partition in topic.results_by_partition
    }


# Batches


def test_a_batch_adds_and_verifies_for_each_of_many_ids(host: Host) -> None:
    one, two = begin(host, "one"), begin(host, "two")
    batch = [
        asked("one", one, 0, 1),
        asked("two", (two[0], 5), 0),
        asked("three", one, 0),
        asked("two", two, 0, verify_only=True),
        asked("one", one, 0, 2, verify_only=True),
        asked("two", two, 9),
    ]
    answer = host.ask(AddPartitionsToTxnRequest(transactions=batch), 5)
    assert isinstance(answer, AddPartitionsToTxnResponse)
    found = [
        [
            ErrorCode(each.partition_error_code).name
            for topic in result.topic_results
            for each in topic.results_by_partition
        ]
        for result in answer.results_by_transaction
    ]
    assert found == [
        ["NONE", "NONE"],
        ["PRODUCER_FENCED"],
        ["INVALID_PRODUCER_ID_MAPPING"],
        ["TRANSACTION_ABORTABLE"],
        ["NONE", "TRANSACTION_ABORTABLE"],
        ["UNKNOWN_TOPIC_OR_PARTITION"],
    ]  # fmt: skip


def test_an_id_that_a_batch_names_twice_gets_all_its_partitions(host: Host) -> None:
    producer = begin(host, "one")
    batch = [asked("one", producer, 0), asked("one", producer, 1)]
    host.ask(AddPartitionsToTxnRequest(transactions=batch), 4)
    assert list(host.shard.transactions["one"].partitions) == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert durable(host.replayed()) == durable(host.shard)


def test_an_empty_batch_gets_a_response(host: Host) -> None:
    assert host.ask(AddPartitionsToTxnRequest(), 4) == AddPartitionsToTxnResponse()


# Without a coordinator


EARLY: list[tuple[str, Message, int, str | None]] = [
    ("no id", InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1), 4, "INVALID_REQUEST"),
    ("no timeout", InitProducerIdRequest(transactional_id="x"), 4, "INVALID_TRANSACTION_TIMEOUT"),
    ("too long", InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=900_001), 4,
     "INVALID_TRANSACTION_TIMEOUT"),
    ("half an id", InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1, producer_id=4), 4,
     "INVALID_REQUEST"),
    ("half", InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1, producer_epoch=4), 4,
     "INVALID_REQUEST"),
    ("two phases", InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1, enable2_pc=True), 6,
     "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
    ("kept", InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1, keep_prepared_txn=True), 6,
     "UNSUPPORTED_VERSION"),
    ("fine", InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1), 4, None),
    ("end of no id", EndTxnRequest(), 0, "INVALID_REQUEST"),
    ("end", EndTxnRequest(transactional_id="x"), 0, None),
    ("offsets of no id", AddOffsetsToTxnRequest(group_id="g"), 0, "INVALID_REQUEST"),
    ("offsets", AddOffsetsToTxnRequest(transactional_id="x", group_id="g"), 0, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "request_", "version", "error"), EARLY, ids=[row[0] for row in EARLY])
def test_some_requests_need_no_coordinator(
    host: Host, name: str, request_: Message, version: int, error: str | None
) -> None:
    answer: Any = early(request_, version, host.settings, host.image)
    if error is None:
        assert answer is None
    else:
        assert ErrorCode(answer.error_code).name == error
        assert host.ask(request_, version) == answer, "the shard says the same"
        assert not host.log


def test_partitions_that_do_not_exist_need_no_coordinator(host: Host) -> None:
    request = AddPartitionsToTxnRequest(transactions=[asked("", (1, 1), 0, 5), asked("x", (1, 1), 7)])
    answer = early(request, 4, host.settings, host.image)
    assert answer is not None
    assert codes(answer) == {
        ("", 0): "OPERATION_NOT_ATTEMPTED",
        ("", 5): "UNKNOWN_TOPIC_OR_PARTITION",
        ("x", 7): "UNKNOWN_TOPIC_OR_PARTITION",
    }


def test_partitions_that_exist_need_a_coordinator(host: Host) -> None:
    request = AddPartitionsToTxnRequest(transactions=[asked("", (1, 1), 5), asked("x", (1, 1), 0)])
    assert early(request, 4, host.settings, host.image) is None


REFUSED: list[tuple[Message, range]] = [
    (InitProducerIdRequest(transactional_id="x"), range(7)),
    (AddPartitionsToTxnRequest(v3_and_below_topics=[Topic(name="t", partitions=[0])]), range(4)),
    (AddPartitionsToTxnRequest(transactions=[asked("x", (1, 1), 0)]), range(4, 6)),
    (AddOffsetsToTxnRequest(transactional_id="x"), range(5)),
    (EndTxnRequest(transactional_id="x"), range(6)),
    (DescribeTransactionsRequest(transactional_ids=["x", "y"]), range(1)),
    (ListTransactionsRequest(), range(3)),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "versions"), REFUSED, ids=lambda value: type(value).__name__)
def test_every_version_can_be_refused_in_its_own_form(request_: Message, versions: range) -> None:
    for version in versions:
        answer = refusal(request_, ErrorCode.NOT_COORDINATOR, version)
        assert type(answer).decode(answer.encode(version), version) == answer
        assert "NOT_COORDINATOR" in repr(answer)


# Invalid input gets an error, and nothing is written


def bad_requests(producer: tuple[int, int]) -> list[tuple[Message, int, str]]:
    producer_id, epoch = producer
    found: list[tuple[Message, int, str]] = []
    for version in range(5):
        fenced = "PRODUCER_FENCED" if version >= 2 else "INVALID_PRODUCER_EPOCH"
        found += [
            (end(producer_id + 1, epoch), version, "INVALID_PRODUCER_ID_MAPPING"),
            (end(producer_id, epoch + 1), version, fenced),
            (end(producer_id, epoch - 1), version, fenced),
            (end(producer_id, -1), version, fenced),
            (end(-1, epoch), version, "INVALID_PRODUCER_ID_MAPPING"),
            (end(producer_id, 32767), version, fenced),
            (end(producer_id, -32768), version, fenced),
            (offsets(producer_id + 1, epoch), version, "INVALID_PRODUCER_ID_MAPPING"),
            (offsets(producer_id, epoch + 1), version, fenced),
            (offsets(2**63 - 1, 0), version, "INVALID_PRODUCER_ID_MAPPING"),
        ]
    for version in range(3, 7):
        fenced = "PRODUCER_FENCED" if version >= 4 else "INVALID_PRODUCER_EPOCH"
        found += [
            (init(producer_id + 1, epoch), version, fenced),
            (init(producer_id, -2), version, fenced),
            (init(-2, epoch), version, fenced),
            (init(producer_id, epoch + 1), version, fenced),
        ]
    found += [
        (end(producer_id + 1, epoch), 5, "INVALID_PRODUCER_ID_MAPPING"),
        (end(producer_id, epoch + 1), 5, "PRODUCER_FENCED"),
        (end(producer_id, epoch - 1), 5, "PRODUCER_FENCED"),
        (end(producer_id, epoch, committed=True), 5, "INVALID_TXN_STATE"),
        (end(producer_id, epoch, committed=True), 4, "INVALID_TXN_STATE"),
        (end(producer_id, epoch, committed=False), 4, "INVALID_TXN_STATE"),
    ]
    return found


def end(producer_id: int, epoch: int, committed: bool = True) -> Message:
    return EndTxnRequest(
        transactional_id="x", producer_id=producer_id, producer_epoch=epoch, committed=committed
    )


def offsets(producer_id: int, epoch: int) -> Message:
    return AddOffsetsToTxnRequest(
        transactional_id="x", producer_id=producer_id, producer_epoch=epoch, group_id="g"
    )


def init(producer_id: int, epoch: int) -> Message:
    return InitProducerIdRequest(
        transactional_id="x", transaction_timeout_ms=1, producer_id=producer_id, producer_epoch=epoch
    )


def test_bad_input_gets_kafkas_error_and_nothing_is_written(host: Host) -> None:
    begin(host, "x")
    producer = begin(host, "x")
    written, known = len(host.log), durable(host.shard)
    for request, version, error in bad_requests(producer):
        answer: Any = host.ask(request, version)
        assert ErrorCode(answer.error_code).name == error, (request, version)
    assert len(host.log) == written
    assert durable(host.shard) == known


def test_a_request_of_something_else_is_refused(host: Host) -> None:
    with pytest.raises(KafkaError) as refused:
        host.shard.handle(HeartbeatRequest(), Caller(4), host.image, host.now_ms, host.ids)
    assert refused.value.code == ErrorCode.UNSUPPORTED_VERSION


def test_a_state_that_is_never_written_is_refused(host: Host) -> None:
    """Other software may have written it. Apache Kafka fails on it too."""
    producer = begin(host, "x")
    host.shard.transactions["x"].state = State.PREPARE_EPOCH_FENCE
    for request, version in ((end(*producer), 4), (end(*producer), 5), (init(*producer), 4)):
        answer: Any = host.ask(request, version)
        assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


# Time, bounds, settings


def test_many_ids_expire_in_turns(host: Host) -> None:
    for number in range(1200):
        begin(host, f"id-{number}")
    host.new_records.clear()
    host.now_ms += host.settings.id_expiration_ms
    turns = []
    while host.shard.transactions:
        outcomes = host.shard.on_timer(host.now_ms, host.image, host.ids)
        turns.append(sum(len(outcome.records) for outcome in outcomes))
        for outcome in outcomes:
            host.take(outcome)
    assert [count for count in turns if count] == [IDS_PER_TURN] * 6
    assert all(entry.value is None for entry in host.new_records)
    assert host.shard.next_deadline_ms() is None


def test_many_transactions_that_time_out_together_are_aborted_in_turns(host: Host) -> None:
    for number in range(3 * ENDED_PER_TURN):
        producer = begin(host, f"id-{number}")
        host.ask(AddPartitionsToTxnRequest(transactions=[asked(f"id-{number}", producer, 0)]), 4)
    host.now_ms += host.settings.timeout_ms_max
    turns = []
    while (due_ms := host.shard.next_deadline_ms()) is not None and due_ms <= host.now_ms:
        outcomes = host.shard.on_timer(host.now_ms, host.image, host.ids)
        turns.append(len(outcomes))
        for outcome in outcomes:
            host.take(outcome)
    assert [count for count in turns if count] == [ENDED_PER_TURN] * 3
    assert not host.shard._timeouts.ongoing


def test_an_idle_shard_only_checks_expiry(host: Host) -> None:
    producer = begin(host, "x")
    expiry_ms = host.shard.next_deadline_ms()
    assert expiry_ms == host.now_ms + host.settings.id_expiration_check_interval_ms
    host.ask(AddPartitionsToTxnRequest(transactions=[asked("x", producer, 0)]), 4)
    assert host.shard.next_deadline_ms() == host.now_ms + host.settings.abort_check_interval_ms
    host.ask(end(*producer), 5)
    assert host.shard.next_deadline_ms() == expiry_ms


def test_settings_may_change_while_running(host: Host) -> None:
    host.shard.configure(TransactionSettings(timeout_ms_max=10))
    answer: Any = host.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=11), 4)
    assert answer.error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_settings_come_from_those_of_the_node() -> None:
    values = {
        "transaction.max.timeout.ms": 1,
        "transaction.two.phase.commit.enable": True,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 2,
        "transactional.id.expiration.ms": 3,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 4,
    }
    assert TransactionSettings.of(values) == TransactionSettings(1, True, 2, 3, 4)


def test_a_list_does_not_need_a_valid_state_to_be_refused_for_its_pattern(host: Host) -> None:
    begin(host, "x")
    answer: Any = host.ask(ListTransactionsRequest(transactional_id_pattern="(", state_filters=["No"]), 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert not answer.transaction_states


def test_every_state_has_a_label_and_predecessors() -> None:
    assert set(BY_LABEL.values()) == set(State) == set(BEFORE)


def test_a_response_whose_records_are_lost_becomes_an_error(host: Host) -> None:
    producer = begin(host, "x")
    lost = KafkaError(ErrorCode.NOT_COORDINATOR)
    batch = [asked("x", producer, 0), asked("x", (1, 1), 1)]
    for request, version in (
        (InitProducerIdRequest(transactional_id="y", transaction_timeout_ms=1), 4),
        (AddPartitionsToTxnRequest(transactions=batch), 4),
        (offsets(*producer), 3),
        (end(*producer), 5),
        (DescribeTransactionsRequest(transactional_ids=["x"]), 0),
        (ListTransactionsRequest(), 2),
    ):
        answer: Any = host.ask(request, version)
        turn_into_error(answer, lost)
        assert "NOT_COORDINATOR" in repr(answer)
        assert "producer_id=10" not in repr(answer), "nobody goes on with an id that is not in the log"
        if isinstance(answer, AddPartitionsToTxnResponse):
            assert "error_code=49" in repr(answer), "what was refused is refused for its own reason"
