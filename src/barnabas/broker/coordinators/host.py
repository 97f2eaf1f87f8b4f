"""The host of one shard of a coordinator: a decision host whose responses leave at the end of the tick.

In: requests for keys of one partition of the coordinator's topic, time, metadata. Out: responses. To the life
of a decision (see `decisions.host`) it adds: requests that wait for others (joins, syncs), which hold a token
until an outcome has their response; the loading of the shard, at the start and after a failed append; and
deadlines. Subclasses serve groups, transactions and share state.
Does not know: what the records mean, which partitions this broker leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.large_requests import encoded_in_pieces
from barnabas.broker.coordinators.journal import (
    LOADING,
    NOT_HERE,
    CoordinatorJournal,
    KeyAndValue,
    as_coordinator_error,
)
from barnabas.broker.coordinators.long_requests import LongRequest
from barnabas.broker.coordinators.stats import SAMPLED
from barnabas.decisions.host import DecisionHost
from barnabas.decisions.uncommitted import UncommittedResponses
from barnabas.decisions.work_queue import as_steps
from barnabas.metadata.topic_changes import NO_CHANGES, TopicChanges
from barnabas.protocol import ErrorCode, KafkaError, Message, ProtocolError
from barnabas.protocol.errors import EncodingError

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.coordinators.coordinator import Coordinator
    from barnabas.broker.coordinators.loading import Loading
    from barnabas.broker.partitions.partition import Partition
    from barnabas.metadata.image import MetadataImage
    from barnabas.metadata.steps import Steps

log = logging.getLogger("barnabas.coordinator")
TOO_LATE = KafkaError(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "The followers have not replicated the records in time."
)
FULL = KafkaError(
    ErrorCode.COORDINATOR_NOT_AVAILABLE, "Too many requests wait for the coordinator's followers."
)
QUEUE_FULL = KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "Too many requests wait for a long one.")
Token = Any
"""Identifies a waiting request; the shard chooses it."""


class Outcome(Protocol):
    """A decision of the shard: records to append together, and responses to send when they are committed."""

    @property
    def records(self) -> Sequence[Any]: ...
    @property
    def reply(self) -> Message | None: ...
    @property
    def waiting_token(self) -> Token | None: ...
    @property
    def responses(self) -> Sequence[tuple[Token, Message]]: ...
    @property
    def encoded(self) -> Sequence[KeyAndValue] | None:
        """The encoded records, if the decision has encoded them already."""


class Shard(Protocol):
    """The state of one partition of the coordinator's topic."""

    def apply_all(self, entries: Sequence[Any], /) -> None: ...
    def next_deadline_ms(self) -> int | None: ...
    def on_clock_set(self, by_ms: int, /) -> None: ...
    def metadata_changed(
        self, image: MetadataImage, changes: TopicChanges, now_ms: int, /
    ) -> Iterable[Any]: ...
    def unload(self) -> Iterable[tuple[Any, Message]]: ...


S = TypeVar("S", bound=Shard)


class CoordinatorHost(DecisionHost[Any], Generic[S]):
    __slots__ = (
        "_arm", "_broker", "_load_slots", "_load_times_ms", "_uncommitted", "_waiting", "armed_ms", "journal",
        "load_task", "now_ms", "partition", "shard", "stats",
    )  # fmt: skip

    def __init__(self, coordinator: Coordinator[Any], partition: Partition) -> None:
        broker = self._broker = coordinator.broker
        super().__init__(
            broker.pieces, partition.new_commit_waits(), queue_full=QUEUE_FULL, full=FULL, error=LOADING
        )
        self._load_slots = coordinator.load_slots
        self._load_times_ms = coordinator.load_times_ms
        self.now_ms: Callable[[], int] = coordinator.deadlines.now_ms
        self._arm: Callable[[CoordinatorHost[Any]], None] = coordinator.deadlines.arm
        self.partition = partition
        self.stats = coordinator.stats
        self.journal = CoordinatorJournal(partition, self.compression(), self.stats)
        self.shard: S = self.new_shard()
        self.armed_ms: int | None = None  # when the coordinator will call `on_timer`
        self.load_task: asyncio.Task[None] | None = None
        self._waiting: dict[Token, Deferred] = {}
        self._uncommitted = UncommittedResponses(
            broker.loop,
            self.commit_timeout_ms(),
            TOO_LATE,
            self.turn_into_error,
            self.commit_waits,
            self.stats.waited_for_commit,
        )

    # -- what subclasses define ----------------------------------------------

    def compression(self) -> int:
        """The compression of batches in the partition."""
        raise NotImplementedError

    def load_bytes_max(self) -> int:
        """How many bytes to read at once while loading."""
        raise NotImplementedError

    def commit_timeout_ms(self) -> int:
        """How long a response waits for followers before it becomes an error."""
        raise NotImplementedError

    def new_shard(self) -> S:
        """Make an empty shard."""
        raise NotImplementedError

    def new_loading(self) -> Loading:
        """Make a replay of the partition into the shard."""
        raise NotImplementedError

    def decide(self, request: Any, context: RequestContext, now_ms: int) -> Outcome:
        """Let the shard decide on a request."""
        raise NotImplementedError

    def is_long(self, request: Any) -> bool:
        """Whether a decision takes so long that it must run in steps."""
        return False

    def decide_in_steps(self, request: Any, context: RequestContext, now_ms: int) -> Steps[Outcome]:
        """Do the same as `decide`, in steps."""
        raise NotImplementedError

    read_only: ClassVar[frozenset[type[Message]]] = frozenset()
    """Long requests that change nothing: others need not wait for them."""

    def decide_by_time(self, now_ms: int) -> Iterable[Any]:
        """Let the shard decide on deadlines that have come."""
        raise NotImplementedError

    def encode(self, entry: Any) -> KeyAndValue:
        raise NotImplementedError

    def refusal(self, request: Message, error: KafkaError, version: int) -> Message:
        """The error response to a request that is not handled at all."""
        raise NotImplementedError

    def turn_into_error(self, response: Message, error: KafkaError) -> None:
        """Turn a response that was ready into an error response."""
        raise NotImplementedError

    def replayed(self, now_ms: int) -> Steps[None]:
        """Prepare the shard after the log was replayed. May be called again."""
        return
        yield

    def loaded(self, now_ms: int) -> Iterable[Any]:
        """The shard is complete: outcomes that follow from that."""
        raise NotImplementedError

    def count_records(self, records: Sequence[Any], request: Message | None) -> None:
        """Count the records of a decision, for metrics."""

    sets_no_deadline: ClassVar[frozenset[type[Message]]] = frozenset()
    """Requests after which no deadline is earlier than before."""

    def keeps_state_after(self, error: KafkaError, request: Message | None) -> bool:
        """Whether the shard stays valid when the log refused the records of this request."""
        return False

    # -- loading ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Load the shard: at once if the log is empty, else in a task."""
        partition_log = self.partition.log
        self.partition.before_write = self.journal.flush
        self.partition.on_lost = self.reload_after
        self.partition.wait(self._on_high_watermark)
        if partition_log.log_start_offset >= partition_log.end_offset:
            self._activate()
        else:
            self.load_task = self._broker.loop.create_task(self._load())

    async def _load(self) -> None:
        broker = self._broker
        bytes_max = self.load_bytes_max()
        async with self._load_slots:
            loading = self.new_loading()
            started_ms = broker.clock.now_ms()
            try:
                while self.error is LOADING:
                    if loading.next_offset < self.partition.log.end_offset:
                        data, upper_offset = await broker.threads.run(loading.read, bytes_max)
                        if self.error is LOADING:
                            await broker.pieces.run(loading.replay(data, upper_offset))
                        continue
                    await broker.pieces.run(self.replayed(self.now_ms()))
                    if loading.next_offset >= self.partition.log.end_offset:
                        break
            except (KafkaError, ProtocolError, ValueError) as error:
                log.error("cannot load %s, its keys have no coordinator: %s", self.partition, error)
                self._refuse(NOT_HERE)
                return
            except Exception:
                log.exception("cannot load %s, its keys have no coordinator", self.partition)
                self._refuse(NOT_HERE)
                return
        if self.error is LOADING:
            self._activate()
            took_ms = broker.clock.now_ms() - started_ms
            self._load_times_ms.append(took_ms)
            log.info("loaded %d records of %s in %d ms", loading.records, self.partition, took_ms)

    def _activate(self) -> None:
        now_ms = self.now_ms()
        self.error = None
        self.carry_out_all(self.loaded(now_ms), now_ms)
        self.metadata_changed(NO_CHANGES, now_ms)

    def close(self) -> None:
        """Refuse all requests: this broker does not lead the partition any more."""
        self.partition.on_lost = None
        self.partition.leave(self._on_high_watermark)
        self._refuse(NOT_HERE)

    def _refuse(self, why: KafkaError, lost: KafkaError = NOT_HERE) -> None:
        """Refuse requests from now on, and all that wait."""
        was_active = self.error is None
        self.refuse_all(why)
        self._uncommitted.fail_all(lost)
        waiting, self._waiting = self._waiting, {}
        if was_active or waiting:
            for token, message in self.shard.unload():
                deferred = waiting.pop(token, None)
                if deferred is not None:
                    deferred.resolve(message)

    def reload_after(self, error: KafkaError) -> None:
        """Drop the shard and replay the log: the shard has applied records that are not in it. This happens
        in a later turn of the loop, since the tick may be writing now."""
        if self.error is not None:
            return
        log.error("could not write to %s, loading it again: %s", self.partition, error.message)
        self.error = LOADING
        self._broker.loop.call_soon(self._restart, as_coordinator_error(error))

    def _restart(self, error: KafkaError) -> None:
        if self.partition.is_dirty:
            # Records of this tick are not written yet, and must be replayed too.
            self._broker.loop.call_soon(self._restart, error)
            return
        if self.error is not LOADING or (self.load_task is not None and not self.load_task.done()):
            return
        self.error = None
        self._refuse(LOADING, error)
        self.shard = self.new_shard()
        self.generation += 1
        if self.partition.is_leader:
            self.partition.leave(self._on_high_watermark)
            self.start()

    # -- requests --------------------------------------------------------------------------------

    def handle(self, request: Message, context: RequestContext) -> Message | Deferred | None:
        """Handle a request. Out: the response, now or deferred, or None when the tick will send it. An error
        response depends on no records and does not wait for followers."""
        try:
            if self.is_long(request):
                return encoded_in_pieces(self._decide_in_pieces(request, context), context)
            if self.error is None and not self.work_queue.is_busy:
                response: Message | Deferred = self.decide_now(request, context)
            else:
                response = self._decide_in_pieces(request, context)
        except KafkaError as error:
            return self.refusal(request, error, context.version)
        return self.respond(response, context)

    def respond(self, response: Message | Deferred, context: RequestContext) -> Message | Deferred | None:
        """Respond to the request that is being handled once everything appended is committed."""
        if type(response) is Deferred:
            return response
        assert isinstance(response, Message)
        partition = self.partition
        if partition.is_dirty and partition.state.has_no_followers:  # the end of this tick commits everything
            return context.channel.respond_after_tick(response, self._not_written)
        return response if self.journal.is_all_committed else self._when_committed(response)

    def handle_part(self, request: Message, context: RequestContext) -> Message | Deferred:
        """Do the same as `handle` for a part of a client's request, or for a request that waited."""
        try:
            if self.is_long(request):
                return self._decide_in_pieces(request, context)
            if self.error is None and not self.work_queue.is_busy:
                response: Message | Deferred = self.decide_now(request, context)
            else:
                response = self._decide_in_pieces(request, context)
        except KafkaError as error:
            return self.refusal(request, error, context.version)
        if isinstance(response, Deferred) or self.journal.is_all_committed:
            return response
        return self._when_committed(response)

    def decide_now(self, request: Message, context: RequestContext) -> Message | Deferred:
        """Decide on a request while no long work is under way."""
        self.check_room()
        now_ms = self.now_ms()
        started_ns = 0 if context.correlation_id & SAMPLED else perf_counter_ns()
        outcome = self.decide(request, context, now_ms)
        self.carry_out(outcome, now_ms, request)
        if started_ns:
            self.stats.processing.observe(perf_counter_ns() - started_ns)
        if type(request) not in self.sets_no_deadline:
            self._arm(self)
        if outcome.waiting_token is not None:
            return self.wait(outcome.waiting_token)
        assert outcome.reply is not None, f"{type(request).__name__} has no response"
        return outcome.reply

    def _decide_in_pieces(self, request: Message, context: RequestContext) -> Deferred:
        """Decide in steps, behind the work that is under way."""
        self.check_open()
        deferred = Deferred()
        steps = LongRequest(self, request, context).respond(deferred)
        if type(request) in self.read_only:
            self._broker.pieces.begin(steps)
        else:
            self.work_queue.check_capacity()
            self.work_queue.add(steps)
        return deferred

    def resolve_when_committed(self, response: Message | Deferred, deferred: Deferred) -> None:
        """Resolve `deferred` with a response once everything appended is committed."""
        if isinstance(response, Deferred):
            deferred.follow(response)
        elif self.journal.is_all_committed:
            deferred.resolve(response)
        else:
            self._uncommitted.hold(self.journal.end_offset, deferred.resolve, response)

    def wait(self, token: Token) -> Deferred:
        """The response to a request that waits for a later outcome."""
        deferred = self._waiting[token] = Deferred(partial(self._forget, token))
        return deferred

    def _forget(self, token: Token) -> None:
        """Forget a waiting request whose connection was lost."""
        self._waiting.pop(token, None)

    def _when_committed(self, reply: Message) -> Deferred:
        deferred = Deferred()
        self._uncommitted.hold(self.journal.end_offset, deferred.resolve, reply)
        return deferred

    def _not_written(self, response: Message, partition: Partition, error: KafkaError) -> None:
        if partition is self.partition:
            self.turn_into_error(response, as_coordinator_error(error))

    # -- outcomes --------------------------------------------------------------------------------

    def on_timer(self, now_ms: int) -> None:
        if self.work_queue.is_busy:
            self.work_queue.add(as_steps(self.on_time_now, now_ms))
        else:
            self.on_time_now(now_ms)

    def on_time_now(self, now_ms: int) -> None:
        if self.error is None:
            self.carry_out_all(self.decide_by_time(now_ms), now_ms)

    def metadata_changed(self, changes: TopicChanges, now_ms: int) -> None:
        if self.work_queue.is_busy:
            self.work_queue.add(as_steps(self.metadata_changed_now, changes, now_ms))
        else:
            self.metadata_changed_now(changes, now_ms)

    def metadata_changed_now(self, changes: TopicChanges, now_ms: int) -> None:
        if self.error is None:
            self.carry_out_all(self.shard.metadata_changed(self._broker.image, changes, now_ms), now_ms)

    def arm(self) -> None:
        """Schedule a call of `on_timer` at the next deadline."""
        self._arm(self)

    def carry_out_all(self, outcomes: Iterable[Any], now_ms: int) -> None:
        for outcome in outcomes:
            try:
                self.carry_out(outcome, now_ms)
            except KafkaError:
                return  # `reload_after` has logged it
        self._arm(self)

    def carry_out(self, outcome: Any, now_ms: int, request: Message | None = None) -> None:
        """Append and apply the records, then respond to waiting requests. On KafkaError nothing was applied,
        and the waiting requests get the error, since the shard has forgotten them."""
        if outcome.records:
            self.append_and_apply(outcome, now_ms, request)
            self.count_records(outcome.records, request)
        if outcome.responses:
            self.respond_to_waiting(outcome)

    def send_calls(self, outcome: Any) -> None:
        """Send the requests to other coordinators that follow from a long request."""

    def refuse_waiting(self, decided: Outcome, error: KafkaError) -> None:
        """Send the error to the waiting requests that the outcome has responses for."""
        for token, message in decided.responses:
            self.turn_into_error(message, error)
            self._resolve_waiting(token, message)

    def respond_to_waiting(self, outcome: Outcome) -> None:
        """Send the outcome's responses to waiting requests once everything is committed."""
        if self.journal.is_all_committed:
            for token, message in outcome.responses:
                self._resolve_waiting(token, message)
        else:
            offset = self.journal.end_offset
            for token, message in outcome.responses:
                self._uncommitted.hold(offset, partial(self._resolve_waiting, token), message)

    def append(self, decided: Outcome, now_ms: int) -> None:
        encoded = decided.encoded
        if encoded is None:
            encoded = self.encode_all(decided.records)
        try:
            self.journal.append(encoded, now_ms)
        except KafkaError as error:
            if error.code != ErrorCode.MESSAGE_TOO_LARGE or any(value for _, value in encoded):
                raise
            self.journal.append_in_parts(encoded, now_ms)  # tombstones, each valid alone

    def apply(self, decided: Outcome) -> None:
        self.shard.apply_all(decided.records)

    def as_refusal(self, error: KafkaError) -> KafkaError:
        return as_coordinator_error(error)

    def encode_all(self, entries: Sequence[Any]) -> list[KeyAndValue]:
        encode = self.encode
        try:
            return [encode(entry) for entry in entries]
        except EncodingError as error:  # a name is longer than its field in the record allows
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error

    def _resolve_waiting(self, token: Token, message: Message) -> None:
        deferred = self._waiting.pop(token, None)
        if deferred is not None:  # else the connection was lost
            deferred.resolve(message)

    def _on_high_watermark(self, partition: Partition) -> None:
        """The high watermark has moved: send the responses that waited for it."""
        self._uncommitted.committed(partition.state.high_watermark)
