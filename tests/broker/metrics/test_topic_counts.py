"""What counts as a write, a fetch and a failure: as Apache Kafka 4.3.1 counts the same requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.produce import ProduceRequest
from barnabas.records.record import Compression, Record, build_batch

from ..conversation import PRODUCE_VERSION, Conversation
from .test_counted_events import Watched

WRITES = ("totalproducerequests", "failedproducerequests", "bytesin", "messagesin", "bytesrejected")


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with Watched() as broker:
        yield broker


@pytest.fixture(scope="module")
def talk(watched: Watched) -> Iterator[Conversation]:
    with Conversation(watched) as talk:
        yield talk


def create(watched: Watched, topic: str, **settings: str) -> None:
    admin = AdminClient({"bootstrap.servers": watched.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(30)


def counts(watched: Watched, topic: str, names: tuple[str, ...]) -> list[float]:
    return [
        sample.value
        for name in names
        for sample in watched.samples(f"kafka_server_brokertopicmetrics_{name}_total")
        if sample.labels.get("topic") == topic
    ]


def errors(watched: Watched, request: str, error: str) -> float:
    samples = watched.samples("kafka_network_requestmetrics_errors_total")
    return sum(each.value for each in samples if each.labels == {"request": request, "error": error})


def batch(value: bytes = b"x", compression: int = Compression.NONE, **producer: Any) -> bytes:
    return bytes(build_batch([Record(0, 0, None, value)], compression=compression, **producer))


def produce(talk: Conversation, topic: str, records: bytes, *, acks: int = 1, index: int = 0) -> ErrorCode:
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=index, records=records)
    request = ProduceRequest(
        acks=acks, timeout_ms=9_000, topic_data=[data(name=topic, partition_data=[part])]
    )
    answer = talk.ask(request, PRODUCE_VERSION)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def test_bytes_that_the_broker_compresses_count_as_they_came(watched: Watched, talk: Conversation) -> None:
    create(watched, "packed", **{"compression.type": "gzip"})
    sent = batch(b"x" * 900)
    assert produce(talk, "packed", sent) is ErrorCode.NONE
    assert counts(watched, "packed", WRITES) == [1, 0, len(sent), 1, 0]


def test_writes_of_coordinators_are_no_errors_of_producers(watched: Watched) -> None:
    written = "kafka_server_brokertopicmetrics_totalproducerequests_total"
    before, succeeded = watched.total_alone(written), errors(watched, "Produce", "NONE")
    consumer = Consumer({"bootstrap.servers": watched.bootstrap, "group.id": "g"})
    create(watched, "committed")
    consumer.commit(offsets=[TopicPartition("committed", 0, 0)], asynchronous=False)
    consumer.close()
    assert watched.total_alone(written) > before
    assert errors(watched, "Produce", "NONE") == succeeded


def test_batches_with_wrong_numbers_are_counted(watched: Watched, talk: Conversation) -> None:
    create(watched, "numbered")
    name = "kafka_server_brokertopicmetrics_invalidoffsetorsequencerecords_total"
    before = watched.total_alone(name)
    wrong = batch(producer_id=7, producer_epoch=0, base_sequence=-1)
    assert produce(talk, "numbered", wrong) is ErrorCode.INVALID_RECORD
    assert watched.total_alone(name) == before + 1
    unordered = [batch(producer_id=8, producer_epoch=0, base_sequence=each) for each in (0, 7)]
    assert produce(talk, "numbered", unordered[0]) is ErrorCode.NONE
    assert produce(talk, "numbered", unordered[1]) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert watched.total_alone(name) == before + 1  # that is not the batch's fault
    assert counts(watched, "numbered", WRITES) == [3, 2, len(unordered[0]), 1, 0]


def test_metadata_of_topics_that_are_missing_is_an_error(watched: Watched, talk: Conversation) -> None:
    topic = MetadataRequest.MetadataRequestTopic
    before = errors(watched, "Metadata", "UNKNOWN_TOPIC_OR_PARTITION")
    asked = MetadataRequest(topics=[topic(name="missing-1"), topic(name="missing-2")])
    asked.allow_auto_topic_creation = False
    talk.ask(asked, 9)
    assert errors(watched, "Metadata", "UNKNOWN_TOPIC_OR_PARTITION") == before + 2


def test_a_leader_of_the_quorum_voted_for_itself(watched: Watched) -> None:
    assert watched.total("kafka_server_raft_metrics_current_vote") == 1
    assert watched.total("kafka_server_raft_metrics_current_leader") == 1
