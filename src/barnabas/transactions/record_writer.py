"""Turns decisions into records, in the form that the cluster's features require, and into markers.

In: decided values and ends, the features of the cluster. Out: entries of the log, and outcomes that advance
an end as far as possible at once.
Does not know: requests, the shard, when a decision is right.
"""

from __future__ import annotations

from barnabas.metadata.image import MetadataImage
from barnabas.protocol.log_records.transaction_state import TransactionLogKey, TransactionLogValue
from barnabas.transactions import ending
from barnabas.transactions.outcome import TransactionOutcome
from barnabas.transactions.records import VALUE_VERSION_MAX, Entry, fitted, value_version
from barnabas.transactions.transaction import EPOCH_BUMPS_SINCE, Transaction

TRANSACTION_VERSION = "transaction.version"  # a feature of the cluster


class RecordWriter:
    __slots__ = ("_image", "_value_version", "bumps_epochs", "coordinator_epoch")

    def __init__(self, coordinator_epoch: int) -> None:
        self.coordinator_epoch = coordinator_epoch
        self.bumps_epochs = True  # whether the cluster has finalized transaction version 2
        self._image: MetadataImage | None = None
        self._value_version = VALUE_VERSION_MAX  # of the latest record until the cluster's features are known

    def adopt_features(self, image: MetadataImage) -> None:
        """Write records from now on as the cluster's features require."""
        if image is not self._image:
            self._image = image
            level = image.features.level(TRANSACTION_VERSION)
            self.bumps_epochs = level >= EPOCH_BUMPS_SINCE
            self._value_version = value_version(level)

    def replayed(self, version: int) -> None:
        """Note the version of a replayed record: it is used until the cluster's features are known."""
        if self._image is None:
            self._value_version = version

    def entry(self, transactional_id: str, value: TransactionLogValue) -> Entry:
        key = TransactionLogKey(transactional_id=transactional_id)
        return Entry(key, fitted(value, self._value_version), self._value_version)

    def end(self, transaction: Transaction, ended: ending.Ended, now_ms: int) -> TransactionOutcome:
        """Prepare the end. If no partition needs a marker, complete it in the same outcome."""
        value = ended.value
        if value is None:
            return TransactionOutcome()
        entry = self.entry(transaction.transactional_id, value)
        transaction.last_producer_epoch = ended.last_producer_epoch
        prepared = Transaction(transaction.transactional_id)
        prepared.adopt(value)
        outcome = self.advance(prepared, now_ms)
        outcome.records.insert(0, entry)
        return outcome

    def advance(self, prepared: Transaction, now_ms: int) -> TransactionOutcome:
        """The markers for partitions that still need them, or the completion of the transaction."""
        if prepared.unmarked:
            return TransactionOutcome(markers=[prepared.markers(self.coordinator_epoch)])
        value = ending.complete(prepared, now_ms)
        return TransactionOutcome([self.entry(prepared.transactional_id, value)])
