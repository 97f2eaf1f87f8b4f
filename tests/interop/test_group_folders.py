"""Groups move with their folder: what Apache Kafka wrote we go on with, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.testing import Broker
from barnabas.testing.apache import ApacheKafka
from barnabas.testing.waiting import wait_until

TOPIC = "moved"
STEP = 10  # records that a member reads before it commits and leaves
PROTOCOLS = ("classic", "consumer")


def member(bootstrap: str, group: str, protocol: str = "classic") -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )


def read_on(bootstrap: str, protocol: str) -> list[int]:
    """The offsets of the next records; they are committed before the member leaves."""
    consumer = member(bootstrap, f"of-{protocol}", protocol)
    consumer.subscribe([TOPIC])
    offsets: list[int] = []

    def has_enough() -> bool:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            offsets.append(message.offset())
        return len(offsets) == STEP

    wait_until(has_enough, 60)
    consumer.commit(offsets=[TopicPartition(TOPIC, 0, offsets[-1] + 1)], asynchronous=False)
    consumer.close()
    return offsets


def commit_in_transactions(bootstrap: str) -> None:
    """42 is committed, 77 is not."""
    consumer = member(bootstrap, "in-transactions")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "mover"})
    producer.init_transactions(60)
    for offset, is_kept in ((42, True), (77, False)):
        producer.begin_transaction()
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction([TopicPartition(TOPIC, 0, offset)], metadata, 60)
        if is_kept:
            producer.commit_transaction(60)
        else:
            producer.abort_transaction(60)
    consumer.close()


def committed(bootstrap: str, group: str) -> int:
    consumer = member(bootstrap, group)
    [found] = consumer.committed([TopicPartition(TOPIC, 0)], timeout=30)
    consumer.close()
    return int(found.offset)


@pytest.mark.usefixtures("java")
def test_groups_go_on_where_the_other_left_them(tmp_path: Path) -> None:
    data = tmp_path / "data"
    expected = iter([list(range(start, start + STEP)) for start in range(0, 100, STEP)])
    with ApacheKafka(data) as kafka:
        kafka.create_topic(TOPIC)
        producer = Producer({"bootstrap.servers": kafka.bootstrap})
        for number in range(100):
            producer.produce(TOPIC, b"%d" % number)
        producer.flush(60)
        step = next(expected)
        assert [read_on(kafka.bootstrap, protocol) for protocol in PROTOCOLS] == [step, step]
        commit_in_transactions(kafka.bootstrap)
    with Broker(data, in_process=False) as broker:
        step = next(expected)
        assert [read_on(broker.bootstrap, protocol) for protocol in PROTOCOLS] == [step, step]
        assert committed(broker.bootstrap, "in-transactions") == 42
    with ApacheKafka(data) as kafka:
        step = next(expected)
        assert [read_on(kafka.bootstrap, protocol) for protocol in PROTOCOLS] == [step, step]
        assert committed(kafka.bootstrap, "in-transactions") == 42
