"""The host of one shard of transactions: one partition of `__transaction_state`.

In: requests for its transactional ids, verifications by partitions. Out: outcomes of the shard, and the
markers that follow once the records are committed. If the partition has one replica and needs no sync,
records are written at once, so that a transaction ends within one tick.
Does not know: appending, waiting, loading (see `host`), the state of transactions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinators.host import CoordinatorHost
from barnabas.broker.coordinators.journal import KeyAndValue, as_coordinator_error
from barnabas.broker.coordinators.loading import Loading
from barnabas.broker.coordinators.transaction_markers import MarkerWriter
from barnabas.decisions.commit_waits import CommitCall, CommitWaits
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.records.compression import Compression
from barnabas.transactions.outcome import Caller, Markers, TopicPartition, TransactionOutcome
from barnabas.transactions.records import decode, encode
from barnabas.transactions.responses import turn_into_error
from barnabas.transactions.shard import TransactionShard

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.coordinators.transaction_coordinator import TransactionCoordinator
    from barnabas.broker.partitions.partition import Partition
    from barnabas.metadata.steps import Steps

Errors = dict[TopicPartition, int]
LISTED_AT_ONCE = 200


class TransactionHost(CoordinatorHost[TransactionShard]):
    __slots__ = ("_coordinator", "_due", "_markers")

    def __init__(self, coordinator: TransactionCoordinator, partition: Partition) -> None:
        self._coordinator = coordinator
        super().__init__(coordinator, partition)
        self._markers = MarkerWriter(self._broker, self._written)
        self._due: CommitWaits[CommitCall] = partition.new_commit_waits()  # markers that wait for a commit

    # -- what `CoordinatorHost` calls ------------------------------------------------------------------------

    def compression(self) -> int:
        return Compression.NONE

    def load_bytes_max(self) -> int:
        size: int = self._broker.settings["transaction.state.log.load.buffer.size"]
        return size

    def commit_timeout_ms(self) -> int:
        timeout_ms: int = self._broker.settings["request.timeout.ms"]
        return timeout_ms

    def new_shard(self) -> TransactionShard:
        return self._coordinator.new_shard(self.partition)

    def new_loading(self) -> Loading:
        return Loading(self.partition.log, decode, self.shard.apply)

    def encode(self, entry: Any) -> KeyAndValue:
        return encode(entry)

    def refusal(self, request: Message, error: KafkaError, version: int) -> Message:
        return self._coordinator.refusal(request, error, version)

    def turn_into_error(self, response: Any, error: KafkaError) -> None:
        if isinstance(response, dict):  # error codes of a verification
            response.update(dict.fromkeys(response, int(error.code)))
        else:
            turn_into_error(response, error)

    def decide(self, request: Any, context: RequestContext, now_ms: int) -> TransactionOutcome:
        caller = Caller(context.version)
        return self.shard.handle(request, caller, self._broker.image, now_ms, self._broker.producer_ids)

    read_only = frozenset((ListTransactionsRequest,))

    def is_long(self, request: Any) -> bool:
        return type(request) is ListTransactionsRequest and len(self.shard.transactions) > LISTED_AT_ONCE

    def decide_in_steps(
        self, request: Any, context: RequestContext, now_ms: int
    ) -> Steps[TransactionOutcome]:
        return self.shard.list_in_steps(request, now_ms)

    def decide_by_time(self, now_ms: int) -> Iterable[TransactionOutcome]:
        return self.shard.on_timer(now_ms, self._broker.image, self._broker.producer_ids)

    def loaded(self, now_ms: int) -> Iterable[TransactionOutcome]:
        return self.shard.loaded(now_ms)

    def keeps_state_after(self, error: KafkaError, request: Message | None) -> bool:
        """Records that are too large were not applied, and a decision changes little else."""
        return error.code == ErrorCode.MESSAGE_TOO_LARGE

    def count_records(self, records: Sequence[Any], request: Message | None) -> None:
        self.stats.count_transaction_records(records, request)

    def set_leader_epoch(self, leader_epoch: int) -> None:
        """Set the epoch that markers carry: the one in which this broker leads the partition."""
        self.shard.coordinator_epoch = leader_epoch

    # -- markers -----------------------------------------------------------------------------------

    def metadata_changed(self, changes: TopicChanges, now_ms: int) -> None:
        super().metadata_changed(changes, now_ms)
        if self.error is None:
            self._markers.metadata_changed()

    def carry_out(self, outcome: Any, now_ms: int, request: Message | None = None) -> None:
        super().carry_out(outcome, now_ms, request)
        if not outcome.markers:
            return
        if self._try_commit_now():
            for markers in outcome.markers:
                self._markers.write(markers)
        else:
            offset = self.journal.end_offset
            for markers in outcome.markers:
                self._due.append((offset - 1, CommitCall(partial(self._write_markers, markers))))

    def _try_commit_now(self) -> bool:
        """Write everything now if writing commits it. Out: whether everything is committed. KafkaError: the
        write failed."""
        journal = self.journal
        if journal.is_all_committed:
            return True
        if not self.partition.is_committed_by_writing:
            return False
        try:
            journal.write_early()
        except KafkaError as error:
            self.reload_after(error)
            raise as_coordinator_error(error) from error
        return True

    def _written(self, markers: Markers, partitions: Sequence[TopicPartition]) -> None:
        if self.error is not None:
            return
        now_ms = self._broker.clock.now_ms()
        outcomes = self.shard.markers_written(
            markers.transactional_id, markers.producer_id, markers.producer_epoch, partitions, now_ms
        )
        self.carry_out_all(outcomes, now_ms)

    def _on_high_watermark(self, partition: Partition) -> None:
        super()._on_high_watermark(partition)
        self._due.tell_committed(partition.high_watermark)

    def _write_markers(self, markers: Markers, error: KafkaError | None) -> None:
        self._markers.write(markers)

    def _refuse(self, why: KafkaError, lost: KafkaError | None = None) -> None:
        self._due.clear()
        self._markers.close()
        self._markers = MarkerWriter(self._broker, self._written)
        if lost is None:
            super()._refuse(why)
        else:
            super()._refuse(why, lost)

    @property
    def unwritten_markers(self) -> int:
        return self._markers.unwritten_count + len(self._due)

    # -- verification -------------------------------------------------------------------------

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[TopicPartition],
        *,
        add: bool,
    ) -> Errors | asyncio.Future[Errors]:
        """See `TransactionCoordinator.verify`."""
        if self.error is not None:
            return dict.fromkeys(partitions, int(self.error.code))
        broker = self._broker
        now_ms = broker.clock.now_ms()
        owner = transactional_id, producer_id, producer_epoch
        records, found = self.shard.verify(*owner, partitions, broker.image, now_ms, add=add)
        errors = dict.fromkeys(partitions, found) if isinstance(found, int) else dict(found)
        try:
            if records:
                self.carry_out(TransactionOutcome(records), now_ms)
                self._arm(self)
            is_committed = self._try_commit_now()
        except KafkaError as error:
            return dict.fromkeys(partitions, int(error.code))
        if is_committed:
            return errors
        future: asyncio.Future[Errors] = broker.loop.create_future()
        self._uncommitted.hold(self.journal.end_offset, partial(set_result, future), errors)
        return future


def set_result(future: asyncio.Future[Errors], errors: Errors) -> None:
    if not future.done():
        future.set_result(errors)
