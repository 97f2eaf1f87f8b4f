"""The tick: what one turn of the loop appended, written with one `writev` a partition, then
acknowledged.

In: partitions that staged batches, answers that must wait for them. Out: bytes in files first, answers
second, in request order on every connection, high watermarks and those who wait for them third. Nothing else
runs between the second and the third: whoever is answered sees the high watermark moved when it asks next.
The receive memory that staged batches refer to is released before. Does not know: what a produce request is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import monotonic, perf_counter_ns
from typing import TYPE_CHECKING

from barnabas.broker.produce.flush_waits import FlushWaits, Sync, Waiters
from barnabas.broker.produce.pending_responses import Failures
from barnabas.connection.arena import Arena
from barnabas.protocol import KafkaError
from barnabas.runtime.unexpected import UnexpectedErrors

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.produce.pending_responses import PendingResponse
    from barnabas.broker.wire.channel import Channel
    from barnabas.runtime.busy_polling import BusyPolling

Schedule = Callable[[Callable[[], None]], object]
Time = Callable[[], float]


class Tick:
    __slots__ = (
        "_after", "_after_syncs", "_answers", "_committed", "_dirty", "_flushes", "_is_finishing",
        "_is_quiet", "_is_scheduled", "_opened_ns", "_polling", "_schedule", "_time", "_wakeups", "_waking",
        "arena", "counts", "is_open", "unexpected",
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
        self.unexpected = (
            unexpected or UnexpectedErrors()
        )  # of one call, which must not keep others from theirs
        self.is_open = False  # something is staged: received bytes are referenced, answers must wait
        self._schedule = schedule
        self._flushes = FlushWaits(self, sync)  # `flush.messages` wants logs durable before answering
        self._time = time or loop_time()  # in seconds
        self._after: list[Callable[[], None]] = []  # once what is staged is written
        self._after_syncs: list[Callable[[], None]] = []  # and synced, where that has to be
        self._committed: dict[Channel, None] = {}  # with answers that waited for followers, and may leave
        self._waking: dict[Callable[[], None], None] = {}  # followers' fetches that have something to tell
        self._is_finishing = False
        self._opened_ns = 0
        self._is_scheduled = False
        self._is_quiet = True  # the last turn of the loop had one channel with something to append
        self._wakeups = 0  # channels of this turn that appended
        self._dirty: list[Partition] = []
        self._answers: list[PendingResponse] = []
        self.counts: dict[Route, int] = {}

    def staged(self, partition: Partition) -> None:
        """The partition has staged its first batch of this tick."""
        self._dirty.append(partition)
        if not self.is_open:
            self.is_open = True
            self._opened_ns = perf_counter_ns()
        if not self._is_scheduled:
            self._is_scheduled = True
            self._schedule(self._turn)

    def now_ms(self) -> int:
        """Time that nobody sets: for what passes between followers and their leader."""
        return int(self._time() * 1000)

    def when_written(self, call: Callable[[], None]) -> None:
        """Call once everything that is staged is in files; at once where nothing is."""
        if self.is_open:
            self._after.append(call)
        else:
            call()

    def when_durable(self, call: Callable[[], None]) -> None:
        """The same, and once logs are synced that have to be (`flush.messages`)."""
        if self.is_open:
            self._after_syncs.append(call)
        else:
            call()

    def wake(self, call: Callable[[], None]) -> None:
        """Call once for all partitions that change together, in a tick or by the metadata: one answer tells
        of them."""
        if not self._waking and not self._is_finishing:
            self._schedule(self._wake)
        self._waking[call] = None

    def _wake(self) -> None:
        waking, self._waking = self._waking, {}
        self.unexpected.call_all(waking, "waking a follower's fetch")

    def channel_done(self) -> None:
        """A channel has handled what arrived. Where one producer is alone, waiting for others is in vain;
        where the receive memory is used up, the next read must find it free."""
        self._wakeups += 1
        if (self._is_quiet and self._wakeups == 1) or self.arena.position > self.arena.limit:
            self.close()

    def _turn(self) -> None:
        """The loop has gone round: everything that arrived together is here."""
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
        self._answers.append(pending)

    def count(self, route: Route, requests: int = 1) -> None:
        """So many requests are over when the tick is written: the time that they took is counted then."""
        self.counts[route] = self.counts.get(route, 0) + requests

    def committed(self, channel: Channel) -> None:
        """An answer that waited for followers may leave, with the next `send_committed`."""
        self._committed[channel] = None

    def send_committed(self) -> None:
        while self._committed:
            channels, self._committed = self._committed, {}
            for channel in channels:
                channel.send_ready()

    def close(self) -> None:
        """End the tick: write, sync what must be, answer, advance. Also called early when the receive memory
        is used up.
        """
        if not self.is_open:
            return
        dirty, self._dirty = self._dirty, []
        answers, self._answers = self._answers, []
        after, self._after = self._after, []
        after_syncs, self._after_syncs = self._after_syncs, []
        failed: Failures = {}
        due: list[Partition] = []
        for partition in dirty:
            try:
                partition.write_staged()
            except KafkaError as error:
                failed[partition] = error
            if partition.syncs_by_count and partition not in failed and self._flushes.is_due(partition):
                due.append(partition)
        self.is_open = False
        self.arena.release()
        if due:
            self._sync(dirty, answers, failed, due, after, after_syncs)
        else:
            self._finish(dirty, answers, failed, after + after_syncs)

    def _sync(
        self,
        dirty: list[Partition],
        answers: list[PendingResponse],
        failed: Failures,
        due: list[Partition],
        after: list[Callable[[], None]],
        after_syncs: list[Callable[[], None]],
    ) -> None:
        """Finish what rests on other partitions now, and the rest when partitions that are due are synced. A
        leader is told what is here by the next fetch: that waits where followed partitions are due."""
        waiters: Waiters = {partition: [] for partition in due}
        answers = self._flushes.in_order(answers, waiters)
        is_following = not all(partition.is_leader for partition in due)
        others = [partition for partition in dirty if partition not in waiters]
        self._finish(others, answers, failed, [] if is_following else after)
        self._flushes.begin(waiters, after + after_syncs if is_following else after_syncs)

    def _finish(
        self,
        dirty: list[Partition],
        answers: list[PendingResponse],
        failed: Failures,
        after: list[Callable[[], None]],
    ) -> None:
        channels: dict[Channel, None] = {}
        for pending in answers:
            channel = pending.channel
            channel.responses_pending -= 1
            channels[channel] = None
            try:
                pending.finish(failed)
            except Exception:
                channel.fail("answering")
        for channel in channels:
            try:
                channel.send()
            except Exception:
                channel.fail("answering")
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
    """The running loop's: a simulation has its own."""
    try:
        return asyncio.get_running_loop().time
    except RuntimeError:
        return monotonic
