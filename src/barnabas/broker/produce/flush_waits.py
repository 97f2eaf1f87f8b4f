"""Responses and high watermarks that wait for a sync of the log (`flush.messages`).

In: partitions that a tick has written and that must be synced, with the responses and calls that depend on
them. Out: one running sync for each partition, and one more for everything that came meanwhile. After a sync
the responses that it covers leave, and the high watermark rises. Other partitions do not wait.
Does not know: files, how a sync is made.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.protocol import KafkaError

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.produce.pending_responses import Failures, PendingResponse
    from barnabas.broker.produce.tick import Tick
    from barnabas.broker.wire.channel import Channel

Waiters = dict["Partition", list["SyncWaiter"]]
Sync = Callable[[list["Partition"], Callable[["Failures"], None]], None]


class SyncWaiter(Protocol):
    def synced(self, partition: Partition, error: KafkaError | None, /) -> None: ...


class SyncedResponse:
    """A response that keeps its place on the channel until the partitions that it names are synced."""

    __slots__ = ("_encoded", "_failed", "_missing", "_pending", "channel", "is_ready")

    def __init__(self, pending: PendingResponse, count: int) -> None:
        self.channel: Channel = pending.channel
        self.channel.produced.is_last = False  # no later response is added to this one
        self.is_ready = False
        self._pending = pending
        self._missing = count
        self._failed: Failures = {}
        self._encoded: list[Any] = []

    def finish(self, failed: Failures) -> None:
        """Take a place on the channel: the tick is written, and later responses leave after this one."""
        self._failed = dict(failed)
        self.channel.enqueue(self)

    def rests_on(self, due: Collection[Partition]) -> Collection[Partition]:
        """No partition: `FlushWaits.in_order` has asked the wrapped response."""
        return ()

    def synced(self, partition: Partition, error: KafkaError | None) -> None:
        if error is not None:
            self._failed[partition] = error
        self._missing -= 1
        if not self._missing and not self.is_ready:
            self.is_ready = True
            self._encoded = encoded_alone(self.channel, self._pending, self._failed)
            self.channel.tick.committed(self.channel)

    def encode_into(self, channel: Channel) -> None:
        channel.out += self._encoded


def encoded_alone(channel: Channel, pending: PendingResponse, failed: Failures) -> list[Any]:
    """Encode a response apart from the channel's other output."""
    out, queue = channel.out, channel.response_queue
    channel.out, channel.response_queue = [], deque()
    try:
        pending.finish(failed)
        return channel.out
    finally:
        channel.out, channel.response_queue = out, queue


class CallsAfterSync:
    """Calls that wait for the syncs of several partitions."""

    __slots__ = ("_calls", "_missing", "_tick")

    def __init__(self, calls: list[Callable[[], None]], count: int, tick: Tick) -> None:
        self._calls = calls
        self._missing = count
        self._tick = tick

    def synced(self, partition: Partition, error: KafkaError | None) -> None:
        self._missing -= 1
        if not self._missing:
            self._tick.unexpected.call_all(self._calls, "going on after a sync")


class Flush:
    __slots__ = ("end_offset", "waiters")

    def __init__(self) -> None:
        self.end_offset = 0
        self.waiters: list[SyncWaiter] = []


class FlushWaits:
    """`running` has the partitions with a running sync."""

    __slots__ = ("_next", "_sync", "_tick", "running")

    def __init__(self, tick: Tick, sync: Sync) -> None:
        self._tick = tick
        self._sync = sync
        self.running: dict[Partition, Flush] = {}
        self._next: dict[Partition, Flush] = {}

    def is_due(self, partition: Partition) -> bool:
        """Whether a written partition must be synced before responses leave, or has a running sync."""
        return partition in self.running or partition.log.is_count_due()

    def in_order(self, responses: list[PendingResponse], waiters: Waiters) -> list[PendingResponse]:
        """The responses of a tick. Those that depend on partitions in `waiters` are wrapped in a
        SyncedResponse, which is added to the waiters."""
        taken: list[PendingResponse] = []
        for pending in responses:
            rests_on = pending.rests_on(waiters)
            if rests_on:
                waiting = SyncedResponse(pending, len(rests_on))
                for partition in rests_on:
                    waiters[partition].append(waiting)
                taken.append(waiting)
            else:
                taken.append(pending)
        return taken

    def begin(self, waiters: Waiters, after: list[Callable[[], None]]) -> None:
        """Sync the partitions, then call the waiters of each; call `after` after the last sync."""
        if after:
            calls = CallsAfterSync(after, len(waiters), self._tick)
            for each in waiters.values():
                each.append(calls)
        for partition, some in waiters.items():
            is_running = partition in self.running
            flush = self._next.setdefault(partition, Flush()) if is_running else Flush()
            # This sync does not cover batches of later ticks: consumers must not see them yet.
            flush.end_offset = partition.log.written_offset
            flush.waiters += some
            if not is_running:
                self._start(partition, flush)

    def _start(self, partition: Partition, flush: Flush) -> None:
        self.running[partition] = flush
        self._sync([partition], partial(self._done, partition))

    def _done(self, partition: Partition, problems: Failures) -> None:
        flush = self.running.pop(partition)
        following = self._next.pop(partition, None)
        if following is not None:
            self._start(partition, following)
        tick, error = self._tick, problems.get(partition)
        for waiter in flush.waiters:
            try:
                waiter.synced(partition, error)
            except Exception:
                tick.unexpected.note("telling of a sync of", partition)
        tick.send_committed()
        try:
            if error is None:
                partition.advance(flush.end_offset)
            else:
                partition.not_synced(error)
        except Exception:
            tick.unexpected.note("advancing", partition)
