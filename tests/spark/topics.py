"""Topics for tests: filled, read back, and queries over them in few words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.testing.broker import Broker

_names = count()


def new_topic(broker: Broker, partitions: int = 1, configs: Mapping[str, str] | None = None) -> str:
    """A topic of the test's own, that keeps records of any age."""
    name = f"topic-{next(_names)}"
    broker.create_topic(name, partitions=partitions, configs={"retention.ms": "-1", **(configs or {})})
    return name


def fill(broker: Broker, topic: str, rows: Iterable[Mapping[str, Any]], **settings: Any) -> None:
    """Each row has what `confluent_kafka.Producer.produce` takes."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5, **settings})
    for row in rows:
        producer.produce(topic, **row)
    assert producer.flush(30) == 0


def values(broker: Broker, topic: str, texts: Iterable[str], partition: int = 0) -> None:
    fill(broker, topic, ({"value": text, "partition": partition} for text in texts))


def reading(source: Any, broker: Broker, topic: str | None = None, **options: Any) -> Any:
    """`source` is `spark.read` or `spark.readStream`."""
    reader = source.format("barnabas").option("kafka.bootstrap.servers", broker.bootstrap)
    if topic is not None:
        reader = reader.option("subscribe", topic)
    for name, value in options.items():
        reader = reader.option(name.replace("__", "."), str(value))
    return reader.load()


def texts(frame: Any) -> list[str]:
    return sorted(row.v for row in frame.selectExpr("cast(value as string) v").collect())


def consumed(broker: Broker, topic: str, partitions: int = 1) -> list[Any]:
    """Read by librdkafka, so that nobody but us wrote them."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found, ends = [], 0
    while ends < partitions:
        message = consumer.poll(20)
        assert message is not None
        if message.error() is None:
            found.append(message)
        else:
            ends += 1
    consumer.close()
    return found
