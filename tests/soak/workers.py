"""Clients at work: producers, a consumer group whose members come and go, transactions. Each keeps count, and
writes down every request that failed.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

QUIET = {"log_level": 0}
RECORDS_PER_TURN = 20
TURN_S = 0.05
MEMBER_S = 15.0  # a member of the group leaves after this time, and another comes
VALUE_BYTES = 400


class Worker(threading.Thread):
    """Takes turns until it is told to stop."""

    def __init__(self, name: str, bootstrap: str) -> None:
        super().__init__(name=name)
        self.problems: list[str] = []
        self.count = 0
        self.common: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "client.id": name,
            "error_cb": self._on_error,
            **QUIET,
        }
        self.stopping = threading.Event()

    def _on_error(self, error: KafkaError) -> None:
        self.problems.append(f"{self.name}: {error}")

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self.problems.append(f"{self.name}: {error!r}")

    def work(self) -> None:
        raise NotImplementedError

    def finish(self) -> None:
        self.stopping.set()
        self.join(120)
        if self.is_alive():
            self.problems.append(f"{self.name} hangs")


class Writer(Worker):
    """Produces with acks=all, idempotent; the value of a record is its number in the partition's order."""

    def __init__(self, name: str, bootstrap: str, topic: str) -> None:
        super().__init__(name, bootstrap)
        self._topic = topic

    def work(self) -> None:
        producer = Producer({**self.common, "enable.idempotence": True, "linger.ms": 5})
        while not self.stopping.wait(TURN_S):
            for _ in range(RECORDS_PER_TURN):
                producer.produce(self._topic, bytes(VALUE_BYTES), key=self.name, on_delivery=self._delivered)
            producer.poll(0)
        if producer.flush(60):
            self.problems.append(f"{self.name}: records were not delivered in a minute")

    def _delivered(self, error: KafkaError | None, message: object) -> None:
        if error is not None:
            self.problems.append(f"{self.name}: {error}")
        self.count += 1


class Member(Worker):
    """A seat in a consumer group: one consumer after another, each commits what it has read."""

    def __init__(self, name: str, bootstrap: str, topic: str, group: str) -> None:
        super().__init__(name, bootstrap)
        self._topic, self._group = topic, group

    def work(self) -> None:
        while not self.stopping.is_set():
            consumer = Consumer(
                {
                    **self.common,
                    "group.id": self._group,
                    "auto.offset.reset": "earliest",
                    "enable.auto.commit": False,
                }
            )
            try:
                consumer.subscribe([self._topic])
                self._read(consumer, time.monotonic() + MEMBER_S)
            finally:
                consumer.close()

    def _read(self, consumer: Consumer, until: float) -> None:
        while not self.stopping.is_set() and time.monotonic() < until:
            read = consumer.consume(500, 0.2)
            for message in read:
                if message.error():
                    self.problems.append(f"{self.name}: {message.error()}")
            if read:
                self.count += len(read)
                self._commit(consumer)

    def _commit(self, consumer: Consumer) -> None:
        try:
            consumer.commit(asynchronous=False)
        except KafkaException as error:
            # A commit during a rebalance is refused, as Kafka refuses it: the next owner reads those again.
            rebalancing = (KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION)
            if error.args[0].code() not in (*rebalancing, KafkaError._NO_OFFSET):
                raise


class Transactor(Worker):
    """Transactions over two topics; every third is aborted. What it committed is counted."""

    def __init__(self, name: str, bootstrap: str, topics: tuple[str, ...]) -> None:
        super().__init__(name, bootstrap)
        self._topics = topics

    def work(self) -> None:
        producer = Producer({**self.common, "transactional.id": self.name, "linger.ms": 2})
        producer.init_transactions(60)
        number = 0
        while not self.stopping.wait(TURN_S):
            number += 1
            producer.begin_transaction()
            for topic in self._topics:
                producer.produce(topic, b"%d" % number, key=self.name)
            if number % 3:
                producer.commit_transaction(60)
                self.count += 1
            else:
                # librdkafka may send EndTxn while it still has to repeat AddPartitionsToTxn, because the
                # transaction before was not complete. Every broker refuses that with INVALID_TXN_STATE.
                assert producer.flush(60) == 0
                producer.abort_transaction(60)


class CommittedReader(Worker):
    """Reads committed records of one topic from the beginning, and counts them."""

    def __init__(self, name: str, bootstrap: str, topic: str) -> None:
        super().__init__(name, bootstrap)
        self._topic = topic
        self.expected: int | None = None  # said at the end: then it stops when it has read so many

    def work(self) -> None:
        consumer = Consumer(
            {
                **self.common,
                "group.id": self.name,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        consumer.assign([TopicPartition(self._topic, 0, 0)])
        try:
            while not self.stopping.is_set() or (self.expected is not None and self.count < self.expected):
                for message in consumer.consume(500, 0.2):
                    if message.error():
                        self.problems.append(f"{self.name}: {message.error()}")
                    else:
                        self.count += 1
        finally:
            consumer.close()
