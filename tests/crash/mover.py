"""A program that moves records from one topic to another, exactly once, until it is killed.

Arguments: address, source, target, transactional id. Prints a line for every transaction it commits.
"""

from __future__ import annotations

import sys

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

TIMEOUT_S = 60.0
PATIENCE_S = 0.05
BATCH = 7


def main(bootstrap: str, source: str, target: str, name: str) -> None:
    while True:
        try:
            work(bootstrap, source, target, name)
        except KafkaException as error:
            print(f"again after {error}", file=sys.stderr, flush=True)


def work(bootstrap: str, source: str, target: str, name: str) -> None:
    """As a program does it that starts anew after every error it cannot handle."""
    # With "rebootstrap", librdkafka 2.16 goes on asking the group coordinator of before, which it has let go.
    place = {"bootstrap.servers": bootstrap, "metadata.recovery.strategy": "none"}
    consumer = Consumer(
        {
            **place,
            "group.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": 1500,
        }
    )
    producer = Producer({**place, "transactional.id": name, "linger.ms": 0})
    messages: list[Message] = []

    def start_over(*_: object) -> None:
        """Whoever has the partitions next reads these again: maybe this program itself."""
        messages.clear()

    try:
        producer.init_transactions(TIMEOUT_S)
        consumer.subscribe([source], on_revoke=start_over, on_lost=start_over)
        while True:
            # One by one: `consume` gives messages of before and after a rebalance in one list.
            message = consumer.poll(PATIENCE_S)
            if message is not None and is_record(message):
                messages.append(message)
            if messages and (message is None or len(messages) == BATCH):
                move(messages, target, consumer, producer)
                messages.clear()
    finally:
        consumer.close()


def is_record(message: Message) -> bool:
    error = message.error()
    if error is not None and error.code() not in (
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    ):
        raise KafkaException(error)
    return error is None


def move(messages: list[Message], target: str, consumer: Consumer, producer: Producer) -> None:
    producer.begin_transaction()
    for message in messages:
        partition = message.partition()
        assert partition is not None
        producer.produce(target, message.value(), partition=partition)
    places = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), TIMEOUT_S)
    producer.commit_transaction(TIMEOUT_S)
    print(len(messages), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
