"""The tick: writes the batches of one turn of the loop with one `writev` a partition, then acknowledges them.

In: partitions with staged batches, responses that must wait for them. Out, in this order: bytes in files;
responses, in request order on every connection; high watermarks and the waiters for them. Nothing else runs
between responses and high watermarks, so a client that gets a response sees the new high watermark with its
next request. The tick releases the receive memory of staged batches after the write.
Does not know: what a produce request is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic, perf_counter_ns
from typing import TYPE_CHECKING

from barnabas.broker.produce.flush_waits import FlushWaits, Sync, Waiters
from barnabas.broker.produce.pending_responses import Failures
from barnabas.connection.arena import Arena
from barnabas.metrics import Histogram
from barnabas.protocol import KafkaError
from barnabas.runtime.unexpected import UnexpectedErrors

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.produce.pending_responses import PendingResponse
    from barnabas.broker.wire.channel import Channel
    from barnabas.runtime.busy_polling import BusyPolling

SAMPLED = 15
Schedule = Callable[[Callable[[], None]], object]
Time = Callable[[], float]


class Tick:
    __slots__ = (
        "_after",
        "_after_syncs",
        "_committed",
        "_dirty",
        "_flushes",
        "_is_finishing",
        "_is_quiet",
        "_is_scheduled",
        "_opened_ns",
        "_polling",
        "_responses",
        "_schedule",
        "_time",
        "_wakeups",
        "_waking",
        "arena",
        "counts",
        "is_open",
        "sampled",
        "sends",
        "unexpected",
        "wakeups",
        "writes",
    )  # fmt: skip

    def __init__(
        self,
        arena: Arena,
        schedule: Schedule,
        sync: Sync,
        time: Time | None = None,
        unexpected: UnexpectedErrors | None = None,
        polling: BusyPolling | None = None,
    ) -> None:
        self.arena = arena
        self._polling = polling
        self.unexpected = unexpected or UnexpectedErrors()  # one call that fails must not stop the others
        self.is_open = False  # batches are staged: they refer to receive memory, responses wait
        self._schedule = schedule
        self._flushes = FlushWaits(self, sync)  # `flush.messages`: sync before responding
        self._time = time or loop_time()  # in seconds
        self._after: list[Callable[[], None]] = []  # called after the write
        self._after_syncs: list[Callable[[], None]] = []  # called after the write and the syncs
        self._committed: dict[Channel, None] = {}  # with responses that are ready
        self._waking: dict[Callable[[], None], None] = {}  # followers' fetches that have something to send
        self._is_finishing = False
        self._opened_ns = 0
        self._is_scheduled = False
        self._is_quiet = True  # at most one channel appended in the last turn of the loop
        self._wakeups = 0  # channels that appended in this turn
        self._dirty: list[Partition] = []
        self._responses: list[PendingResponse] = []
        self.counts: dict[Route, int] = {}
        # Channels count wake-ups and sends of all connections here; every 16th is measured.
        self.wakeups = self.sends = 0
        self.sampled = SAMPLED
        self.writes = Histogram()  # how long the writes of a tick took

    def staged(self, partition: Partition) -> None:
        """Add a partition that has staged its first batch of this tick."""
        self._dirty.append(partition)
        if not self.is_open:
            self.is_open = True
            self._opened_ns = perf_counter_ns()
        if not self._is_scheduled:
            self._is_scheduled = True
            self._schedule(self._turn)

    def now_ms(self) -> int:
        """Monotonic time, for measuring the lag of followers."""
        return int(self._time() * 1000)

    def when_written(self, call: Callable[[], None]) -> None:
        """Call when everything that is staged is written; now if nothing is staged."""
        if self.is_open:
            self._after.append(call)
        else:
            call()

    def when_durable(self, call: Callable[[], None]) -> None:
        """Call when everything that is staged is written, and synced where `flush.messages` requires it."""
        if self.is_open:
            self._after_syncs.append(call)
        else:
            call()

    def wake(self, call: Callable[[], None]) -> None:
        """Call once for all partitions that change together, in a tick or by the metadata, so that one
        response has them all."""
        if not self._waking and not self._is_finishing:
            self._schedule(self._wake)
        self._waking[call] = None

    def _wake(self) -> None:
        waking, self._waking = self._waking, {}
        self.unexpected.call_all(waking, "waking a follower's fetch")

    def channel_done(self) -> None:
        """End the tick early after a channel has handled its requests, if only one producer is active, or if
        the receive memory is exhausted and the next read needs it."""
        self._wakeups += 1
        if (self._is_quiet and self._wakeups == 1) or self.arena.position > self.arena.limit:
            self.close()

    def _turn(self) -> None:
        """End the tick after one turn of the loop: all requests that arrived together are handled."""
        self._is_scheduled = False
        self._is_quiet = self._wakeups <= 1
        self._wakeups = 0
        self.close()
        if self._polling is not None and self._is_quiet:
            self._polling.poll_for_next(self._opened_ns)

    def respond(self, pending: PendingResponse) -> None:
        """Finish the response when the tick is written."""
        channel = pending.channel
        channel.responses_pending += 1
        channel.produced.is_last = False
        self._responses.append(pending)

    def count(self, route: Route, requests: int = 1) -> None:
        """Observe the time of these requests when the tick is written."""
        self.counts[route] = self.counts.get(route, 0) + requests

    def committed(self, channel: Channel) -> None:
        """A response of the channel is ready: `send_committed` sends it."""
        self._committed[channel] = None

    def send_committed(self) -> None:
        while self._committed:
            channels, self._committed = self._committed, {}
            for channel in channels:
                channel.send_ready()

    def close(self) -> None:
        """End the tick: write, sync if required, respond, advance."""
        if not self.is_open:
            return
        dirty, self._dirty = self._dirty, []
        responses, self._responses = self._responses, []
        after, self._after = self._after, []
        after_syncs, self._after_syncs = self._after_syncs, []
        failed: Failures = {}
        due: list[Partition] = []
        started_ns = 0 if self.wakeups & self.sampled else perf_counter_ns()
        for partition in dirty:
            try:
                partition.write_staged()
            except KafkaError as error:
                failed[partition] = error
            if partition.syncs_by_count and partition not in failed and self._flushes.is_due(partition):
                due.append(partition)
        if started_ns:
            self.writes.observe(perf_counter_ns() - started_ns)
        self.is_open = False
        self.arena.release()
        if due:
            self._sync(dirty, responses, failed, due, after, after_syncs)
        else:
            self._finish(dirty, responses, failed, after + after_syncs)

    def _sync(
        self,
        dirty: list[Partition],
        responses: list[PendingResponse],
        failed: Failures,
        due: list[Partition],
        after: list[Callable[[], None]],
        after_syncs: list[Callable[[], None]],
    ) -> None:
        """Finish responses that do not depend on the partitions to sync (`due`) now, the others after the
        sync. The next fetch shows a leader what is here, so it waits too if followed partitions are to be
        synced."""
        waiters: Waiters = {partition: [] for partition in due}
        responses = self._flushes.in_order(responses, waiters)
        is_following = not all(partition.is_leader for partition in due)
        others = [partition for partition in dirty if partition not in waiters]
        self._finish(others, responses, failed, [] if is_following else after)
        self._flushes.begin(waiters, after + after_syncs if is_following else after_syncs)

    def _finish(
        self,
        dirty: list[Partition],
        responses: list[PendingResponse],
        failed: Failures,
        after: list[Callable[[], None]],
    ) -> None:
        channels: dict[Channel, None] = {}
        for pending in responses:
            channel = pending.channel
            channel.responses_pending -= 1
            channels[channel] = None
            try:
                pending.finish(failed)
            except Exception:
                channel.fail("responding")
        for channel in channels:
            try:
                channel.send()
            except Exception:
                channel.fail("responding")
        if self.counts:
            counts, self.counts = self.counts, {}
            duration_ns = perf_counter_ns() - self._opened_ns
            for route, requests in counts.items():
                route.times.observe_many(duration_ns, requests)
        self._is_finishing = True
        for partition in dirty:
            try:
                partition.advance()
            except Exception:
                self.unexpected.note("advancing", partition)
        self._is_finishing = False
        if self._waking:
            self._wake()
        if after:
            self.unexpected.call_all(after, "going on after the tick")


def loop_time() -> Time:
    """The time of the running loop: a simulation has its own."""
    try:
        return asyncio.get_running_loop().time
    except RuntimeError:
        return monotonic
