"""The host of one shard of share state: one partition of `__share_group_state`.

In: requests for its share partitions. Out: outcomes of the shard, encoded records, and a log that starts at
the first record that is needed.
Does not know: appending, waiting, loading (see `host`), the state of share partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinators.host import CoordinatorHost
from barnabas.broker.coordinators.loading import Loading
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.protocol.messages.read_share_group_state_summary import ReadShareGroupStateSummaryRequest
from barnabas.protocol.messages.write_share_group_state import WriteShareGroupStateRequest
from barnabas.records.record import iter_records
from barnabas.shares.state.apis import refusal, turn_into_error
from barnabas.shares.state.outcome import ShareOutcome
from barnabas.shares.state.records import decode, encode
from barnabas.shares.state.shard import ShareStateShard

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.coordinators.host import Outcome
    from barnabas.broker.coordinators.share_coordinator import ShareCoordinator
    from barnabas.broker.partitions.partition import Partition
    from barnabas.metadata.steps import Steps
    from barnabas.records.batch import BatchHeader
    from barnabas.storage.logs.log import Log


class ShareHost(CoordinatorHost[ShareStateShard]):
    __slots__ = ("_coordinator", "last_pruned_offset")

    encode = staticmethod(encode)
    turn_into_error = staticmethod(turn_into_error)
    # A state has its deadlines from its beginning on.
    sets_no_deadline = frozenset(
        (WriteShareGroupStateRequest, ReadShareGroupStateRequest, ReadShareGroupStateSummaryRequest)
    )

    def __init__(self, coordinator: ShareCoordinator, partition: Partition) -> None:
        self._coordinator = coordinator
        self.last_pruned_offset: int | None = None
        super().__init__(coordinator, partition)

    # -- what `CoordinatorHost` calls --------------------------------------------------------------

    def compression(self) -> int:
        codec: int = self._broker.settings["share.coordinator.state.topic.compression.codec"]
        return codec

    def load_bytes_max(self) -> int:
        size: int = self._broker.settings["share.coordinator.load.buffer.size"]
        return size

    def commit_timeout_ms(self) -> int:
        timeout_ms: int = self._broker.settings["share.coordinator.write.timeout.ms"]
        return timeout_ms

    def new_shard(self) -> ShareStateShard:
        return self._coordinator.new_shard()

    def new_loading(self) -> Loading:
        return ShareLoading(self.partition.log, self.shard)

    def refusal(self, request: Message, error: KafkaError, version: int) -> Message:
        found: Message = refusal(request, error)
        return found

    def decide(self, request: Any, context: RequestContext, now_ms: int) -> ShareOutcome:
        outcome = self.shard.handle(request, self._broker.image, now_ms)
        if type(request) is WriteShareGroupStateRequest:
            self._coordinator.writes += sum(len(topic.partitions) for topic in request.topics)
        elif type(request) is ReadShareGroupStateRequest:
            self._coordinator.writes += len(outcome.records)
        return outcome

    def decide_by_time(self, now_ms: int) -> Iterable[ShareOutcome]:
        return self.shard.on_timer(now_ms, self._broker.image)

    def loaded(self, now_ms: int) -> Iterable[ShareOutcome]:
        return ()

    def keeps_state_after(self, error: KafkaError, request: Message | None) -> bool:
        """A decision changes nothing, so the shard is as it was when none of its records was appended."""
        return error.code in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.NOT_ENOUGH_REPLICAS)

    def append(self, decided: Outcome, now_ms: int) -> None:
        super().append(decided, now_ms)
        self.shard.next_offset = self.journal.end_offset - len(decided.records)

    # -- pruning -----------------------------------------------------------------------------------

    def carry_out(self, outcome: Any, now_ms: int, request: Message | None = None) -> None:
        super().carry_out(outcome, now_ms, request)
        if outcome.prune_offset is not None:
            self._prune(outcome.prune_offset)

    def _prune(self, offset: int) -> None:
        """Delete the records below the offset, if the record at it is committed; else the next time."""
        partition = self.partition
        if offset >= partition.high_watermark:
            return  # a new leader may not have the record at the offset
        if partition.log.advance_log_start(offset):
            partition.wake_followers()
        self.shard.pruned(offset)
        self.last_pruned_offset = offset


class ShareLoading(Loading):
    """The shard needs the offsets of records too: they say what can be deleted."""

    __slots__ = ("_shard",)

    def __init__(self, partition_log: Log, shard: ShareStateShard) -> None:
        super().__init__(partition_log, decode, shard.apply)
        self._shard = shard

    def replay_batch(self, data: bytes, position: int, header: BatchHeader) -> Steps[None]:
        if header.is_control:
            return
        shard = self._shard
        for record in iter_records(data, position=position):
            if record.offset < self.next_offset or record.key is None:
                continue
            self.records += 1
            entry = decode(record.key, record.value)
            if entry is None:
                self._skipped(record.key, record.offset)
                continue
            shard.next_offset = record.offset
            shard.apply(entry)
            yield
