"""Records `__consumer_offsets` of Apache Kafka, written for real clients, into `recorded/`.

    python -m tests.groups.record_apache

Two members of a classic group, a static one, a group of the consumer protocol, offsets of a simple consumer,
a deleted group: every type of record that these leave behind.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.testing.apache import ApacheKafka

RECORDED = Path(__file__).parent / "recorded"
JOIN_TIMEOUT_S = 30.0


def consumer(kafka: ApacheKafka, group: str, **settings: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


def poll_until_assigned(*consumers: Consumer) -> None:
    deadline = time.monotonic() + JOIN_TIMEOUT_S
    while not all(each.assignment() for each in consumers):
        assert time.monotonic() < deadline, "the consumers were given nothing"
        for each in consumers:
            each.poll(0.1)


def record(kafka: ApacheKafka) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for made in admin.create_topics([NewTopic("orders", 4), NewTopic("clicks", 2)]).values():
        made.result()
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for number in range(40):
        producer.produce("orders", f"order {number}", partition=number % 4)
    producer.flush()

    first, second = consumer(kafka, "classic"), consumer(kafka, "classic")
    for member in (first, second):
        member.subscribe(["orders"])
    poll_until_assigned(first, second)
    for member in (first, second):
        where = member.assignment()[0]
        member.commit(
            offsets=[TopicPartition(where.topic, where.partition, 7, metadata="note")], asynchronous=False
        )
    second.close()
    poll_until_assigned(first)
    first.close()

    static = consumer(kafka, "static", group_instance_id="one")
    static.subscribe(["orders", "clicks"])
    poll_until_assigned(static)
    static.close()

    modern = consumer(kafka, "modern", group_protocol="consumer")
    modern.subscribe(["orders"])
    poll_until_assigned(modern)
    modern.commit(offsets=[TopicPartition("orders", 1, 3)], asynchronous=False)
    modern.close()

    for group in ("simple", "deleted"):
        offsets = [TopicPartition("clicks", 0, 5), TopicPartition("clicks", 1, 6)]
        request = [ConsumerGroupTopicPartitions(group, offsets)]
        for changed in admin.alter_consumer_group_offsets(request).values():
            changed.result()
    for gone in admin.delete_consumer_groups(["deleted"]).values():
        gone.result()


if __name__ == "__main__":
    with ApacheKafka() as node:
        record(node)
        RECORDED.mkdir(exist_ok=True)
        shutil.copy(node.data / "__consumer_offsets-0" / "00000000000000000000.log", RECORDED / "clients.log")
