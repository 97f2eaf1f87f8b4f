"""Records and offsets of transactions on a running node."""

from __future__ import annotations

import time
import urllib.request
from functools import partial
from pathlib import Path

import pytest

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from barnabas.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from barnabas.records.record import Record, build_batch
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until

from .conversation import Conversation, batch
from .transactional import READ_COMMITTED, TransactionalProducer, end_offset, values_of

BATCHES = 200
Data = ProduceRequest.TopicProduceData
CommitTopic = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
FetchGroup = OffsetFetchRequest.OffsetFetchRequestGroup


def test_many_batches_of_a_transaction_are_taken_in_order(broker: Broker, topic: str) -> None:
    """Most of them take the shortcut."""
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic).begin()
        requests = [(producer.produce_request(topic, b"%d" % number), 12) for number in range(BATCHES)]
        talk.send(*requests)
        answers = [talk.receive().responses[0].partition_responses[0] for _ in requests]
        assert [each.base_offset for each in answers] == list(range(BATCHES))
        assert values_of(talk, topic) == []
        producer.end()
        assert values_of(talk, topic) == [b"%d" % number for number in range(BATCHES)]


def test_the_shortcut_of_a_transaction_ends_with_it(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic, new=False).begin()
        producer.write(topic, b"one")
        assert producer.send(topic, b"two") == ErrorCode.NONE
        producer.end()
        assert producer.send(topic, b"too late") == ErrorCode.TRANSACTION_ABORTABLE
        assert values_of(talk, topic) == [b"one", b"two"]


def test_a_plain_batch_under_a_transactional_id_joins_no_transaction(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic).begin()
        producer.write(topic, b"in it")
        producer.end()
        request = producer.produce_request(topic, b"x")
        request.topic_data[0].partition_data[0].records = batch(b"plain", timestamp=int(time.time() * 1000))
        answer = talk.ask(request, 12).responses[0].partition_responses[0]
        assert (answer.error_code, answer.base_offset) == (ErrorCode.NONE, 2)
        assert producer.describe().transaction_state == "CompleteCommit"
        assert end_offset(talk, topic, committed=True) == 3


def test_a_reader_of_committed_records_is_woken_by_the_marker(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk, Conversation(broker) as reader:
        producer = TransactionalProducer(talk, topic).begin()
        producer.write(topic, b"held back")
        asked = FetchRequest.FetchTopic.FetchPartition(
            partition=0, fetch_offset=0, partition_max_bytes=1 << 20
        )
        request = FetchRequest(
            max_wait_ms=60_000,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=READ_COMMITTED,
            topics=[FetchRequest.FetchTopic(topic=topic, partitions=[asked])],
        )
        reader.send((request, 12))
        producer.write(topic, b"held back too")
        producer.end()
        [found] = reader.receive().responses[0].partitions
        assert (found.last_stable_offset, found.high_watermark) == (3, 3)
        assert bytes(found.records).count(b"held back") == 2


def test_a_batch_of_a_transaction_without_its_id_keeps_the_others_out(broker: Broker, topic: str) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic).begin()
        request = producer.produce_request(topic, b"nameless", partition=1)
        request.transactional_id = None
        plain = Data.PartitionProduceData(index=0, records=batch(b"plain"))
        request.topic_data[0].partition_data.insert(0, plain)
        answer = talk.ask(request, 12)
        codes = [each.error_code for each in answer.responses[0].partition_responses]
        assert codes == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
        assert end_offset(talk, topic) == end_offset(talk, topic, 1) == 0


def test_a_refused_transaction_without_acknowledgement_closes_the_connection(
    broker: Broker, topic: str
) -> None:
    with Conversation(broker) as talk:
        producer = TransactionalProducer(talk, topic, new=False).begin()
        request = producer.produce_request(topic, b"not added")
        request.acks = 0
        talk.send((request, 11), answered=False)
        assert talk.is_closed()


def test_verification_can_be_switched_off(tmp_path: Path) -> None:
    overrides = {"transaction.partition.verification.enable": "false"}
    with Broker(tmp_path / "data", overrides=overrides) as broker, Conversation(broker) as talk:
        broker.create_topic("t")
        producer = TransactionalProducer(talk, "id", new=False).begin()
        assert producer.send("t", b"never added") == ErrorCode.NONE
        assert end_offset(talk, "t", committed=True) == 0


def test_a_transaction_that_hangs_is_ended_by_a_marker_from_outside(tmp_path: Path) -> None:
    """As kafka-transactions.sh aborts a transaction that no coordinator knows."""
    overrides = {"transaction.partition.verification.enable": "false"}
    with Broker(tmp_path / "data", overrides=overrides) as broker, Conversation(broker) as talk:
        broker.create_topic("t")
        producer = TransactionalProducer(talk, "id", new=False).begin()
        producer.send("t", b"hanging")
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            topics=[
                WriteTxnMarkersRequest.WritableTxnMarker.WritableTxnMarkerTopic(
                    name="t", partition_indexes=[0]
                )
            ],
        )
        answer = talk.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
        assert answer.markers[0].topics[0].partitions[0].error_code == ErrorCode.NONE
        assert end_offset(talk, "t", committed=True) == end_offset(talk, "t") == 2
        assert values_of(talk, "t") == []


def is_ended(producer: TransactionalProducer, *, commit: bool) -> bool:
    """Ends the transaction; the previous end may still be in progress."""
    code = producer.end(commit=commit)
    assert code in (ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS)
    return code == ErrorCode.NONE


def is_settled(talk: Conversation, topic: str, partition: int) -> bool:
    """No transaction is open there."""
    return end_offset(talk, topic, partition, committed=True) == end_offset(talk, topic, partition)


def test_transactions_work_with_a_sync_before_each_response(tmp_path: Path) -> None:
    """With a sync before every response, verification takes time too."""
    overrides = {"log.flush.interval.messages": "1"}
    with Broker(tmp_path / "data", overrides=overrides) as broker, Conversation(broker) as talk:
        broker.create_topic("t", partitions=2)
        with_group(talk, "g")
        producer = TransactionalProducer(talk, "id").begin()
        for turn in range(5):
            talk.send(*[(producer.produce_request("t", b"%d" % turn, partition=n % 2), 12) for n in range(6)])
            codes = [talk.receive().responses[0].partition_responses[0].error_code for _ in range(6)]
            assert codes == [ErrorCode.NONE] * 6
            assert commit(producer, "g", "t", turn) == ErrorCode.NONE
            assert offset_of(talk, "g", "t") == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
            wait_until(partial(is_ended, producer, commit=turn % 2 == 0), what=f"the end of turn {turn}")
        wait_until(lambda: offset_of(talk, "g", "t") == (ErrorCode.NONE, 4), what="the offset is committed")
        for partition in (0, 1):
            wait_until(partial(is_settled, talk, "t", partition), what=f"partition {partition} is settled")
            assert values_of(talk, "t", partition) == [b"0"] * 3 + [b"2"] * 3 + [b"4"] * 3


def test_transactions_that_are_open_for_too_long_are_counted(tmp_path: Path) -> None:
    [port] = free_ports(1)
    overrides = {"barnabas.metrics.port": port, "transaction.max.timeout.ms": "60000"}

    def scraped() -> dict[str, str]:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as page:
            lines = page.read().decode().splitlines()
        return dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))

    with Broker(tmp_path / "data", overrides=overrides) as broker, Conversation(broker) as talk:
        broker.create_topic("t")
        producer = TransactionalProducer(talk, "id").begin()
        producer.write("t", b"young")
        assert scraped()["kafka_server_replicamanager_partitionswithlatetransactionscount"] == "0"
        assert scraped()["kafka_server_replicamanager_produceridcount"] == "1"
        producer.end()
        request = producer.produce_request("t", b"x")
        old_ms = int(time.time() * 1000) - 7 * 60_000
        request.topic_data[0].partition_data[0].records = bytes(
            build_batch(
                [Record(timestamp=old_ms, value=b"old")],
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                base_sequence=0,
                transactional=True,
            )
        )
        assert talk.ask(request, 12).responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert scraped()["kafka_server_replicamanager_partitionswithlatetransactionscount"] == "1"


def producers_of(
    talk: Conversation, topic: str
) -> list[DescribeProducersResponse.TopicResponse.PartitionResponse.ProducerState]:
    asked = DescribeProducersRequest.TopicRequest(name=topic, partition_indexes=[0])
    answer = talk.ask(DescribeProducersRequest(topics=[asked]), 0)
    return list(answer.topics[0].partitions[0].active_producers)


def test_open_transactions_outlive_the_expiry_of_producers(tmp_path: Path) -> None:
    overrides = {"producer.id.expiration.ms": "1", "producer.id.expiration.check.interval.ms": "10"}
    with Broker(tmp_path / "data", overrides=overrides) as broker, Conversation(broker) as talk:
        broker.create_topic("t")
        producer = TransactionalProducer(talk, "id").begin()
        producer.write("t", b"open")
        plain = batch(b"x", producer_id=999, epoch=0, sequence=0, timestamp=int(time.time() * 1000))
        given = Data.PartitionProduceData(index=0, records=plain)
        talk.ask(ProduceRequest(acks=1, topic_data=[Data(name="t", partition_data=[given])]), 12)

        def known() -> list[int]:
            return [each.producer_id for each in producers_of(talk, "t")]

        wait_until(lambda: known() == [producer.producer_id], what="the idle producer is forgotten")
        [state] = producers_of(talk, "t")
        assert state.current_txn_start_offset == 0
        producer.end()
        wait_until(lambda: not known(), what="the producer is forgotten once its transaction is over")


def commit(producer: TransactionalProducer, group: str, topic: str, offset: int) -> int:
    partition = CommitTopic.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    request = TxnOffsetCommitRequest(
        transactional_id=producer.id,
        group_id=group,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topics=[CommitTopic(name=topic, partitions=[partition])],
    )
    answer = producer.talk.ask(request, 5 if producer.new else 3)
    code: int = answer.topics[0].partitions[0].error_code
    return code


def offset_of(talk: Conversation, group: str, topic: str, *, stable: bool = True) -> tuple[int, int]:
    asked = FetchGroup.OffsetFetchRequestTopics(name=topic, partition_indexes=[0])
    request = OffsetFetchRequest(groups=[FetchGroup(group_id=group, topics=[asked])], require_stable=stable)
    [found] = talk.ask(request, 9).groups[0].topics[0].partitions
    return found.error_code, found.committed_offset


def with_group(talk: Conversation, group: str) -> None:
    """Until the group has a coordinator."""
    from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest

    while True:
        [found] = talk.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 4).coordinators
        if found.error_code == ErrorCode.NONE and offset_of_is_ready(talk, group):
            return


def offset_of_is_ready(talk: Conversation, group: str) -> bool:
    request = OffsetFetchRequest(groups=[FetchGroup(group_id=group, topics=None)])
    return bool(talk.ask(request, 9).groups[0].error_code == ErrorCode.NONE)


@pytest.mark.parametrize("new", [True, False])
def test_offsets_are_pending_until_the_end_also_after_a_restart(tmp_path: Path, new: bool) -> None:
    with Broker(tmp_path / "data") as broker:
        broker.create_topic("t")
        with Conversation(broker) as talk:
            with_group(talk, "g")
            producer = TransactionalProducer(talk, "id", new=new).begin()
            if not new:
                assert producer.add_offsets("g") == ErrorCode.NONE
            assert commit(producer, "g", "t", 41) == ErrorCode.NONE
            assert offset_of(talk, "g", "t") == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
            assert offset_of(talk, "g", "t", stable=False) == (ErrorCode.NONE, -1)
    with Broker(tmp_path / "data") as broker, Conversation(broker) as talk:
        with_group(talk, "g")
        assert offset_of(talk, "g", "t") == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        producer.talk = talk
        while (code := producer.end()) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert code == ErrorCode.NONE
        assert offset_of(talk, "g", "t") == (ErrorCode.NONE, 41)
