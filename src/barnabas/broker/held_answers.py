"""Answers to producers that want every replica in sync to have their batches (`acks=all`).

In: an answer, and the places in partitions that it waits for. Out: the answer, when the high watermark of
each has passed; or why not: the leader changed, too few are in sync, the client's patience is over. Answers
of one channel leave in the order of its requests (see `Channel.held`).
Does not know: followers, logs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from barnabas.protocol import ErrorCode, KafkaError, Message

if TYPE_CHECKING:
    from barnabas.broker.channel import Channel
    from barnabas.broker.partition import Partition
    from barnabas.broker.routes import Route
    from barnabas.broker.shortcut import Shortcut

Wait = tuple["Partition", int]
"""A partition, and where a batch begins in it: batches are replicated whole."""
Refuse = Callable[[Message, "Partition", KafkaError], None]
SWEEP_SECONDS = 0.5


class HeldAnswer:
    __slots__ = (
        "_correlation_id", "_how", "_missing", "_problem", "_refuse", "_response", "_started_ns", "_times",
        "_waits", "channel", "is_ready", "timeout_ms",
    )  # fmt: skip

    def __init__(
        self,
        channel: Channel,
        route: Route | Shortcut,
        correlation_id: int,
        response: Any,
        waits: list[Wait],
        timeout_ms: int,
        refuse: Refuse | None,
    ) -> None:
        self.channel = channel
        self.timeout_ms = timeout_ms
        self.is_ready = False
        self._how = route
        self._correlation_id = correlation_id
        self._response = response  # a message; base offset and append time where a shortcut knows the rest
        self._waits = waits
        self._refuse = refuse
        self._missing = 0
        self._problem: KafkaError | None = None  # of the one batch that came by a shortcut
        self._started_ns = perf_counter_ns()

    @classmethod
    def again(
        cls,
        channel: Channel,
        shortcut: Shortcut,
        correlation_id: int,
        base_offset: int,
        append_time_ms: int,
    ) -> HeldAnswer:
        """The answer to a request that took the shortcut."""
        waits = [(shortcut.partition, base_offset)]
        response = base_offset, append_time_ms
        return cls(channel, shortcut, correlation_id, response, waits, shortcut.timeout_ms, None)

    def written(self, failed: dict[Partition, KafkaError]) -> None:
        """Everything is in the leader's files, except what failed: wait for the others."""
        missing = 0
        for wait in self._waits:
            where, base_offset = wait
            if where in failed:
                self._spoil(where, failed[where])
            elif not where.is_leader:
                self._spoil(where, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            elif where.state.high_watermark > base_offset:
                self._check(where)
            else:
                missing += 1
                where.when_committed(base_offset, partial(self._arrived, where))
        channel = self.channel
        if missing:
            self._missing = missing
            channel.held_back(self)
            channel.listener.broker.purgatory.add(self)
        else:
            self.is_ready = True
            if channel.held:
                channel.held.append(self)
            else:
                self.encode_into(channel)
                if not channel.answers_waiting and not channel.tick.is_open:
                    channel.send()

    def _arrived(self, where: Partition, error: KafkaError | None) -> None:
        if self.is_ready:
            return  # it was given up
        if error is not None:
            self._spoil(where, error)
        else:
            self._check(where)
        self._missing -= 1
        if not self._missing:
            self.is_ready = True
            self.channel.tick.committed(self.channel)

    def _check(self, where: Partition) -> None:
        if not where.state.has_enough_in_sync:
            self._spoil(
                where,
                KafkaError(
                    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                    f"{where} has {len(where.state.maximal_isr)} replicas in sync, "
                    f"min.insync.replicas is {where.min_insync_replicas}",
                ),
            )

    def give_up(self) -> None:
        """The client does not want to wait any longer."""
        if self.is_ready:
            return
        error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        for where, base_offset in self._waits:
            if where.state.high_watermark <= base_offset:
                self._spoil(where, error)
        self.is_ready = True
        self.channel.release_held()

    def _spoil(self, where: Partition, error: KafkaError) -> None:
        if self._refuse is None:
            self._problem = error
        else:
            self._refuse(self._response, where, error)

    def encode_into(self, channel: Channel) -> None:
        how = self._how
        if self._refuse is not None:
            channel.encode_to(channel.out, how, self._correlation_id, self._response)  # type: ignore[arg-type]
            how.times.observe(perf_counter_ns() - self._started_ns)  # type: ignore[union-attr]
            return
        shortcut: Shortcut = how  # type: ignore[assignment]
        if self._problem is not None:
            channel.encode_to(
                channel.out, shortcut.route, self._correlation_id, shortcut.refusal(self._problem)
            )
        else:
            channel.out.append(shortcut.answer(self._correlation_id, *self._response))
        shortcut.route.times.observe(perf_counter_ns() - self._started_ns)


class Purgatory:
    """Answers that wait, until they need not: one timer for all of them."""

    __slots__ = ("_loop", "_timer", "_waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[float, HeldAnswer]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(not held.is_ready for _, held in self._waiting)

    def add(self, held: HeldAnswer) -> None:
        waiting = self._waiting
        while waiting and waiting[0][1].is_ready:
            waiting.popleft()
        waiting.append((self._loop.time() + held.timeout_ms / 1000, held))
        if self._timer is None:
            self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        now = self._loop.time()
        still: deque[tuple[float, HeldAnswer]] = deque()
        for deadline, held in self._waiting:
            if held.is_ready:
                continue
            if deadline <= now:
                held.give_up()
            else:
                still.append((deadline, held))
        self._waiting = still
        self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep) if still else None

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
