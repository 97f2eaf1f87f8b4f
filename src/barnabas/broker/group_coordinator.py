"""The group coordinator of this broker: one host for every partition of `__consumer_offsets` that it leads.

In: leadership, metadata, requests. Out: hosts that answer; one timer for all of them, set to the earliest
deadline. A request for a group goes to the host of its partition; one that names several groups, or all of
them, is split and the answers are put together.
Does not know: the state of groups, records, how answers wait.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import count
from typing import TYPE_CHECKING, Any

from barnabas.broker import assignor_plugins
from barnabas.broker.coordinator_journal import LOADING, NOT_HERE
from barnabas.broker.deferred import Deferred
from barnabas.broker.offsets_topic import OFFSETS_TOPIC, OffsetsTopic, partition_for
from barnabas.protocol import ErrorCode, Message

if TYPE_CHECKING:
    import random

    from barnabas.broker.broker import Broker
    from barnabas.broker.context import RequestContext
    from barnabas.broker.group_host import GroupHost
    from barnabas.broker.partition import Partition
    from barnabas.groups.settings import GroupSettings
    from barnabas.groups.shard import GroupShard
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage

log = logging.getLogger("barnabas.groups")
LOADS_AT_ONCE_MAX = 2
LATE_MS = 1000  # a timer as late as this says that the process stood still
SECOND_LOOK_MS = 50

Combine = Callable[[list[Any]], Message]


@dataclass(frozen=True, slots=True)
class Split:
    """How a request that names several groups comes apart, and its answers together."""

    part: Callable[[list[int]], Message]  # the request for those at these places
    results: Callable[[Any], list[Any]]  # what an answer says of each
    whole: Combine  # the answer with the results of all


class GroupCoordinator:
    def __init__(self, broker: Broker, rng: random.Random) -> None:
        self._broker = broker
        self._rng = rng
        self._assignors = assignor_plugins.load(broker.settings[assignor_plugins.SETTING])
        self.topic = OffsetsTopic(broker)
        self.hosts: dict[int, GroupHost] = {}
        self._led: dict[int, Partition] = {}  # those of `hosts`; before `start` there are no hosts
        self._starting: asyncio.Task[None] | None = None
        self._is_started = False
        self._partition_count = 0
        self._load_slots = asyncio.Semaphore(LOADS_AT_ONCE_MAX)
        self._deadlines: list[tuple[int, int, GroupHost]] = []
        self._numbers = count()  # breaks ties between equal deadlines
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self._is_closed = False

    # -- leadership ------------------------------------------------------------------------------

    def start(self) -> None:
        """Take up the groups. What they need is brought in by a thread, when the node answers already."""
        self._starting = self._broker.loop.create_task(self._start())

    async def _start(self) -> None:
        await self._broker.threads.run(bring_in)
        self._is_started = True
        for partition in list(self._led.values()):
            self._take_up(partition)

    @property
    def is_started(self) -> bool:
        return self._is_started

    async def started(self) -> None:
        """Until groups are taken up (some of them may still be loading)."""
        if self._starting is not None:
            await asyncio.wait([self._starting])

    def leadership_changed(self, partition: Partition) -> None:
        """A partition began or ceased to be led here; also called when nothing changed."""
        if partition.topic != OFFSETS_TOPIC or self._is_closed:
            return
        index = partition.index
        known = self._led.get(index)
        if known is not None and (known is not partition or not partition.is_leader):
            del self._led[index]
            host = self.hosts.pop(index, None)
            if host is not None:
                host.close()
        if partition.is_leader and index not in self._led:
            self._led[index] = partition
            if self._is_started:
                self._take_up(partition)

    def _take_up(self, partition: Partition) -> None:
        from barnabas.broker.group_host import GroupHost

        host = self.hosts[partition.index] = GroupHost(
            self._broker, partition, self._make_shard, self.arm, self._load_slots
        )
        host.start()

    def _make_shard(self, partition: Partition) -> GroupShard:
        from barnabas.groups.shard import GroupShard

        settings = self._settings(partition)
        return GroupShard(settings, self._rng, self._broker.clock.now_ms(), self._assignors)

    def _settings(self, partition: Partition) -> GroupSettings:
        from barnabas.groups.settings import GroupSettings

        settings = GroupSettings.of(self._broker.settings)
        return replace(settings, record_bytes_max=partition.rules.batch_bytes_max)

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Committed metadata changed; partitions have followed it already."""
        if self._is_closed:
            return
        if delta.configs is not None:
            for host in self.hosts.values():
                host.shard.configure(self._settings(host.partition))
        if delta.topics is None:
            return
        self._partition_count = 0
        now_ms = self._broker.clock.now_ms()
        for host in list(self.hosts.values()):
            host.metadata_changed(now_ms)

    async def close(self) -> None:
        """Coordinates nothing any more: everybody who waits is answered."""
        self._is_closed = True
        if self._starting is not None:
            await asyncio.wait([self._starting])
        if self._timer is not None:
            self._timer.cancel()
        hosts, self.hosts = list(self.hosts.values()), {}
        for host in hosts:
            host.close()
        loads = [host.load_task for host in hosts if host.load_task is not None]
        if loads:
            await asyncio.wait(loads)

    # -- requests --------------------------------------------------------------------------------

    def host_of(self, group_id: str) -> GroupHost | None:
        """The host of a group's partition, if this broker leads it."""
        if not self._partition_count:
            self._partition_count = self.topic.partition_count
        return self.hosts.get(partition_for(group_id, self._partition_count))

    def handle(self, group_id: str, request: Message, context: RequestContext) -> Message | Deferred | None:
        """The answer to a request for one group."""
        host = self.host_of(group_id)
        if host is None:
            return self._refusal(group_id, request, context)
        return host.handle(request, context)

    def _refusal(self, group_id: str, request: Message, context: RequestContext) -> Message:
        from barnabas.broker.group_refusals import refusal

        index = partition_for(group_id, self._partition_count)
        return refusal(request, LOADING if index in self._led else NOT_HERE, context.version)

    def ask_by_group(
        self, groups: Sequence[str], split: Split, context: RequestContext
    ) -> Message | Deferred:
        """A request that names several groups, split by shard; the results keep the order of `groups`."""
        places: dict[GroupHost | None, list[int]] = {}
        for place, group_id in enumerate(groups):
            places.setdefault(self.host_of(group_id), []).append(place)
        answers: list[Message | Deferred] = []
        for host, some in places.items():
            request = split.part(some)
            if host is None:
                answers.append(self._refusal(groups[some[0]], request, context))
            else:
                answers.append(host.ask(request, context))

        def combine(found: list[Any]) -> Message:
            results: list[Any] = [None] * len(groups)
            for some, answer in zip(places.values(), found, strict=True):
                for place, result in zip(some, split.results(answer), strict=True):
                    results[place] = result
            return split.whole(results)

        return gather(answers, combine)

    def ask_all(self, request: Message, context: RequestContext, combine: Combine) -> Message | Deferred:
        """A request about the groups of all shards."""
        if len(self.hosts) < len(self._led):
            from barnabas.broker.group_refusals import refusal

            return refusal(request, LOADING, context.version)
        return gather([host.ask(request, context) for host in self.hosts.values()], combine)

    # -- time ------------------------------------------------------------------------------------

    def arm(self, host: GroupHost) -> None:
        """See that the host is called at its next deadline. A later deadline than before costs nothing: the
        host is called too early once."""
        deadline_ms = host.shard.next_deadline_ms()
        if deadline_ms is None or (host.armed_ms is not None and host.armed_ms <= deadline_ms):
            return
        host.armed_ms = deadline_ms
        heapq.heappush(self._deadlines, (deadline_ms, next(self._numbers), host))
        if self._timer is None or deadline_ms < self._timer_ms:
            self._set_timer(deadline_ms)

    def _set_timer(self, deadline_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_ms = deadline_ms
        delay_ms = max(deadline_ms - self._broker.clock.now_ms(), 0)
        self._timer = self._broker.loop.call_later(delay_ms / 1000, self._on_time)

    def _on_time(self) -> None:
        self._timer = None
        if self._is_closed:
            return
        now_ms = self._broker.clock.now_ms()
        if now_ms - self._timer_ms > LATE_MS:
            # This process stood still: heartbeats may lie unread in the sockets. They come first.
            self._timer_ms = now_ms
            self._timer = self._broker.loop.call_later(SECOND_LOOK_MS / 1000, self._on_time)
            return
        deadlines = self._deadlines
        while deadlines and deadlines[0][0] <= now_ms:
            deadline_ms, _, host = heapq.heappop(deadlines)
            if host.armed_ms == deadline_ms:
                host.armed_ms = None
                if self.hosts.get(host.partition.index) is host:
                    host.on_time(now_ms)
                    if host.armed_ms is not None and host.armed_ms <= now_ms:
                        host.armed_ms = now_ms + 1  # the next turn of the loop, so that others have theirs
                        heapq.heappush(deadlines, (now_ms + 1, next(self._numbers), host))
        if deadlines:
            self._set_timer(deadlines[0][0])

    # -- for who watches ---------------------------------------------------------------------------

    def partitions_by_state(self) -> dict[str, int]:
        states = {"loading": 0, "active": 0, "failed": 0}
        for host in self.hosts.values():
            if host.error is None:
                states["active"] += 1
            else:
                loading = host.error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                states["loading" if loading else "failed"] += 1
        return states


def bring_in() -> None:
    """Import what groups need, which takes longer than the start of a node may."""
    import_module("barnabas.broker.group_host")
    import_module("barnabas.broker.group_refusals")
    import_module("barnabas.groups.shard")


def gather(answers: list[Message | Deferred], combine: Combine) -> Message | Deferred:
    """All answers put together, now or when the last of them is there."""
    found: list[Message | None] = [answer if isinstance(answer, Message) else None for answer in answers]
    missing = sum(answer is None for answer in found)
    if not missing:
        return combine(found)

    def cancel() -> None:
        for answer in answers:
            if isinstance(answer, Deferred):
                answer.cancel()

    whole = Deferred(cancel)

    def arrived(place: int, message: Message | None) -> None:
        nonlocal missing
        found[place] = message
        missing -= 1
        if not missing:
            whole.resolve(combine(found))

    for place, answer in enumerate(answers):
        if isinstance(answer, Deferred):
            answer.then(lambda message, place=place: arrived(place, message))  # type: ignore[misc]
    return whole
