"""The transactional ids of one partition of `__transaction_state`: every request about them comes here.

In: requests (a batched one names only ids of this shard), records to apply, written markers, time. Out:
outcomes. This module keeps the ids and calls `beginning`, `adding`, `ending`, `listing` and `timing`;
`record_writer` turns decisions into records.
Does not know: the log, sockets, the clock, the partitions that markers go to, authorization.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps, at_once
from barnabas.metadata.topic_changes import TopicChanges
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.transaction_state import TransactionLogKey
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)
from barnabas.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.transactions import adding, beginning, ending, listing, responses
from barnabas.transactions.outcome import (
    CallerLike,
    ProducerIds,
    Token,
    TopicPartition,
    TransactionOutcome,
)
from barnabas.transactions.record_writer import RecordWriter
from barnabas.transactions.records import Entry
from barnabas.transactions.settings import TransactionSettings
from barnabas.transactions.states import State
from barnabas.transactions.timing import Expiry, Timeouts
from barnabas.transactions.transaction import EPOCH_BUMPS_SINCE, Transaction

OFFSETS_TOPIC = "__consumer_offsets"


class RequestInfo(NamedTuple):
    """The circumstances of a request."""

    version: int
    image: MetadataImage
    now_ms: int
    producer_ids: ProducerIds


Handler = Callable[["TransactionShard", Any, RequestInfo], TransactionOutcome]


class TransactionShard:
    def __init__(
        self,
        settings: TransactionSettings,
        coordinator_epoch: int,
        now_ms: int,
        partition_of_group: Callable[[str], int],
    ) -> None:
        """`coordinator_epoch` is the leader epoch of the partition. `partition_of_group` returns the
        partition of `__consumer_offsets` that holds the offsets of a group."""
        self.settings = settings
        self.transactions: dict[str, Transaction] = {}
        self._partition_of_group = partition_of_group
        self._timeouts = Timeouts(settings, now_ms)
        self._expiry = Expiry(settings, now_ms)
        self._writer = RecordWriter(coordinator_epoch)

    @property
    def ongoing(self) -> dict[str, Transaction]:
        """The transactions that are open."""
        return self._timeouts.ongoing

    @property
    def coordinator_epoch(self) -> int:
        return self._writer.coordinator_epoch

    @coordinator_epoch.setter
    def coordinator_epoch(self, epoch: int) -> None:
        self._writer.coordinator_epoch = epoch

    # Called by the host

    def handle(
        self,
        request: Message,
        caller: CallerLike,
        image: MetadataImage,
        now_ms: int,
        producer_ids: ProducerIds,
    ) -> TransactionOutcome:
        """Decide a request. Its records must be applied before the next request. Only InitProducerId and
        EndTxn use a producer id, and at most one."""
        handler = HANDLERS.get(type(request))
        if handler is None:
            raise KafkaError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the transaction coordinator does not serve {type(request).__name__}",
            )
        self._writer.adopt_features(image)
        return handler(self, request, RequestInfo(caller.version, image, now_ms, producer_ids))

    def verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        image: MetadataImage,
        now_ms: int,
        *,
        add: bool,
    ) -> tuple[list[Entry], adding.Errors | int]:
        """Decide AddPartitionsToTxn for a broker's own, existing partitions: verify that they are in the
        transaction, or return the record that adds them. Returns one error for all, or one for each."""
        self._writer.adopt_features(image)
        transaction = self.transactions.get(transactional_id)
        try:
            if not add:
                return [], adding.verify(transaction, producer_id, producer_epoch, partitions)
            known = adding.check(transaction, producer_id, producer_epoch)
            return self._add(known, partitions, EPOCH_BUMPS_SINCE, now_ms), ErrorCode.NONE
        except KafkaError as refused:
            return [], refused.code

    def needs_producer_id(self, request: Message) -> bool:
        """Whether `handle` of this request may use a producer id."""
        if isinstance(request, InitProducerIdRequest):
            transaction = self.transactions.get(request.transactional_id or "")
            return transaction is None or transaction.is_exhausted
        if isinstance(request, EndTxnRequest):
            transaction = self.transactions.get(request.transactional_id)
            return transaction is not None and transaction.is_exhausted
        return False

    def apply(self, entry: Entry) -> None:
        """Apply a record that was decided or replayed. Cannot fail, does not look at the clock."""
        transactional_id, value = entry.key.transactional_id, entry.value
        if value is None:
            self.transactions.pop(transactional_id, None)
            self._timeouts.ongoing.pop(transactional_id, None)
            return
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            transaction = self.transactions[transactional_id] = Transaction(transactional_id)
        transaction.adopt(value)
        self._writer.replayed(entry.version)
        if transaction.state is State.ONGOING:
            self._timeouts.ongoing[transactional_id] = transaction
        else:
            self._timeouts.ongoing.pop(transactional_id, None)

    def apply_all(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.apply(entry)

    def configure(self, settings: TransactionSettings) -> None:
        """Change the settings at run time."""
        self.settings = self._timeouts.settings = self._expiry.settings = settings

    def loaded(self, now_ms: int) -> list[TransactionOutcome]:
        """Continue the transactions that were about to end, after everything was replayed: write their
        markers again."""
        return [
            self._writer.advance(transaction, now_ms)
            for transaction in self.transactions.values()
            if transaction.state.is_prepared
        ]

    def markers_written(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Collection[TopicPartition],
        now_ms: int,
    ) -> list[TransactionOutcome]:
        """Note that markers (identified as in `Markers`) are committed on these partitions, or that the
        partitions were deleted. A repeated or late call does no harm."""
        transaction = self.transactions.get(transactional_id)
        if (
            transaction is None
            or not transaction.state.is_prepared
            or (transaction.producer_id, transaction.producer_epoch) != (producer_id, producer_epoch)
        ):
            return []
        transaction.unmarked = transaction.unmarked.difference(partitions)
        return [] if transaction.unmarked else [self._writer.advance(transaction, now_ms)]

    def next_deadline_ms(self) -> int | None:
        """When to call `on_timer`. It may be too early, never too late."""
        if not self.transactions:
            return None
        deadline_ms = self._timeouts.next_deadline_ms()
        expiry_ms = self._expiry.next_deadline_ms()
        return expiry_ms if deadline_ms is None else min(deadline_ms, expiry_ms)

    def on_clock_set(self, by_ms: int) -> None:
        """Shift the next checks after the wall clock was set. The start time of a transaction does not
        shift: it is a wall-clock time in the log, and the next coordinator uses it too."""
        self._timeouts.on_clock_set(by_ms)
        self._expiry.on_clock_set(by_ms)

    def on_timer(
        self, now_ms: int, image: MetadataImage, producer_ids: ProducerIds
    ) -> list[TransactionOutcome]:
        """Abort transactions that are open for too long, and delete ids that were idle for too long.
        A transaction whose epochs are used up needs a producer id; without one it waits for the next
        check."""
        self._writer.adopt_features(image)
        outcomes = []
        for transaction in self._timeouts.due(now_ms):
            try:
                ended = ending.fence(transaction, self._writer.bumps_epochs, producer_ids, now_ms)
            except KafkaError:
                continue
            outcomes.append(self._writer.end(transaction, ended, now_ms))
        expired = self._expiry.due(now_ms, self.transactions)
        if expired:
            tombstones = [Entry(TransactionLogKey(transactional_id=each), None) for each in expired]
            outcomes.append(TransactionOutcome(tombstones))
        return outcomes

    def metadata_changed(
        self, image: MetadataImage, changes: TopicChanges, now_ms: int
    ) -> list[TransactionOutcome]:
        """Adopt the cluster's features. The sender of markers notices deleted partitions itself."""
        self._writer.adopt_features(image)
        return []

    def unload(self) -> list[tuple[Token, Message]]:
        """Responses to waiting requests: there are none."""
        return []

    # Requests

    def _begin(self, request: InitProducerIdRequest, info: RequestInfo) -> TransactionOutcome:
        try:
            beginning.check(request, self.settings)
            assert request.transactional_id is not None
            given = beginning.expected(request)
            transaction = self.transactions.get(request.transactional_id)
            if transaction is None:
                transaction = Transaction(request.transactional_id, info.producer_ids.pop())
            if beginning.must_abort_first(transaction, given):
                ended = ending.fence(transaction, self._writer.bumps_epochs, info.producer_ids, info.now_ms)
                outcome = self._writer.end(transaction, ended, info.now_ms)
                outcome.reply = responses.refusal(request, ErrorCode.CONCURRENT_TRANSACTIONS, info.version)
                return outcome
            begun = beginning.begin(transaction, request, given, info.producer_ids, info.now_ms)
        except KafkaError as refused:
            return TransactionOutcome(reply=responses.refusal(request, refused.code, info.version))
        transaction.last_producer_epoch = begun.last_producer_epoch
        reply = InitProducerIdResponse(
            producer_id=begun.value.producer_id, producer_epoch=begun.value.producer_epoch
        )
        return TransactionOutcome([self._writer.entry(request.transactional_id, begun.value)], reply)

    def _add_partitions(self, request: AddPartitionsToTxnRequest, info: RequestInfo) -> TransactionOutcome:
        version = info.version
        changed: dict[str, Transaction] = {}  # as they will be: a request may name one twice
        records: list[Entry] = []
        results = []
        all_requested = adding.requested_transactions(request, version)
        for requested in all_requested:
            partitions = adding.partitions_of(requested)
            errors: adding.Errors | int | None = adding.refused(partitions, info.image.topics, version)
            if errors is None:
                name = requested.transactional_id
                transaction = changed.get(name) or self.transactions.get(name)
                try:
                    added, errors = self._add_or_verify(
                        transaction, requested, partitions, version, info.now_ms
                    )
                except KafkaError as refused:
                    errors = responses.error_for(request, refused.code, version)
                else:
                    records += added
                    if added and len(all_requested) > 1:
                        assert added[0].value is not None
                        changed[name] = Transaction(name)
                        changed[name].adopt(added[0].value)
            results.append(adding.result(requested, errors))
        return TransactionOutcome(records, adding.response(results, version))

    def _add_or_verify(
        self,
        transaction: Transaction | None,
        requested: adding.RequestedTransaction,
        partitions: Collection[TopicPartition],
        version: int,
        now_ms: int,
    ) -> tuple[list[Entry], adding.Errors | int]:
        if not requested.transactional_id:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        if requested.verify_only:
            return [], adding.verify(transaction, requested.producer_id, requested.producer_epoch, partitions)
        transaction = adding.check(transaction, requested.producer_id, requested.producer_epoch)
        added = self._add(transaction, partitions, adding.client_version(version), now_ms)
        return added, ErrorCode.NONE

    def _add(
        self,
        transaction: Transaction,
        partitions: Collection[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> list[Entry]:
        value = adding.add(transaction, partitions, client_version, now_ms)
        if value is None:
            return []
        self._timeouts.note_begin(now_ms)
        return [self._writer.entry(transaction.transactional_id, value)]

    def _add_offsets(self, request: AddOffsetsToTxnRequest, info: RequestInfo) -> TransactionOutcome:
        """Add the partition of `__consumer_offsets` that holds the group's offsets."""
        topic_partition = TopicPartition(OFFSETS_TOPIC, self._partition_of_group(request.group_id))
        try:
            if not request.transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            transaction = adding.check(
                self.transactions.get(request.transactional_id), request.producer_id, request.producer_epoch
            )
        except KafkaError as refused:
            return TransactionOutcome(reply=responses.refusal(request, refused.code, info.version))
        return TransactionOutcome(
            self._add(transaction, [topic_partition], 0, info.now_ms), AddOffsetsToTxnResponse()
        )

    def _end_by_client(self, request: EndTxnRequest, info: RequestInfo) -> TransactionOutcome:
        transaction = self.transactions.get(request.transactional_id)
        try:
            if not request.transactional_id:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            if transaction is None:
                raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
            ended = ending.end(transaction, request, info.version, info.producer_ids, info.now_ms)
            outcome = self._writer.end(transaction, ended, info.now_ms)
        except KafkaError as refused:
            return TransactionOutcome(reply=responses.refusal(request, refused.code, info.version))
        outcome.reply = response = EndTxnResponse()
        if info.version >= ending.EPOCH_BUMPS_IN_VERSION:
            response.producer_id, response.producer_epoch = ending.identity_after(transaction, ended)
        return outcome

    def _describe(self, request: DescribeTransactionsRequest, info: RequestInfo) -> TransactionOutcome:
        states = [listing.described(each, self.transactions.get(each)) for each in request.transactional_ids]
        return TransactionOutcome(reply=DescribeTransactionsResponse(transaction_states=states))

    def _list(self, request: ListTransactionsRequest, info: RequestInfo) -> TransactionOutcome:
        return at_once(self.list_in_steps(request, info.now_ms))

    def list_in_steps(self, request: ListTransactionsRequest, now_ms: int) -> Steps[TransactionOutcome]:
        """List transactions in steps. They may change in between: each is shown as it is at some moment."""
        transactions = list(self.transactions.values())
        return TransactionOutcome(reply=(yield from listing.listed(request, transactions, now_ms)))


HANDLERS: dict[type[Message], Handler] = {
    InitProducerIdRequest: TransactionShard._begin,
    AddPartitionsToTxnRequest: TransactionShard._add_partitions,
    AddOffsetsToTxnRequest: TransactionShard._add_offsets,
    EndTxnRequest: TransactionShard._end_by_client,
    DescribeTransactionsRequest: TransactionShard._describe,
    ListTransactionsRequest: TransactionShard._list,
}
