"""The state of one transactional id: its producer, its state, the partitions of its transaction.

In: values of records to apply. Out: the values of records that would change it. `value` starts from the
current state and applies the changes, so that no field is lost.
Does not know: requests, which change is allowed when (see `states`), other ids.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from barnabas.protocol.log_records.transaction_state import TransactionLogValue
from barnabas.transactions.outcome import Markers, TopicPartition
from barnabas.transactions.records import NO_PRODUCER_ID
from barnabas.transactions.states import BEFORE, State

NO_PRODUCER_EPOCH = -1
NO_TIME_MS = -1
NO_TIMEOUT_MS = 2**31 - 1  # of transactions that an external coordinator ends (KIP-939)
EPOCH_MAX = 2**15 - 1
EPOCH_MAX_OF_CLIENTS = EPOCH_MAX - 1  # the last one is reserved for fencing the one before
# the transaction version from which each end of a transaction raises the epoch (KIP-890)
EPOCH_BUMPS_SINCE = 2
STATES = tuple(State)  # by number
NO_PARTITIONS: frozenset[TopicPartition] = frozenset()


class Transaction:
    __slots__ = (
        "client_version", "last_producer_epoch", "next_producer_id", "partitions", "previous_producer_id",
        "producer_epoch", "producer_id", "start_ms", "state", "timeout_ms", "transactional_id", "unmarked",
        "update_ms",
    )  # fmt: skip

    def __init__(self, transactional_id: str, producer_id: int = NO_PRODUCER_ID) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.previous_producer_id = NO_PRODUCER_ID  # before the latest change; most often the same
        self.next_producer_id = NO_PRODUCER_ID  # used once the transaction has ended
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.timeout_ms = 0
        self.state = State.EMPTY
        self.partitions: dict[TopicPartition, None] = {}  # an ordered set
        self.start_ms = NO_TIME_MS
        self.update_ms = NO_TIME_MS
        self.client_version = 0  # transaction version of the request that made the latest change
        # Not in the log, so lost when the shard is unloaded:
        self.last_producer_epoch = NO_PRODUCER_EPOCH  # the client may repeat the request that raised it
        self.unmarked: frozenset[TopicPartition] = NO_PARTITIONS  # prepared, without a known marker

    @property
    def is_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)

    @property
    def is_two_phase(self) -> bool:
        return self.timeout_ms == NO_TIMEOUT_MS

    def value(self, state: State, now_ms: int, **changes: Any) -> TransactionLogValue:
        """The value of the record that leads to `state`. `partitions` may be among the changes, as any
        iterable."""
        assert self.state in BEFORE[state], f"{self.state.label} may not become {state.label}"
        partitions = changes.pop("partitions", self.partitions)
        value = TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=int(state),
            transaction_partitions=None if state is State.EMPTY else by_topic(partitions),
            transaction_last_update_timestamp_ms=now_ms,
            transaction_start_timestamp_ms=self.start_ms,
            client_transaction_version=self.client_version,
        )
        for name, changed in changes.items():
            setattr(value, name, changed)
        return value

    def adopt(self, value: TransactionLogValue) -> None:
        """Adopt the values of a record."""
        self.producer_id = value.producer_id
        self.previous_producer_id = value.previous_producer_id
        self.next_producer_id = value.next_producer_id
        self.producer_epoch = value.producer_epoch
        self.timeout_ms = value.transaction_timeout_ms
        self.state = state = STATES[value.transaction_status]
        self.partitions = {
            TopicPartition(topic.topic, partition): None
            for topic in value.transaction_partitions or ()
            for partition in topic.partition_ids
        }
        self.start_ms = value.transaction_start_timestamp_ms
        self.update_ms = value.transaction_last_update_timestamp_ms
        self.client_version = value.client_transaction_version
        self.unmarked = frozenset(self.partitions) if state.is_prepared else NO_PARTITIONS

    def markers(self, coordinator_epoch: int) -> Markers:
        """The markers to write to the partitions of a prepared transaction."""
        return Markers(
            self.transactional_id,
            self.producer_id,
            self.producer_epoch,
            coordinator_epoch,
            self.state is State.PREPARE_COMMIT,
            tuple(partition for partition in self.partitions if partition in self.unmarked),
            self.client_version,
        )


def is_exhausted(producer_epoch: int) -> bool:
    return producer_epoch >= EPOCH_MAX_OF_CLIENTS


def by_topic(partitions: Iterable[TopicPartition]) -> list[TransactionLogValue.PartitionsSchema]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return [
        TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=numbers)
        for topic, numbers in found.items()
    ]
