"""Transactions as a producer sees them: begin, write, end, list; and invalid requests."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast
from urllib.request import urlopen

import pytest

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

from .conversation import Conversation
from .transactional import TRANSACTION, TransactionalProducer, end_offset, values_of

STATE_TOPIC = "__transaction_state"
TOPIC_RESOURCE = 2
BOTH = pytest.mark.parametrize("new", [True, False], ids=["new", "old"])


# Finding


@pytest.mark.parametrize("version", range(7))
def test_a_coordinator_of_transactions_is_found_in_every_version(broker: Broker, version: int) -> None:
    with Conversation(broker) as talk:
        if version == 0:
            answer = talk.ask(FindCoordinatorRequest(key="t"), version)
            found = [answer]
        elif version < 4:
            answer = talk.ask(FindCoordinatorRequest(key="t", key_type=TRANSACTION), version)
            found = [answer]
        else:
            request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=["t", "u"])
            found = talk.ask(request, version).coordinators
            assert [each.key for each in found] == ["t", "u"]
        for each in found:
            assert (each.error_code, each.node_id, each.port) == (ErrorCode.NONE, 1, broker.port)


def test_the_transaction_topic_is_created_when_first_needed(tmp_path: Path) -> None:
    overrides = {
        "transaction.state.log.num.partitions": 3,
        "transaction.state.log.segment.bytes": 12_345_678,
    }
    with Broker(tmp_path, overrides=overrides) as broker, Conversation(broker) as talk:
        assert not list(tmp_path.glob(f"{STATE_TOPIC}-*"))
        TransactionalProducer(talk, "t").find()
        wanted = [MetadataRequest.MetadataRequestTopic(name=STATE_TOPIC)]
        [topic] = talk.ask(MetadataRequest(topics=wanted), 12).topics
        assert topic.is_internal
        assert len(topic.partitions) == 3
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name=STATE_TOPIC
        )
        [described] = talk.ask(DescribeConfigsRequest(resources=[resource]), 4).results
        values = {config.name: config.value for config in described.configs}
        assert values["cleanup.policy"] == "compact"
        assert values["compression.type"] == "uncompressed"
        assert values["segment.bytes"] == "12345678"
        assert values["min.insync.replicas"] == "1"
        assert values["unclean.leader.election.enable"] == "false"


def test_the_feature_of_transactions_is_announced(broker: Broker) -> None:
    with Conversation(broker) as talk:
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
        answer = talk.ask(request, 4)
        levels = {each.name: each.max_version_level for each in answer.finalized_features}
        assert levels["transaction.version"] == 2


def test_without_its_topic_transactions_have_no_coordinator(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Conversation(broker) as talk:
        request = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1000)
        assert talk.ask(request, 5).error_code == ErrorCode.NOT_COORDINATOR
        assert talk.ask(ListTransactionsRequest(), 2).transaction_states == []
        [state] = talk.ask(DescribeTransactionsRequest(transactional_ids=["t"]), 0).transaction_states
        assert state.error_code == ErrorCode.NOT_COORDINATOR


# Transactions


@BOTH
def test_committed_records_are_seen_and_aborted_ones_are_not(broker: Broker, topic: str, new: bool) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, f"{topic}-{new}", new=new).begin()
        producer.write(topic, b"kept")
        producer.write(topic, b"kept too", partition=1)
        assert producer.end() == ErrorCode.NONE
        producer.write(topic, b"dropped")
        assert producer.end(commit=False) == ErrorCode.NONE
        producer.write(topic, b"last")
        assert producer.end() == ErrorCode.NONE
        assert values_of(talk, topic) == [b"kept", b"last"]
        assert values_of(talk, topic, 1) == [b"kept too"]
        assert values_of(talk, topic, committed=False) == [b"kept", b"dropped", b"last"]


@BOTH
def test_an_open_transaction_holds_back_the_last_stable_offset(broker: Broker, topic: str, new: bool) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, f"{topic}-{new}", new=new).begin()
        producer.write(topic, b"open")
        assert end_offset(talk, topic, committed=True) == 0
        assert end_offset(talk, topic) == 1
        assert values_of(talk, topic) == []
        producer.end()
        assert end_offset(talk, topic, committed=True) == end_offset(talk, topic) == 2


def test_describe_transactions_shows_every_state(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic).begin(timeout_ms=12_345)
        assert producer.describe().transaction_state == "Empty"
        producer.write(topic, b"x", partition=1)
        state = producer.describe()
        assert (state.transaction_state, state.transaction_timeout_ms) == ("Ongoing", 12_345)
        assert [(each.topic, each.partitions) for each in state.topics] == [(topic, [1])]
        producer.end()
        state = producer.describe()
        assert (state.transaction_state, state.topics) == ("CompleteCommit", [])
        producer.write(topic, b"y")
        producer.end(commit=False)
        assert producer.describe().transaction_state == "CompleteAbort"


def test_a_transaction_is_complete_when_end_txn_responds(broker: Broker, topic: str) -> None:
    """A client that begins the next transaction at once never gets CONCURRENT_TRANSACTIONS."""
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic).begin()
        for number in range(20):
            producer.write(topic, b"%d" % number)
            assert producer.end(commit=bool(number % 2)) == ErrorCode.NONE
            assert producer.describe().transaction_state.startswith("Complete")
        assert values_of(talk, topic) == [b"%d" % number for number in range(1, 20, 2)]


def test_version_2_raises_the_epoch_with_every_end(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic).begin()
        epochs = []
        for _ in range(3):
            producer.write(topic, b"x")
            epochs.append(producer.epoch)
            producer.end()
        assert epochs == [0, 1, 2]


def test_a_new_producer_fences_the_one_before(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        older = TransactionalProducer(talk, topic).begin()
        older.write(topic, b"older")
        newer = TransactionalProducer(talk, topic).begin()
        assert older.end() == ErrorCode.PRODUCER_FENCED
        assert older.send(topic, b"too late") == ErrorCode.INVALID_PRODUCER_EPOCH
        newer.write(topic, b"newer")
        assert newer.end() == ErrorCode.NONE
        assert values_of(talk, topic) == [b"newer"]


def test_a_new_producer_waits_until_the_open_transaction_is_aborted(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        older = TransactionalProducer(talk, topic).begin()
        older.write(topic, b"older")
        newer = TransactionalProducer(talk, topic)
        assert newer.init().error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert newer.init().error_code == ErrorCode.NONE
        assert newer.epoch > older.epoch
        assert end_offset(talk, topic, committed=True) == end_offset(talk, topic)


def test_a_transaction_that_takes_too_long_is_aborted(tmp_path: Path) -> None:
    overrides = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 20}
    with Broker(tmp_path, overrides=overrides) as broker, Conversation(broker) as talk:
        broker.create_topic("t")
        producer = TransactionalProducer(talk, "slow").begin(timeout_ms=50)
        producer.write("t", b"x")
        while producer.describe().transaction_state != "CompleteAbort":
            pass
        assert values_of(talk, "t") == []
        assert end_offset(talk, "t", committed=True) == end_offset(talk, "t")
        assert producer.end() == ErrorCode.INVALID_TXN_STATE  # the abort may have been its own, unanswered
        assert producer.send("t", b"late") == ErrorCode.INVALID_PRODUCER_EPOCH


def test_an_idle_transactional_id_expires(tmp_path: Path) -> None:
    overrides = {
        "transactional.id.expiration.ms": 50,
        "transaction.remove.expired.transaction.cleanup.interval.ms": 20,
    }
    with Broker(tmp_path, overrides=overrides) as broker, Conversation(broker) as talk:
        producer = TransactionalProducer(talk, "silent").begin()
        while producer.describe().error_code != ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            pass
        assert producer.end() == ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_partitions_of_a_deleted_topic_need_no_marker(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic).begin()
        broker.create_topic(f"{topic}-gone")
        producer.write(topic, b"x")
        producer.write(f"{topic}-gone", b"x")
        broker.delete_topic(f"{topic}-gone")
        assert producer.end() == ErrorCode.NONE
        assert producer.describe().transaction_state == "CompleteCommit"
        assert values_of(talk, topic) == [b"x"]


def test_metrics_count_failed_verifications(tmp_path: Path) -> None:
    [port] = free_ports(1)
    with Broker(tmp_path, overrides={"barnabas.metrics.port": port}) as broker, Conversation(broker) as talk:
        broker.create_topic("t")
        producer = TransactionalProducer(talk, "tx", new=False).begin()
        assert producer.send("t", b"x") == ErrorCode.TRANSACTION_ABORTABLE
        with urlopen(f"http://127.0.0.1:{port}/metrics") as page:
            lines = page.read().decode().splitlines()
        shown = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        assert float(shown["kafka_server_addpartitionstotxnmanager_verificationfailurerate_count"]) == 1
        waiting = "kafka_coordinator_transaction_transactionmarkerchannelmanager_unknowndestinationqueuesize"
        assert float(shown[waiting]) == 0
        assert "kafka_server_transaction_coordinator_metrics_partition_load_time_max" in shown


# Lists


def test_transactions_are_listed_by_state_producer_age_and_pattern(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        idle, busy = (TransactionalProducer(talk, f"{topic}-{name}").begin() for name in ("idle", "busy"))
        busy.write(topic, b"x")

        def listed(**filters: object) -> set[str]:
            answer = talk.ask(ListTransactionsRequest(**filters), 2)
            assert answer.error_code == ErrorCode.NONE
            return {each.transactional_id for each in answer.transaction_states} & {idle.id, busy.id}

        assert listed() == {idle.id, busy.id}
        assert listed(state_filters=["Ongoing"]) == {busy.id}
        assert listed(producer_id_filters=[idle.producer_id]) == {idle.id}
        assert listed(duration_filter=1_000_000) == {idle.id}  # it has no start time
        assert listed(transactional_id_pattern=".*idle") == {idle.id}
        answer = talk.ask(ListTransactionsRequest(state_filters=["Ongoing", "Confused"]), 2)
        assert answer.unknown_state_filters == ["Confused"]


def test_descriptions_keep_the_order_of_the_request(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        ids = [f"{topic}-{number}" for number in range(5)]
        for each in ids[::2]:
            TransactionalProducer(talk, each).begin()
        states = talk.ask(DescribeTransactionsRequest(transactional_ids=ids), 0).transaction_states
        assert [state.transactional_id for state in states] == ids
        codes = [state.error_code for state in states]
        assert codes == [0, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND] * 2 + [0]


# Requests between brokers


def wanted(producer: TransactionalProducer, topic: str, *partitions: int, verify: bool = False) -> object:
    return AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=producer.id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        verify_only=verify,
        topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
    )


def test_a_broker_adds_and_verifies_for_many_transactions_at_once(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        producers = [TransactionalProducer(talk, f"{topic}-{number}").begin() for number in range(4)]

        def ask(*transactions: object) -> list[tuple[str, list[int]]]:
            answer = talk.ask(AddPartitionsToTxnRequest(transactions=list(transactions)), 5)
            return [
                (
                    result.transactional_id,
                    [
                        partition.partition_error_code
                        for each in result.topic_results
                        for partition in each.results_by_partition
                    ],
                )
                for result in answer.results_by_transaction
            ]

        added = ask(*(wanted(producer, topic, 0) for producer in producers[:3]))
        assert added == [(producer.id, [ErrorCode.NONE]) for producer in producers[:3]]
        verified = ask(*(wanted(producer, topic, 0, 1, verify=True) for producer in producers))
        missing = ErrorCode.TRANSACTION_ABORTABLE
        assert verified == [
            *((producer.id, [ErrorCode.NONE, missing]) for producer in producers[:3]),
            (producers[3].id, [missing, missing]),
        ]
        stale = producers[0]
        stale.epoch += 1
        assert ask(wanted(stale, topic, 0, verify=True)) == [(stale.id, [ErrorCode.PRODUCER_FENCED])]


def test_a_controller_grants_blocks_of_producer_ids_to_brokers(broker: Broker) -> None:
    controller = SimpleNamespace(port=broker._controller_port)
    with Conversation(cast(Broker, controller)) as talk:

        def ask(broker_id: int, epoch: int) -> AllocateProducerIdsResponse:
            request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
            answer: AllocateProducerIdsResponse = talk.ask(request, 0)
            return answer

        assert ask(7, 0).error_code == ErrorCode.STALE_BROKER_EPOCH
        assert ask(1, 1 << 40).error_code == ErrorCode.STALE_BROKER_EPOCH
        # The test cannot know the broker epoch; it is a small number.
        epoch = next(number for number in range(1000) if not ask(1, number).error_code)
        first, second = ask(1, epoch), ask(1, epoch)
        assert first.producer_id_len == second.producer_id_len == 1000
        assert second.producer_id_start == first.producer_id_start + 1000


# Bad input: Kafka's error, nothing written


def test_an_unknown_id_has_no_transaction(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        known = TransactionalProducer(talk, topic).begin()
        stranger = TransactionalProducer(talk, f"{topic}-stranger", new=False)
        stranger.producer_id, stranger.epoch = known.producer_id, known.epoch
        assert stranger.add(topic, 0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]
        assert stranger.add_offsets("g") == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert stranger.end() == ErrorCode.INVALID_PRODUCER_ID_MAPPING
        assert end_offset(talk, topic) == 0


def test_a_commit_without_a_transaction_is_refused(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic).begin()
        assert producer.end(commit=True) == ErrorCode.INVALID_TXN_STATE
        assert producer.describe().transaction_state == "Empty"


def test_a_wrong_epoch_gets_the_error_of_the_request_version(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic, new=False).begin()
        request = EndTxnRequest(
            transactional_id=topic, producer_id=producer.producer_id, producer_epoch=producer.epoch + 1
        )
        assert talk.ask(request, 1).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        assert talk.ask(request, 4).error_code == ErrorCode.PRODUCER_FENCED


@pytest.mark.parametrize("timeout_ms", [0, -1, 900_001])
def test_a_timeout_that_is_too_large_or_none_is_refused(broker: Broker, timeout_ms: int) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, "timed")
        producer.find()
        assert producer.init(timeout_ms).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_an_empty_transactional_id_is_refused(broker: Broker) -> None:
    with Conversation(broker) as talk:
        request = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
        assert talk.ask(request, 5).error_code == ErrorCode.INVALID_REQUEST


def test_one_unknown_partition_fails_the_whole_request(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic, new=False).begin()
        topics = [
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0, 7]),
            AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="nowhere", partitions=[0]),
        ]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=topic,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=topics,
        )
        results = talk.ask(request, 3).results_by_topic_v3_and_below
        codes = {
            (result.name, each.partition_index): each.partition_error_code
            for result in results
            for each in result.results_by_partition
        }
        assert codes == {
            (topic, 0): ErrorCode.OPERATION_NOT_ATTEMPTED,
            (topic, 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }
        assert producer.describe().transaction_state == "Empty"


def test_records_outside_of_the_transaction_are_refused(broker: Broker, topic: str) -> None:
    """A client that does not speak version 2 must add a partition before it writes."""
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic, new=False).begin()
        assert producer.add(topic, 0) == [ErrorCode.NONE]
        assert producer.send(topic, b"x", partition=1) == ErrorCode.TRANSACTION_ABORTABLE
        assert end_offset(talk, topic, 1) == 0
