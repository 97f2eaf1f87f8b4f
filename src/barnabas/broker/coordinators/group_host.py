"""The host of one shard of groups: one partition of `__consumer_offsets`.

In: requests for its groups. Out: outcomes of the shard, encoded records, error responses of each API.
Does not know: appending, waiting, loading (see `host`), the state of groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.deferred import Deferred
from barnabas.broker.coordinators.group_loading import GroupLoading
from barnabas.broker.coordinators.group_refusals import refusal, turn_into_error
from barnabas.broker.coordinators.host import CoordinatorHost
from barnabas.broker.coordinators.journal import NOT_HERE
from barnabas.broker.coordinators.long_requests import LongRequest
from barnabas.broker.shares.state_calls import ShareStateCalls
from barnabas.decisions.commit_waits import CommitCall, CommitWaits
from barnabas.decisions.work_queue import as_steps
from barnabas.groups.basics.outcome import Outcome, StateCall
from barnabas.groups.basics.records import Entry, encode
from barnabas.groups.shard import MAY_BE_LONG, READ_ONLY
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.coordinators.group_coordinator import GroupCoordinator
    from barnabas.broker.partitions.partition import Partition
    from barnabas.groups.shard import GroupShard
    from barnabas.metadata.steps import Steps
    from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
    from barnabas.replication.verification import Verification
    from barnabas.transactions.outcome import TransactionEnd

Refuse = Callable[[KafkaError], Message]
GROUPS_NOT_READY = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "the group coordinator is not ready")


class GroupHost(CoordinatorHost["GroupShard"]):
    __slots__ = ("_calls", "_coordinator", "_due")

    encode = staticmethod(encode)
    refusal = staticmethod(refusal)
    # Commits and heartbeats only extend sessions.
    sets_no_deadline = frozenset((OffsetCommitRequest, HeartbeatRequest, OffsetFetchRequest))
    turn_into_error = staticmethod(turn_into_error)

    def __init__(self, coordinator: GroupCoordinator, partition: Partition) -> None:
        self._coordinator = coordinator
        super().__init__(coordinator, partition)
        self._calls = ShareStateCalls(self._broker, self._state_response)
        self._due: CommitWaits[CommitCall] = partition.new_commit_waits()  # calls that wait for a commit

    def compression(self) -> int:
        codec: int = self._broker.settings["offsets.topic.compression.codec"]
        return codec

    def load_bytes_max(self) -> int:
        size: int = self._broker.settings["offsets.load.buffer.size"]
        return size

    def commit_timeout_ms(self) -> int:
        timeout_ms: int = self._broker.settings["offsets.commit.timeout.ms"]
        return timeout_ms

    def new_shard(self) -> GroupShard:
        return self._coordinator.new_shard(self.partition)

    def new_loading(self) -> GroupLoading:
        return GroupLoading(self.partition.log, self.shard)

    def decide(self, request: Any, context: RequestContext, now_ms: int) -> Outcome:
        return self.shard.handle(request, self._coordinator.caller(context), self._broker.image, now_ms)

    read_only = READ_ONLY

    def is_long(self, request: Any) -> bool:
        return type(request) in MAY_BE_LONG and self.shard.is_long(request, self._broker.image)

    def decide_in_steps(self, request: Any, context: RequestContext, now_ms: int) -> Steps[Outcome]:
        return self.shard.steps(request, self._coordinator.caller(context), self._broker.image, now_ms)

    def decide_by_time(self, now_ms: int) -> Iterable[Outcome]:
        return self.shard.on_timer(now_ms, self._broker.image)

    def replayed(self, now_ms: int) -> Steps[None]:
        return self.shard.replayed(now_ms)

    def loaded(self, now_ms: int) -> Iterable[Outcome]:
        self.shard.loaded(now_ms)
        return ()

    def keeps_state_after(self, error: KafkaError, request: Message | None) -> bool:
        """A commit changes the shard only by its records, and a heartbeat of a group by little else.
        So the other groups keep their shard when a subscription to very many partitions is refused."""
        if error.code != ErrorCode.MESSAGE_TOO_LARGE:
            return False
        if isinstance(request, ConsumerGroupHeartbeatRequest):
            return self.shard.consumer.undo_decision(request.group_id)
        if isinstance(request, ShareGroupHeartbeatRequest):
            return self.shard.share.undo_decision(request.group_id)
        if isinstance(request, StreamsGroupHeartbeatRequest):
            return self.shard.streams.undo_decision(request.group_id)
        return type(request) is OffsetCommitRequest

    # -- state of share groups with share coordinators ------------------------------------------------

    def count_records(self, records: Sequence[Any], request: Message | None) -> None:
        self.stats.count_group_records(records, request)

    def carry_out(self, outcome: Any, now_ms: int, request: Message | None = None) -> None:
        super().carry_out(outcome, now_ms, request)
        if outcome.state_calls:
            self.send_calls(outcome)

    def send_calls(self, outcome: Any) -> None:
        if self.journal.is_all_committed:
            self._calls.send(outcome.state_calls)
        elif outcome.state_calls:
            send = partial(self._when_committed_send, outcome.state_calls)
            self._due.append((self.journal.end_offset - 1, CommitCall(send)))

    def _when_committed_send(self, calls: Sequence[StateCall], error: KafkaError | None) -> None:
        self._calls.send(calls)

    def refuse_waiting(self, outcome: Any, error: KafkaError) -> None:
        if outcome.state_calls:
            self.shard.share.forget_calls(outcome.state_calls)
        super().refuse_waiting(outcome, error)

    def _on_high_watermark(self, partition: Partition) -> None:
        super()._on_high_watermark(partition)
        self._due.tell_committed(partition.high_watermark)

    def _state_response(self, number: int, response: Message) -> None:
        if self.work_queue.is_busy:
            self.work_queue.add(as_steps(self._state_response_now, number, response))
        else:
            self._state_response_now(number, response)

    def _state_response_now(self, number: int, response: Message) -> None:
        if self.error is None:
            now_ms = self.now_ms()
            outcome = self.shard.state_response(number, response, self._broker.image, now_ms)
            self.carry_out_all([outcome], now_ms)

    def _refuse(self, why: KafkaError, lost: KafkaError = NOT_HERE) -> None:
        self._due.clear()
        self._calls.close()
        self._calls = ShareStateCalls(self._broker, self._state_response)
        super()._refuse(why, lost)

    # -- transactions ------------------------------------------------------------------------------

    def commit_in_transaction(
        self,
        request: TxnOffsetCommitRequest,
        context: RequestContext,
        verification: Verification | None,
        refuse: Refuse,
    ) -> Message | Deferred:
        """Append offsets that are valid once the producer's transaction commits. Out: the response, which the
        caller sends with `respond`. KafkaError: nothing was appended or changed. A deferred response gets
        its error from `refuse`."""
        if self.error is not None:
            raise self.error.copy()
        if not self.work_queue.is_busy and not self.is_long(request):
            return self.commit_in_transaction_now(request, context, verification)
        self.work_queue.check_capacity()
        deferred = Deferred()
        self.work_queue.add(
            TransactionalCommit(self, request, context, verification, refuse).respond(deferred)
        )
        return deferred

    def commit_in_transaction_now(
        self, request: TxnOffsetCommitRequest, context: RequestContext, verification: Verification | None
    ) -> Message:
        now_ms = self.now_ms()
        outcome = self.decide(request, context, now_ms)
        if outcome.records:
            encoded = self.encode_all(outcome.records)
            producer = request.producer_id, request.producer_epoch
            self.journal.append_transactional(encoded, *producer, now_ms, verification)
        for entry in outcome.records:
            self.shard.apply_pending(request.producer_id, entry)
        self._arm(self)
        assert outcome.reply is not None
        return outcome.reply

    def append_marker(self, end: TransactionEnd, now_ms: int) -> int:
        """Append the marker that ends a producer's transaction, and commit or drop its offsets. Out: the
        marker's offset. KafkaError: nothing was appended or changed."""
        if self.error is not None or self.work_queue.is_busy:
            raise GROUPS_NOT_READY.copy()
        offset = self.journal.append_marker(end, now_ms)
        self.shard.complete_transaction(end.producer_id, end.producer_epoch, is_commit=end.is_commit)
        return offset


class TransactionalCommit(LongRequest):
    """A TxnOffsetCommit request that is long, or waited behind a long one."""

    __slots__ = ("_groups", "_refuse", "_verification")

    request: TxnOffsetCommitRequest

    def __init__(
        self,
        host: GroupHost,
        request: TxnOffsetCommitRequest,
        context: RequestContext,
        verification: Verification | None,
        refuse: Refuse,
    ) -> None:
        super().__init__(host, request, context)
        self._groups = host
        self._verification = verification
        self._refuse = refuse

    def decide_now(self) -> Message:
        return self._groups.commit_in_transaction_now(self.request, self.context, self._verification)

    def append(self, framed: list[bytes], now_ms: int) -> None:
        producer = self.request.producer_id, self.request.producer_epoch
        self._groups.journal.append_framed_transactional(framed, *producer, now_ms, self._verification)

    def apply(self, records: Sequence[Entry]) -> None:
        for entry in records:
            self._groups.shard.apply_pending(self.request.producer_id, entry)

    def keeps_state_after(self, error: KafkaError) -> bool:
        return True  # a refused append has changed nothing

    def refusal(self, error: KafkaError) -> Message:
        return self._refuse(error)
