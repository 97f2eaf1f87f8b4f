"""The host of one shard of a coordinator: decides, appends to its partition, applies, answers when committed.

In: requests for keys of one partition of the coordinator's topic, time, metadata. Out: answers. Requests that
wait (joins, syncs) hold a token until an outcome answers it. What is decided rests on everything appended
before, committed or not, so no answer leaves before all of that is committed. If an append fails, the shard
is dropped and replayed from the log. What groups and transactions have of their own is in their subclasses.
Does not know: what the records mean, which partitions this broker leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
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
from barnabas.broker.coordinators.uncommitted import FULL, UncommittedResponses
from barnabas.broker.coordinators.work_queue import WorkQueue, as_steps
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
Token = Any
"""Names a request that waits; the shard chooses it."""


class Outcome(Protocol):
    """What a shard decided: records to append together, answers for when they are committed."""

    @property
    def records(self) -> Sequence[Any]: ...
    @property
    def reply(self) -> Message | None: ...
    @property
    def waits_as(self) -> Token | None: ...
    @property
    def answers(self) -> Sequence[tuple[Token, Message]]: ...
    @property
    def encoded(self) -> Sequence[KeyAndValue] | None:
        """The records' bytes, where they were made on the way."""


class Shard(Protocol):
    """The state of one partition of the coordinator's topic."""

    def apply_all(self, entries: Sequence[Any], /) -> None: ...
    def next_deadline_ms(self) -> int | None: ...
    def clock_was_set(self, by_ms: int, /) -> None: ...
    def metadata_changed(
        self, image: MetadataImage, changes: TopicChanges, now_ms: int, /
    ) -> Iterable[Any]: ...
    def unload(self) -> Iterable[tuple[Any, Message]]: ...


S = TypeVar("S", bound=Shard)


class CoordinatorHost(Generic[S]):
    __slots__ = (
        "_arm", "_broker", "_load_slots", "_load_times_ms", "_uncommitted", "_waiting", "armed_ms", "error",
        "journal", "load_task", "now_ms", "partition", "shard", "work_queue",
    )  # fmt: skip

    def __init__(self, coordinator: Coordinator[Any], partition: Partition) -> None:
        self._broker = coordinator.broker
        self._load_slots = coordinator.load_slots
        self._load_times_ms = coordinator.load_times_ms
        self.now_ms: Callable[[], int] = coordinator.deadlines.now_ms
        self._arm: Callable[[CoordinatorHost[Any]], None] = coordinator.deadlines.arm
        self.partition = partition
        self.journal = CoordinatorJournal(partition, self.compression())
        self.shard: S = self.new_shard()
        self.error: KafkaError | None = LOADING  # why requests are refused; None while they are not
        self.armed_ms: int | None = None  # when the coordinator will call `on_time`
        self.load_task: asyncio.Task[None] | None = None
        self._waiting: dict[Token, Deferred] = {}
        self.work_queue = WorkQueue(self._broker.pieces)
        self._uncommitted = UncommittedResponses(
            self._broker.loop, self.commit_timeout_ms(), self.turn_into_error, self._broker.unexpected
        )

    # -- what each kind of coordinator has of its own ----------------------------------------------

    def compression(self) -> int:
        """Of the batches in the partition."""
        raise NotImplementedError

    def load_bytes_max(self) -> int:
        """How much is read at once while loading."""
        raise NotImplementedError

    def commit_timeout_ms(self) -> int:
        """How long followers may take before an answer says that they did not."""
        raise NotImplementedError

    def new_shard(self) -> S:
        """An empty one."""
        raise NotImplementedError

    def new_loading(self) -> Loading:
        """A replay of the partition into the shard."""
        raise NotImplementedError

    def decide(self, request: Any, context: RequestContext, now_ms: int) -> Outcome:
        """What the shard says to a request."""
        raise NotImplementedError

    def is_long(self, request: Any) -> bool:
        """Whether a decision takes so long that others should be served meanwhile."""
        return False

    def decide_in_steps(self, request: Any, context: RequestContext, now_ms: int) -> Steps[Outcome]:
        """The same as `decide` in steps."""
        raise NotImplementedError

    read_only: ClassVar[frozenset[type[Message]]] = frozenset()
    """Requests in steps that others need not wait for."""

    def decide_by_time(self, now_ms: int) -> Iterable[Any]:
        """What the shard says to a deadline that has come."""
        raise NotImplementedError

    def encode(self, entry: Any) -> KeyAndValue:
        raise NotImplementedError

    def refusal(self, request: Message, error: KafkaError, version: int) -> Message:
        """The answer to a request that is not handled at all."""
        raise NotImplementedError

    def turn_into_error(self, response: Message, error: KafkaError) -> None:
        """Turn an answer that was ready into one that says no."""
        raise NotImplementedError

    def replayed(self, now_ms: int) -> Steps[None]:
        """Everything in the log was replayed: prepare the shard. May be called again."""
        return
        yield

    def loaded(self, now_ms: int) -> Iterable[Any]:
        """The shard is complete: what follows from that."""
        raise NotImplementedError

    sets_no_deadline: ClassVar[frozenset[type[Message]]] = frozenset()
    """Requests after which no deadline is earlier than before."""

    def keeps_state_after(self, error: KafkaError, request: Message | None) -> bool:
        """Whether the shard need not be dropped when records of this request were refused."""
        return False

    # -- loading ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Take up the shard: at once where nothing was ever written, else beside the loop."""
        partition_log = self.partition.log
        self.partition.before_write = self.journal.flush
        self.partition.on_lost = self.reload_after
        self.partition.wait(self._advanced)
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
                log.error("%s cannot be loaded, it has no coordinator: %s", self.partition, error)
                self._refuse(NOT_HERE)
                return
            except Exception:
                log.exception("%s cannot be loaded, it has no coordinator", self.partition)
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
        """This broker does not lead the partition any more: whoever waits is sent away."""
        self.partition.on_lost = None
        self.partition.leave(self._advanced)
        self._refuse(NOT_HERE)

    def _refuse(self, why: KafkaError, lost: KafkaError = NOT_HERE) -> None:
        """Take nothing any more; answer everybody who waits."""
        was_active = self.error is None
        self.error = why
        self.work_queue.finish()  # everybody in it is refused
        self._uncommitted.fail_all(lost)  # of those who wait, too
        waiting, self._waiting = self._waiting, {}
        if was_active or waiting:
            for token, message in self.shard.unload():
                deferred = waiting.pop(token, None)
                if deferred is not None:
                    deferred.resolve(message)

    def reload_after(self, error: KafkaError) -> None:
        """What was appended is not in the log: the shard knows what never was. Replay it, soon: this may be
        called while the tick is being written."""
        if self.error is not None:
            return
        log.error("%s could not be written, it is loaded again: %s", self.partition, error.message)
        self.error = LOADING
        self._broker.loop.call_soon(self._restart, as_coordinator_error(error))

    def _restart(self, error: KafkaError) -> None:
        if self.partition.is_dirty:
            # What others appended in this tick is on its way, and must be replayed too.
            self._broker.loop.call_soon(self._restart, error)
            return
        if self.error is not LOADING or (self.load_task is not None and not self.load_task.done()):
            return
        self.error = None
        self._refuse(LOADING, error)
        self.shard = self.new_shard()
        if self.partition.is_leader:
            self.partition.leave(self._advanced)
            self.start()

    # -- requests --------------------------------------------------------------------------------

    def handle(self, request: Message, context: RequestContext) -> Message | Deferred | None:
        """The answer to a request; None when the tick will send it. A refusal rests on nothing, and waits for
        nothing: this host may have been closed since, or its followers be gone."""
        try:
            if self.is_long(request):
                return encoded_in_pieces(self._decide_in_pieces(request, context), context)
            answer = self._decide(request, context)
        except KafkaError as error:
            return self.refusal(request, error, context.version)
        return self.respond(answer, context)

    def respond(self, answer: Message | Deferred, context: RequestContext) -> Message | Deferred | None:
        """An answer to the request that is being handled, when everything it rests on is committed."""
        if type(answer) is Deferred:
            return answer
        assert isinstance(answer, Message)
        partition = self.partition
        if partition.is_dirty and partition.state.has_no_followers:  # the end of this tick commits everything
            return context.channel.answer_after_tick(answer, self._not_written)
        return answer if self.journal.is_all_committed else self._when_committed(answer)

    def handle_part(self, request: Message, context: RequestContext) -> Message | Deferred:
        """The same as `handle` for a request that is only part of what a client asked, or that waited."""
        try:
            if self.is_long(request):
                return self._decide_in_pieces(request, context)
            answer = self._decide(request, context)
        except KafkaError as error:
            return self.refusal(request, error, context.version)
        if isinstance(answer, Deferred) or self.journal.is_all_committed:
            return answer
        return self._when_committed(answer)

    def _decide(self, request: Message, context: RequestContext) -> Message | Deferred:
        if self.error is not None:
            raise self.error.with_traceback(None)  # else each time adds to what the last left
        if self.work_queue.is_busy:
            return self._decide_in_pieces(request, context)
        return self.decide_now(request, context)

    def decide_now(self, request: Message, context: RequestContext) -> Message | Deferred:
        """The decision on a request, if nothing long is under way or its turn in the line has come."""
        if self._uncommitted.is_full:
            raise FULL.with_traceback(None)  # else each time adds to what the last left
        now_ms = self.now_ms()
        outcome = self.decide(request, context, now_ms)
        self.carry_out(outcome, now_ms, request)
        if type(request) not in self.sets_no_deadline:
            self._arm(self)
        if outcome.waits_as is not None:
            return self._wait(outcome.waits_as)
        assert outcome.reply is not None, f"{type(request).__name__} has no answer"
        return outcome.reply

    def _decide_in_pieces(self, request: Message, context: RequestContext) -> Deferred:
        """Behind what is under way; the answer is given when it is committed."""
        if self.error is not None:
            raise self.error.with_traceback(None)
        deferred = Deferred()
        steps = LongRequest(self, request, context).answer(deferred)
        if type(request) in self.read_only:
            self._broker.pieces.begin(steps)
        else:
            self.work_queue.check_capacity()
            self.work_queue.add(steps)
        return deferred

    def resolve_when_committed(self, answer: Message | Deferred, deferred: Deferred) -> None:
        """Resolve with an answer once everything it rests on is committed."""
        if isinstance(answer, Deferred):
            deferred.follow(answer)
        elif self.journal.is_all_committed:
            deferred.resolve(answer)
        else:
            self._uncommitted.hold(self.journal.end_offset, deferred.resolve, answer)

    def _wait(self, token: Token) -> Deferred:
        deferred = self._waiting[token] = Deferred(partial(self._forget, token))
        return deferred

    def _forget(self, token: Token) -> None:
        """The connection is gone: nobody wants the answer."""
        self._waiting.pop(token, None)

    def _when_committed(self, reply: Message) -> Deferred:
        deferred = Deferred()
        self._uncommitted.hold(self.journal.end_offset, deferred.resolve, reply)
        return deferred

    def _not_written(self, response: Message, partition: Partition, error: KafkaError) -> None:
        if partition is self.partition:
            self.turn_into_error(response, as_coordinator_error(error))

    # -- outcomes --------------------------------------------------------------------------------

    def on_time(self, now_ms: int) -> None:
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
        """See that the host is called at its next deadline."""
        self._arm(self)

    def carry_out_all(self, outcomes: Iterable[Any], now_ms: int) -> None:
        for outcome in outcomes:
            try:
                self.carry_out(outcome, now_ms)
            except KafkaError:
                return  # noted by `_append`
        self._arm(self)

    def carry_out(self, outcome: Any, now_ms: int, request: Message | None = None) -> None:
        """Append, apply, and answer those who waited. KafkaError: nothing of the outcome counts, and they are
        told so: the shard, which has answered them, knows them no more."""
        if outcome.records:
            try:
                self._append(outcome, now_ms, request)
            except KafkaError as error:
                self.refuse_waiting(outcome, error)
                raise
            self.shard.apply_all(outcome.records)
        if outcome.answers:
            self.answer_waiting(outcome)

    def refuse_waiting(self, outcome: Outcome, error: KafkaError) -> None:
        """Tell those whom the outcome would have answered that it does not count."""
        for token, message in outcome.answers:
            self.turn_into_error(message, error)
            self._answer(token, message)

    def answer_waiting(self, outcome: Outcome) -> None:
        """Answer those who waited, once everything is committed."""
        if self.journal.is_all_committed:
            for token, message in outcome.answers:
                self._answer(token, message)
        else:
            offset = self.journal.end_offset
            for token, message in outcome.answers:
                self._uncommitted.hold(offset, partial(self._answer, token), message)

    def _append(self, outcome: Outcome, now_ms: int, request: Message | None) -> None:
        try:
            encoded = outcome.encoded
            if encoded is None:
                encoded = self.encode_all(outcome.records)
            try:
                self.journal.append(encoded, now_ms)
            except KafkaError as error:
                if error.code != ErrorCode.MESSAGE_TOO_LARGE or any(value for _, value in encoded):
                    raise
                self.journal.append_in_parts(encoded, now_ms)  # tombstones, each true alone
        except KafkaError as error:
            if not self.keeps_state_after(error, request):
                self.reload_after(error)
            raise as_coordinator_error(error) from error

    def encode_all(self, entries: Sequence[Any]) -> list[KeyAndValue]:
        encode = self.encode
        try:
            return [encode(entry) for entry in entries]
        except EncodingError as error:  # a name that is longer than the log can hold
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error

    def _answer(self, token: Token, message: Message) -> None:
        deferred = self._waiting.pop(token, None)
        if deferred is not None:  # else the connection is gone
            deferred.resolve(message)

    def _advanced(self, partition: Partition) -> None:
        """The high watermark has moved: what is below it may be answered."""
        self._uncommitted.committed(partition.state.high_watermark)
