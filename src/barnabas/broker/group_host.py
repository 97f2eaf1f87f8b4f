"""The host of one shard of groups: decides, appends to its partition, applies, answers when committed.

In: requests for groups of one partition of `__consumer_offsets`, time, metadata. Out: answers. Requests that
wait (joins, syncs) hold a token until an outcome answers it. What is decided rests on everything appended
before, committed or not, so no answer leaves before all of that is committed. If an append fails, the shard
is dropped and replayed from the log.
Does not know: what the records mean, which partitions this broker leads.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.coordinator_journal import (
    LOADING,
    NOT_HERE,
    CoordinatorJournal,
    KeyAndValue,
    as_coordinator_error,
)
from barnabas.broker.deferred import Deferred
from barnabas.broker.group_loading import Loading
from barnabas.broker.group_refusals import refusal, spoil
from barnabas.groups.outcome import Caller, Outcome, Token
from barnabas.groups.records import Entry, encode
from barnabas.protocol import ErrorCode, KafkaError, Message, ProtocolError
from barnabas.protocol.errors import EncodingError
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.context import RequestContext
    from barnabas.broker.partition import Partition
    from barnabas.groups.shard import GroupShard

log = logging.getLogger("barnabas.groups")


class GroupHost:
    __slots__ = (
        "_arm", "_broker", "_load_slots", "_loading", "_make_shard", "_uncommitted", "_waiting", "armed_ms",
        "error", "journal", "load_task", "partition", "shard",
    )  # fmt: skip

    def __init__(
        self,
        broker: Broker,
        partition: Partition,
        make_shard: Callable[[Partition], GroupShard],
        arm: Callable[[GroupHost], None],
        load_slots: asyncio.Semaphore,
    ) -> None:
        self._broker = broker
        self._load_slots = load_slots
        self._make_shard = make_shard
        self._arm = arm
        self.partition = partition
        self.journal = CoordinatorJournal(partition, broker.settings["offsets.topic.compression.codec"])
        self.shard: GroupShard = make_shard(partition)
        self.error: KafkaError | None = LOADING  # why requests are refused; None while they are not
        self.armed_ms: int | None = None  # when the coordinator will call `on_time`
        self.load_task: asyncio.Task[None] | None = None
        self._loading: Loading | None = None
        self._waiting: dict[Token, Deferred] = {}
        # In the order of offsets: answers that wait until everything below is committed.
        self._uncommitted: deque[tuple[int, Callable[[Message], None], Message]] = deque()

    # -- loading ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Take up the shard: at once where nothing was ever written, else beside the loop."""
        partition_log = self.partition.log
        self.partition.before_write = self.journal.flush
        self.partition.on_lost = self._lost
        self.partition.wait(self._advanced)
        if partition_log.log_start_offset >= partition_log.end_offset:
            self._activate()
        else:
            self.load_task = self._broker.loop.create_task(self._load())

    async def _load(self) -> None:
        broker = self._broker
        bytes_max: int = broker.settings["offsets.load.buffer.size"]
        async with self._load_slots:
            loading = self._loading = Loading(self.partition.log, self.shard)
            started_ms = broker.clock.now_ms()
            try:
                while loading.next_offset < self.partition.log.end_offset and not loading.is_stopped:
                    await broker.threads.run(loading.load_chunk, bytes_max)
            except (KafkaError, ProtocolError, ValueError) as error:
                log.error("%s cannot be loaded, its groups have no coordinator: %s", self.partition, error)
                self._refuse(NOT_HERE)
                return
            except Exception:
                log.exception("%s cannot be loaded, its groups have no coordinator", self.partition)
                self._refuse(NOT_HERE)
                return
        if self.error is LOADING:
            self._activate()
            took_ms = broker.clock.now_ms() - started_ms
            log.info("loaded %d records of %s in %d ms", loading.records, self.partition, took_ms)

    def _activate(self) -> None:
        self._loading = None
        now_ms = self._broker.clock.now_ms()
        self.error = None
        self.shard.loaded(now_ms)
        self.metadata_changed(now_ms)

    def close(self) -> None:
        """This broker does not lead the partition any more: whoever waits is sent away."""
        self.partition.on_lost = None
        self.partition.leave(self._advanced)
        if self._loading is not None:
            self._loading.is_stopped = True
        self._refuse(NOT_HERE)

    def _refuse(self, why: KafkaError, lost: KafkaError = NOT_HERE) -> None:
        """Take nothing any more; answer everybody who waits."""
        was_active = self.error is None
        self.error = why
        uncommitted, self._uncommitted = self._uncommitted, deque()
        waiting, self._waiting = self._waiting, {}
        for _, resolve, message in uncommitted:
            spoil(message, lost)
            resolve(message)
        if was_active or waiting:
            for token, message in self.shard.unload():
                deferred = waiting.pop(token, None)
                if deferred is not None:
                    deferred.resolve(message)

    def _lost(self, error: KafkaError) -> None:
        """What was appended is not in the log: the shard knows what never was. Replay it, soon: this may be
        called while the tick is being written."""
        if self.error is not None:
            return
        log.error("%s could not be written, its groups are loaded again: %s", self.partition, error.message)
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
        self.shard = self._make_shard(self.partition)
        if self.partition.is_leader:
            self.partition.leave(self._advanced)
            self.start()

    # -- requests --------------------------------------------------------------------------------

    def handle(self, request: Message, context: RequestContext) -> Message | Deferred | None:
        """The answer to a request; None when the tick will give it."""
        answer = self._decide(request, context)
        if type(answer) is Deferred or self.journal.is_settled:
            return answer
        assert isinstance(answer, Message)
        if self.journal.settles_with_tick:
            return context.channel.answer_after_tick(answer, self._not_written)
        return self._when_committed(answer)

    def ask(self, request: Message, context: RequestContext) -> Message | Deferred:
        """The same for a request that is only part of what a client asked."""
        answer = self._decide(request, context)
        if isinstance(answer, Deferred) or self.journal.is_settled:
            return answer
        return self._when_committed(answer)

    def _decide(self, request: Message, context: RequestContext) -> Message | Deferred:
        if self.error is not None:
            return refusal(request, self.error, context.version)
        broker = self._broker
        now_ms = broker.clock.now_ms()
        caller = Caller(context.client_id or "", "/" + context.host, context.version)
        try:
            outcome = self.shard.handle(request, caller, broker.image, now_ms)
            self._take(outcome, now_ms, request)
        except KafkaError as error:
            return refusal(request, error, context.version)
        self._arm(self)
        if outcome.waits_as is not None:
            return self._wait(outcome.waits_as)
        assert outcome.reply is not None, f"{type(request).__name__} has no answer"
        return outcome.reply

    def _wait(self, token: Token) -> Deferred:
        deferred = self._waiting[token] = Deferred(partial(self._forget, token))
        return deferred

    def _forget(self, token: Token) -> None:
        """The connection is gone: nobody wants the answer."""
        self._waiting.pop(token, None)

    def _when_committed(self, reply: Message) -> Deferred:
        deferred = Deferred()
        self._uncommitted.append((self.journal.end_offset, deferred.resolve, reply))
        return deferred

    def _not_written(self, response: Message, partition: Partition, error: KafkaError) -> None:
        if partition is self.partition:
            spoil(response, as_coordinator_error(error))

    # -- outcomes --------------------------------------------------------------------------------

    def on_time(self, now_ms: int) -> None:
        if self.error is None:
            self._take_all(self.shard.on_time(now_ms, self._broker.image), now_ms)

    def metadata_changed(self, now_ms: int) -> None:
        if self.error is None:
            self._take_all(self.shard.metadata_changed(self._broker.image, now_ms), now_ms)

    def _take_all(self, outcomes: list[Outcome], now_ms: int) -> None:
        for outcome in outcomes:
            try:
                self._take(outcome, now_ms)
            except KafkaError:
                return  # noted by `_append`
        self._arm(self)

    def _take(self, outcome: Outcome, now_ms: int, request: Message | None = None) -> None:
        """Append, apply, and answer those who waited. KafkaError: nothing of the outcome counts."""
        if outcome.records:
            self._append(outcome, now_ms, request)
            for entry in outcome.records:
                self.shard.apply(entry)
        if not outcome.answers:
            return
        if self.journal.is_settled:
            for token, message in outcome.answers:
                self._answer(token, message)
        else:
            offset = self.journal.end_offset
            for token, message in outcome.answers:
                self._uncommitted.append((offset, partial(self._answer, token), message))

    def _append(self, outcome: Outcome, now_ms: int, request: Message | None) -> None:
        try:
            encoded = encode_all(outcome.records)
            try:
                self.journal.append(encoded, now_ms)
            except KafkaError as error:
                if error.code != ErrorCode.MESSAGE_TOO_LARGE or any(value for _, value in encoded):
                    raise
                self.journal.append_in_parts(encoded, now_ms)  # tombstones, each true alone
        except KafkaError as error:
            # A commit leaves nothing behind in the shard but its records: it need not be dropped.
            if not (error.code == ErrorCode.MESSAGE_TOO_LARGE and type(request) is OffsetCommitRequest):
                self._lost(error)
            raise as_coordinator_error(error) from error

    def _answer(self, token: Token, message: Message) -> None:
        deferred = self._waiting.pop(token, None)
        if deferred is not None:  # else the connection is gone
            deferred.resolve(message)

    def _advanced(self, partition: Partition) -> None:
        """The high watermark has moved: what is below it may be answered."""
        high_watermark = partition.state.high_watermark
        uncommitted = self._uncommitted
        while uncommitted and uncommitted[0][0] <= high_watermark:
            _, resolve, message = uncommitted.popleft()
            resolve(message)


def encode_all(entries: list[Entry]) -> list[KeyAndValue]:
    try:
        return [encode(entry) for entry in entries]
    except EncodingError as error:  # a name that is longer than the log can hold
        raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
