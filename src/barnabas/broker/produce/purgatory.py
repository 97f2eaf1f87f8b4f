"""Responses to produce requests with `acks=all`, which wait for the in-sync replicas.

In: a response, and the offsets of its batches. Out: the response, when the high watermark of each partition
has passed its offset, with an error for a partition if the leader changed, too few replicas are in sync or
the request timed out. Responses of one channel leave in request order (see `Channel.response_queue`).
Does not know: followers, logs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection, Iterator
from time import perf_counter_ns
from typing import TYPE_CHECKING

from barnabas.broker.produce.pending_responses import decoded, not_written
from barnabas.protocol import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.wire.channel import Channel
    from barnabas.protocol.messages.produce import ProduceResponse

Wait = tuple["Partition", int]
"""A partition and the base offset of a batch: batches are replicated whole."""
SWEEP_SECONDS = 0.5
WAITS = 1  # instead of the time when it was written: it waits, and is not measured


class CommittedResponse:
    __slots__ = (
        "_correlation_id", "_missing", "_ready_ns", "_response", "_route", "_started_ns", "_waits",
        "_written_ns", "channel", "is_ready", "timeout_ms",
    )  # fmt: skip

    def __init__(
        self,
        channel: Channel,
        route: Route,
        correlation_id: int,
        response: ProduceResponse | bytes,
        waits: list[Wait],
        timeout_ms: int,
    ) -> None:
        self.channel = channel
        self.timeout_ms = timeout_ms
        self.is_ready = False
        self._route = route
        self._correlation_id = correlation_id
        self._response = response  # bytes: a whole frame, decoded only to put an error into it
        self._waits = waits
        self._missing = 0
        self._started_ns = perf_counter_ns()
        # Measured if the correlation id has none of the bits of `Tick.sampled`.
        self._written_ns = self._ready_ns = 0

    def finish(self, failed: dict[Partition, KafkaError]) -> None:
        """Wait for the followers. The leader has written everything except the partitions that failed."""
        missing = 0
        for wait in self._waits:
            partition, base_offset = wait
            if partition in failed:
                self._turn_into_error(partition, failed[partition])
            elif not partition.is_leader:
                self._turn_into_error(partition, KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            elif partition.state.high_watermark > base_offset:
                self._check(partition)
            else:
                missing += 1
                partition.wait_for_commit(base_offset, self)
        channel = self.channel
        if missing:
            self._written_ns = WAITS if self._correlation_id & channel.tick.sampled else perf_counter_ns()
            self._missing = missing
            channel.wait_in_purgatory(self)
        else:
            self.is_ready = True
            if channel.response_queue:
                channel.response_queue.append(self)
            else:
                self.encode_into(channel)
                if not channel.responses_pending and not channel.tick.is_open:
                    channel.send()

    def rests_on(self, due: Collection[Partition]) -> Collection[Partition]:
        """No partition: a leader's high watermark does not pass records that must be synced first."""
        return ()

    def on_commit(self, partition: Partition, error: KafkaError | None) -> None:
        """Note that one batch is committed, or put the error into the response."""
        if self.is_ready:
            return  # it has timed out
        try:
            if error is not None:
                self._turn_into_error(partition, error)
            else:
                self._check(partition)
        except Exception:
            self.channel.fail("responding to a producer at")
        self._missing -= 1
        if not self._missing:
            self.is_ready = True
            if self._written_ns != WAITS:
                self._ready_ns = perf_counter_ns()
            self.channel.tick.committed(self.channel)

    def _check(self, partition: Partition) -> None:
        if not partition.state.has_enough_in_sync:
            self._turn_into_error(
                partition,
                KafkaError(
                    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
                    f"{partition} has {len(partition.state.maximal_isr)} replicas in sync, "
                    f"min.insync.replicas is {partition.min_insync_replicas}",
                ),
            )

    def give_up(self) -> None:
        """Time out: put an error into the response for each batch that is not committed. The caller then
        calls `Channel.send_ready`."""
        self.is_ready = True
        error = KafkaError(ErrorCode.REQUEST_TIMED_OUT)
        for partition, base_offset in self._waits:
            if partition.state.high_watermark <= base_offset:
                self._turn_into_error(partition, error)

    @property
    def partitions(self) -> Iterator[Partition]:
        """The partitions that it waits for, or waited for."""
        return (partition for partition, _ in self._waits)

    def _turn_into_error(self, partition: Partition, error: KafkaError) -> None:
        if isinstance(self._response, bytes):
            self._response = decoded(self._response, self._route)
        not_written(self._response, partition, error)

    def encode_into(self, channel: Channel) -> None:
        response = self._response
        if isinstance(response, bytes):
            channel.out.append(response)
        else:
            channel.encode_to(channel.out, self._route, self._correlation_id, response)
        times, now_ns = self._route.times, perf_counter_ns()
        channel.sent_times = times
        started_ns, written_ns = self._started_ns, self._written_ns
        if not written_ns:
            times.observe(now_ns - started_ns)
            return
        times.observe_committed(now_ns - started_ns)
        if written_ns != WAITS:
            ready_ns = self._ready_ns or now_ns
            weight = channel.tick.sampled + 1
            times.observe_phases(written_ns - started_ns, ready_ns - written_ns, now_ns - ready_ns, weight)


class Purgatory:
    """The responses that wait for followers, with one timer for all timeouts."""

    __slots__ = ("_left", "_loop", "_timer", "_waiting", "expired")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.expired = 0  # responses that were not committed in time
        self._left: dict[Partition, None] = {}  # with waiters that need no call any more
        self._waiting: deque[tuple[float, CommittedResponse]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return sum(not held.is_ready for _, held in self._waiting)

    def add(self, held: CommittedResponse) -> None:
        waiting = self._waiting
        while waiting and waiting[0][1].is_ready:
            waiting.popleft()
        waiting.append((self._loop.time() + held.timeout_ms / 1000, held))
        if self._timer is None:
            self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def abandon(self, held: CommittedResponse) -> None:
        """Forget a response with the next sweep: its client has disconnected."""
        held.is_ready = True
        for partition in held.partitions:
            self.left(partition)

    def left(self, partition: Partition) -> None:
        """Drop waiters of the partition that are ready with the next sweep."""
        self._left[partition] = None
        if self._timer is None:
            self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """Time out responses. Channels handle further requests when responses leave, which adds to
        `_waiting`: so responses are sent last."""
        now = self._loop.time()
        waiting, self._waiting = self._waiting, deque()
        channels: dict[Channel, None] = {}
        self._timer = None
        try:
            for deadline, held in waiting:
                if held.is_ready:
                    continue
                if deadline > now:
                    self._waiting.append((deadline, held))
                    continue
                channels[held.channel] = None
                self.expired += 1
                self._left.update(dict.fromkeys(held.partitions))
                try:
                    held.give_up()
                except Exception:
                    held.channel.fail("refusing a producer at")
            left, self._left = self._left, {}
            for partition in left:
                partition.forget_ready()
            for channel in channels:
                channel.send_ready()
        finally:
            if self._timer is None and (self._waiting or self._left):
                self._timer = self._loop.call_later(SWEEP_SECONDS, self._sweep)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
