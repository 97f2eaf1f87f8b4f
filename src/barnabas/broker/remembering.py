"""What a channel remembers of its requests, for those that come again but for a few numbers.

In: requests that were handled the long way. Out: the next of their kind handled by a shortcut, a producer's
batch (`Shortcut`) or a follower's fetch (`FollowedTail`); False where one has to be decoded after all. A part
of `Channel`. Does not know: how requests are read, how answers leave.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.followed_tail import FollowedTail
from barnabas.broker.follower_fetch import FollowerFetch
from barnabas.broker.held_answers import HeldAnswer
from barnabas.broker.shortcut import ENVELOPE_AT, Shortcuts
from barnabas.protocol import KafkaError
from barnabas.records.batch import BATCH_OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.channel import Channel
    from barnabas.broker.context import RequestContext
    from barnabas.broker.partition import Partition
    from barnabas.broker.routes import Route
    from barnabas.broker.server import Listener
    from barnabas.broker.shortcut import Topic as ProduceTopic
    from barnabas.broker.tick import Tick
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.protocol.messages.produce import ProduceRequest
    from barnabas.replication.fetch_sessions import FetchContext, SessionPartition

ALL = -1  # acks: every replica in sync has it


class Remembering:
    __slots__ = ("_named_last", "_shortcuts", "_tail")

    _named_last: SessionPartition | None  # by a follower, alone
    _shortcuts: Shortcuts | None
    _tail: FollowedTail | None

    if TYPE_CHECKING:  # the channel's
        _body_at: int
        _frame: memoryview
        _now_ms: Callable[[], int]
        _route: Route
        context: RequestContext
        listener: Listener
        tick: Tick

        def hold_answer(self, held: HeldAnswer) -> None: ...
        def put(self, answer: bytes) -> None: ...
        def _handled(self, route: Route, correlation_id: int, answer: Any, started: int) -> None: ...

    def _produce_again(self, frame: memoryview, version: int, correlation_id: int) -> bool:
        """Append the batch of a produce request like an earlier one. False: decode it instead."""
        assert self._shortcuts is not None
        known = self._shortcuts.find(frame)
        if known is None or known[0].version != version:
            return False
        shortcut, batch = known
        partition = shortcut.partition
        verification = None
        if shortcut.transactional_id is not None:
            verification = shortcut.verify(batch, self.context.broker)
            if verification is None:
                return False
        header = None if partition.rules.header_suffices else bytes(batch[:BATCH_OVERHEAD])
        try:
            base_offset, append_time_ms = partition.append(
                batch, shortcut.acks, version, self._now_ms(), verification
            )
        except KafkaError:
            # Nothing was staged: the ordinary way finds the same, in a batch as it came, and how to say it.
            if header is not None:
                batch[:BATCH_OVERHEAD] = header
            return False
        tick, channel = self.tick, cast("Channel", self)
        if shortcut.acks == ALL and not partition.state.is_alone:
            held = HeldAnswer.again(channel, shortcut, correlation_id, base_offset, append_time_ms)
            self.hold_answer(held)
        elif tick.is_open:
            tick.answer_again(channel, shortcut, correlation_id, base_offset, append_time_ms)
        else:  # a duplicate: nothing to write
            self.put(shortcut.answer(correlation_id, base_offset, append_time_ms))
            shortcut.route.times.observe(0)
        return True

    def _follow_again(self, frame: memoryview, version: int, correlation_id: int) -> bool:
        """Take a follower's fetch like its last. False: decode it instead."""
        tail = self._tail
        assert tail is not None
        if version != tail.route.version:
            return False
        started = perf_counter_ns()
        session = tail.fetch(frame[ENVELOPE_AT:])
        if session is None:
            return False
        self.context.version = version
        attempt = FollowerFetch(tail.request, session, self.context, tail.follower, tail)
        answer = attempt.serve() if tail.has_news else attempt.wait()
        self._handled(tail.route, correlation_id, answer, started)
        return True

    def learn_tail(self, request: FetchRequest, session: FetchContext, follower: int) -> None:
        """Remember a follower's fetch that names the same one partition for the second time in a row."""
        named = session.named
        asked = named[0] if len(named) == 1 and not session.full else None
        before, self._named_last = self._named_last, asked
        if (
            asked is None
            or asked is not before
            or asked.attachment is None
            or asked.session is None  # named, and forgotten at once
            or self.listener.router.is_guarded
        ):
            return
        frame, route = self._frame[ENVELOPE_AT:], self._route
        head = bytes(self._frame[ENVELOPE_AT : self._body_at])
        tail = FollowedTail(self.context.broker, route, follower, request, asked, head)
        self._tail = tail if tail.stands_for(frame) else None

    def learn(self, request: ProduceRequest, partition: Partition, topic: ProduceTopic) -> None:
        """Remember how this produce request began, for the next one like it."""
        if self.listener.router.is_guarded:
            return
        if self._shortcuts is None:
            self._shortcuts = Shortcuts()
        self._shortcuts.learn(self._frame, request, partition, self._route, topic)

    def forget_shortcuts(self) -> None:
        """Every request is counted from now on."""
        self._shortcuts = self._tail = None
