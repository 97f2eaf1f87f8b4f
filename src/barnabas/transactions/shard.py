"""One partition of `__transaction_state`: every request about its transactional ids goes in here.

In: requests (batched ones hold only ids of this shard), records to take over, markers written, time. Out:
outcomes. This module knows whom to ask, and keeps the ids.
Does not know: the log, sockets, the clock, the partitions that markers go to, who may do what.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from barnabas.metadata.image import MetadataImage
from barnabas.protocol import Message
from barnabas.transactions.outcome import (
    CallerLike,
    ProducerIds,
    Token,
    TopicPartition,
    TransactionOutcome,
)
from barnabas.transactions.records import Entry
from barnabas.transactions.settings import TransactionSettings


class TransactionShard:
    def __init__(
        self,
        settings: TransactionSettings,
        coordinator_epoch: int,
        now_ms: int,
        partition_of_group: Callable[[str], int],
    ) -> None:
        """`coordinator_epoch` is the leader epoch of the partition; `partition_of_group` tells which one
        of `__consumer_offsets` keeps the offsets of a group."""
        self.settings = settings
        self.coordinator_epoch = coordinator_epoch
        self._partition_of_group = partition_of_group

    def handle(
        self,
        request: Message,
        caller: CallerLike,
        image: MetadataImage,
        now_ms: int,
        producer_ids: ProducerIds,
    ) -> TransactionOutcome:
        """Decides on a request; its records must be applied before the next one. At most one producer id is
        taken, by InitProducerId and EndTxn only."""
        raise NotImplementedError

    def needs_producer_id(self, request: Message) -> bool:
        """Whether `handle` of this request will take a producer id."""
        raise NotImplementedError

    def apply(self, entry: Entry) -> None:
        """Takes over a record, decided or replayed. Cannot fail, does not look at the clock."""
        raise NotImplementedError

    def configure(self, settings: TransactionSettings) -> None:
        """Settings were changed while running."""
        self.settings = settings

    def loaded(self, now_ms: int) -> list[TransactionOutcome]:
        """Everything was replayed: transactions that were about to end go on, markers are written again."""
        raise NotImplementedError

    def markers_written(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        now_ms: int,
    ) -> list[TransactionOutcome]:
        """Markers (named by what `Markers` said) are committed on these partitions, or these are gone for
        ever. Told twice or too late, it does no harm."""
        raise NotImplementedError

    def next_deadline_ms(self) -> int | None:
        """When `on_time` wants to be called; never too late, and too early does no harm."""
        raise NotImplementedError

    def on_time(self, now_ms: int, image: MetadataImage) -> list[TransactionOutcome]:
        """Transactions that are open for too long are aborted, ids that are silent for too long forgotten."""
        raise NotImplementedError

    def metadata_changed(self, image: MetadataImage, now_ms: int) -> list[TransactionOutcome]:
        """Nothing to do: who writes markers knows which partitions are gone."""
        return []

    def unload(self) -> list[tuple[Token, Message]]:
        """Answers for all who wait: nobody does."""
        return []
