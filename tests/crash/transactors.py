"""Who works in transactions while brokers are killed, and remembers what it was told of each.

A `Transactor` is a thread that writes a record to every partition in each transaction, and ends it.
After a lost connection it takes its id again, as a client does that knows nothing any more.
"""

from __future__ import annotations

import threading
from enum import Enum

from barnabas.protocol import ErrorCode
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation
from broker.transactional import TransactionalProducer

RETRY_S = 0.01
FINISH_TIMEOUT_S = 60.0
PASSING = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
TRANSACTIONAL = {
    "log.segment.bytes": "1048576",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1000",
}
"""Settings of a broker that is killed in the middle of transactions."""


class Fate(Enum):
    """What a transactor knows of a transaction."""

    COMMITTED = "its commit was acknowledged"
    ABORTED = "its abort was acknowledged, or it was never to be committed"
    UNKNOWN = "its commit was sent, and no answer came"


class Refused(Exception):
    """An answer that a retry may change."""


class Transactor(threading.Thread):
    def __init__(self, broker: Broker, number: int, topic: str, partitions: int) -> None:
        super().__init__(daemon=True)
        self.broker, self.number, self.topic, self.partitions = broker, number, topic, partitions
        self.fates: dict[int, Fate] = {}
        self.ended = 0
        self.failure: BaseException | None = None
        self._transaction = 0
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    self._work()
                except (OSError, Refused):
                    self._stopping.wait(RETRY_S)
        except BaseException as error:
            self.failure = error

    def stop(self) -> None:
        self._stopping.set()
        self.join(60)
        assert not self.is_alive()

    def finish(self) -> None:
        """Take the id once more: whatever is left open is over after this."""
        wait_until(self._takes_its_id, FINISH_TIMEOUT_S, f"transactor {self.number} takes its id again")

    def _takes_its_id(self) -> bool:
        try:
            with Conversation(self.broker) as talk:
                self._producer(talk)
        except (OSError, Refused):
            return False
        return True

    def _producer(self, talk: Conversation) -> TransactionalProducer:
        new = bool(self.number % 2)
        producer = TransactionalProducer(talk, f"transactor-{self.number}", new=new)
        try:
            producer.find()
        except AssertionError as error:
            raise Refused from error
        code = producer.init().error_code
        if code in PASSING:
            raise Refused
        assert code == ErrorCode.NONE, f"InitProducerId: {ErrorCode(code).name}"
        return producer

    def _work(self) -> None:
        with Conversation(self.broker) as talk:
            producer = self._producer(talk)
            while not self._stopping.is_set():
                self._one(producer)

    def _one(self, producer: TransactionalProducer) -> None:
        number, self._transaction = self._transaction, self._transaction + 1
        self.fates[number] = Fate.ABORTED
        value = b"%d/%d" % (self.number, number)
        for partition in range(self.partitions):
            if not producer.new and any(producer.add(self.topic, partition)):
                raise Refused
            if producer.send(self.topic, value, partition=partition):
                raise Refused
        is_commit = number % 3 > 0
        if is_commit:
            self.fates[number] = Fate.UNKNOWN
        code = producer.end(commit=is_commit)
        if code:
            raise Refused
        self.fates[number] = Fate.COMMITTED if is_commit else Fate.ABORTED
        self.ended += 1
