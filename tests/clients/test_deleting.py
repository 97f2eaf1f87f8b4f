"""Records deleted by the clients' own admin tools."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient
from kafka import TopicPartition as PythonPartition

from .conftest import NewTopicName, Served

ANSWER_S = 30


def written(broker: Served, topic: str, count: int = 10) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(count):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(ANSWER_S) == 0


def watermarks(broker: Served, topic: str) -> tuple[int, int]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "watermarks"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=ANSWER_S)
        return low, high
    finally:
        consumer.close()


def test_librdkafka_deletes_records(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    written(broker, topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    before = TopicPartition(topic, 0, 4)

    [answer] = admin.delete_records([before]).values()

    assert answer.result(ANSWER_S).low_watermark == 4
    assert watermarks(broker, topic) == (4, 10)


def test_librdkafka_hears_of_offsets_that_are_not_there(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    written(broker, topic)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})

    [answer] = admin.delete_records([TopicPartition(topic, 0, 11)]).values()

    with pytest.raises(KafkaException) as refused:
        answer.result(ANSWER_S)
    assert refused.value.args[0].name() == "OFFSET_OUT_OF_RANGE"
    assert watermarks(broker, topic) == (0, 10)


def test_kafka_python_deletes_records(broker: Served, new_topic: NewTopicName) -> None:
    topic = new_topic()
    written(broker, topic)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        where = PythonPartition(topic, 0)
        answer = admin.delete_records({where: 6})
        assert answer[where]["low_watermark"] == 6
    finally:
        admin.close()
    assert watermarks(broker, topic) == (6, 10)
