"""A coordinator of this broker: one host for every partition of its topic that this broker leads.

In: leadership, metadata, requests. Out: responses of the hosts. A request for one key (a group, a
transactional id) goes to the host of the key's partition. A request for several keys, or for all, is split
by host, and the responses are combined. Groups and transactions are subclasses.
Does not know: the state of a shard, records, how responses wait.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.api.large_requests import Prune, encode_in_steps, encoded_in_pieces, resolved
from barnabas.broker.coordinators.deadlines import Deadlines
from barnabas.broker.coordinators.journal import LOADING, NOT_HERE
from barnabas.broker.coordinators.split_requests import Combine, CombinedResponse, Results, Split, gather
from barnabas.broker.coordinators.stats import CoordinatorStats
from barnabas.broker.coordinators.topic import CoordinatorTopic, TopicLayout, partition_for
from barnabas.metadata.topic_changes import topic_changes
from barnabas.protocol import ErrorCode, KafkaError, Message

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.broker import Broker
    from barnabas.broker.coordinators.host import CoordinatorHost
    from barnabas.broker.partitions.partition import Partition
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage

LOADS_AT_ONCE_MAX = 2
LOADS_REMEMBERED = 100
PARTITIONS_REMEMBERED_MAX = 1 << 16  # keys; the memory is emptied beyond, so that it stays bounded
KEY_LENGTH_MAX = 128  # of a remembered key
KEYS_AT_ONCE = 500  # of a request that names several: it is split if it has more

H = TypeVar("H", bound="CoordinatorHost[Any]")


class Coordinator(Generic[H]):
    def __init__(self, broker: Broker, layout: TopicLayout) -> None:
        self.broker = broker
        self.topic = CoordinatorTopic(broker, layout)
        self.hosts: dict[int, H] = {}
        self.load_slots = asyncio.Semaphore(LOADS_AT_ONCE_MAX)
        self.deadlines = Deadlines(broker, self._is_current)
        self.load_times_ms: deque[int] = deque(maxlen=LOADS_REMEMBERED)
        self.stats = CoordinatorStats()
        self._led: dict[int, Partition] = {}  # partitions led here; they have no `hosts` before `start`
        self._starting: asyncio.Task[None] | None = None
        self._is_started = False
        self._partition_count = 0
        self._partition_by_key: dict[str, int] = {}  # of keys in earlier requests
        self._is_closed = False

    # -- what subclasses define ----------------------------------------------

    modules: ClassVar[tuple[str, ...]]  # that shards need; imported after the start, since that is slow
    needs_leader_changes: ClassVar[bool] = False  # whether hosts must learn of changed leaders too

    @classmethod
    def import_modules(cls) -> None:
        for module in cls.modules:
            import_module(module)

    def new_host(self, partition: Partition) -> H:
        raise NotImplementedError

    def configure(self, host: H) -> None:
        """Apply settings that were changed while running."""
        raise NotImplementedError

    def refusal(self, request: Message, error: KafkaError, version: int) -> Message:
        raise NotImplementedError

    # -- leadership ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a host for each partition led here, once a thread has imported what shards need."""
        self._starting = self.broker.loop.create_task(self._start())

    async def _start(self) -> None:
        await self.broker.threads.run(self.import_modules)
        self._is_started = True
        for partition in list(self._led.values()):
            self._start_host(partition)

    @property
    def is_started(self) -> bool:
        return self._is_started

    async def started(self) -> None:
        """Return when the hosts are started; some of them may still be loading."""
        if self._starting is not None:
            await asyncio.wait([self._starting])

    def leadership_changed(self, partition: Partition) -> None:
        """Start or close the host of a partition. May be called when nothing changed."""
        if partition.topic != self.topic.name or self._is_closed:
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
                self._start_host(partition)

    def _start_host(self, partition: Partition) -> None:
        host = self.hosts[partition.index] = self.new_host(partition)
        host.start()

    def _is_current(self, host: CoordinatorHost[Any]) -> bool:
        return self.hosts.get(host.partition.index) is host

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a change of committed metadata; partitions have applied it already."""
        if self._is_closed:
            return
        if delta.configs is not None:
            for host in self.hosts.values():
                self.configure(host)
        if delta.topics is None:
            return
        if self._partition_count != self.topic.partition_count:
            self._partition_count = 0
            self._partition_by_key.clear()
        changes = topic_changes(delta.topics)
        if not changes and not self.needs_leader_changes:
            return
        now_ms = self.deadlines.now_ms()
        for host in list(self.hosts.values()):
            try:
                host.metadata_changed(changes, now_ms)
            except Exception:
                self.broker.unexpected.note("applying metadata to", host.partition)

    async def close(self) -> None:
        """Close all hosts: every waiting request gets a response."""
        self._is_closed = True
        if self._starting is not None:
            await asyncio.wait([self._starting])
        self.deadlines.close()
        hosts, self.hosts = list(self.hosts.values()), {}
        for host in hosts:
            host.close()
        loads = [host.load_task for host in hosts if host.load_task is not None]
        if loads:
            await asyncio.wait(loads)

    # -- requests --------------------------------------------------------------------------------

    def host_of(self, key: str) -> H | None:
        """The host of a key's partition, if this broker leads it."""
        place = self._partition_by_key.get(key)
        return self.hosts.get(self._partition_of(key) if place is None else place)

    def _partition_of(self, key: str) -> int:
        if not self._partition_count:
            self._partition_count = self.topic.partition_count
        place = partition_for(key, self._partition_count)
        if len(key) <= KEY_LENGTH_MAX:
            if len(self._partition_by_key) >= PARTITIONS_REMEMBERED_MAX:
                self._partition_by_key.clear()
            self._partition_by_key[key] = place
        return place

    def handle(self, key: str, request: Message, context: RequestContext) -> Message | Deferred | None:
        """Handle a request for one key."""
        host = self.host_of(key)
        if host is None:
            return self.refusal(request, self.error_without_host(key), context.version)
        return host.handle(request, context)

    def error_without_host(self, key: str) -> KafkaError:
        """Why there is no host for a key: it is not started yet, or another broker leads the partition."""
        return LOADING if self._partition_of(key) in self._led else NOT_HERE

    def handle_by_key(self, keys: Sequence[str], split: Split, context: RequestContext) -> CombinedResponse:
        """Handle a request that names several keys: split by shard; results keep the order of `keys`."""
        if len(keys) > KEYS_AT_ONCE:
            return self._handle_in_turns(keys, split, context)
        return self._handle_some(keys, range(len(keys)), split, context)

    async def _handle_in_turns(self, keys: Sequence[str], split: Split, context: RequestContext) -> Response:
        """The same for thousands of keys, a few hundred at a time."""
        results: list[Any] = []
        turn = Split(split.part, split.results, Results)  # type: ignore[arg-type]
        for start in range(0, len(keys), KEYS_AT_ONCE):
            places = range(start, min(start + KEYS_AT_ONCE, len(keys)))
            response: Any = self._handle_some(keys, places, turn, context)
            if isinstance(response, Deferred):
                response = await resolved(response)
            results += response.results
            await asyncio.sleep(0)
        return await self.broker.pieces.run(encode_in_steps(split.whole(results), context.version))

    def _handle_some(
        self, keys: Sequence[str], wanted: range, split: Split, context: RequestContext
    ) -> Message | Deferred:
        places: dict[H | None, list[int]] = {}
        for place in wanted:
            places.setdefault(self.host_of(keys[place]), []).append(place)
        responses: list[Message | Deferred] = []
        for host, some in places.items():
            request = split.part(some)
            if host is None:
                error = self.error_without_host(keys[some[0]])
                responses.append(self.refusal(request, error, context.version))
            else:
                responses.append(host.handle_part(request, context))

        def combine(found: list[Any]) -> Message:
            results: list[Any] = [None] * len(wanted)
            for some, response in zip(places.values(), found, strict=True):
                for place, result in zip(some, split.results(response), strict=True):
                    results[place - wanted.start] = result
            return split.whole(results)

        return gather(responses, combine)

    def handle_all(
        self, request: Message, context: RequestContext, combine: Combine, prune: Prune | None = None
    ) -> Message | Deferred:
        """Handle a request about the keys of all shards. `prune` takes out what the caller may not see."""
        if len(self.hosts) < len(self._led):
            return self.refusal(request, LOADING, context.version)
        response = gather([host.handle_part(request, context) for host in self.hosts.values()], combine)
        return encoded_in_pieces(response, context, prune)

    # -- for metrics ---------------------------------------------------------------------------

    def partitions_by_state(self) -> dict[str, int]:
        states = {"loading": 0, "active": 0, "failed": 0}
        for host in self.hosts.values():
            if host.error is None:
                states["active"] += 1
            else:
                loading = host.error.code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                states["loading" if loading else "failed"] += 1
        return states

    def load_time_ms_max(self) -> float:
        return max(self.load_times_ms, default=0)

    def load_time_ms_avg(self) -> float:
        return sum(self.load_times_ms) / max(len(self.load_times_ms), 1)
