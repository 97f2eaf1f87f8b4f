"""The share coordinator of this broker: a shard for every partition of `__share_group_state` that it leads.

In: settings, requests about share partitions. Out: shards and their hosts; responses, when the records they
depend on are committed. A request is split by shard, and further so that one record batch holds each part.
Does not know: leadership (see `coordinator`), the state of share partitions.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.context import NO_CONTEXT
from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.api.large_requests import encode_in_steps, resolved
from barnabas.broker.coordinators.coordinator import (
    KEYS_AT_ONCE,
    PARTITIONS_REMEMBERED_MAX,
    Coordinator,
)
from barnabas.broker.coordinators.split_requests import CombinedResponse, gather
from barnabas.broker.coordinators.topic import FittedSettings, TopicLayout, partition_for
from barnabas.protocol import ApiKey, KafkaError, Message

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.broker import Broker
    from barnabas.broker.coordinators.share_host import ShareHost
    from barnabas.broker.partitions.partition import Partition
    from barnabas.settings import BrokerSettings
    from barnabas.shares.state.apis import Item, Result
    from barnabas.shares.state.keys import ShareKey
    from barnabas.shares.state.settings import ShareStateSettings
    from barnabas.shares.state.shard import ShareStateShard

SHARE_TOPIC = "__share_group_state"
LATENCIES_REMEMBERED = 1000
PART_BYTES_MAX = 256 << 10  # of records of one part of a request, estimated
ITEM_BYTES, BATCH_BYTES = 80, 20


def configs(settings: BrokerSettings, fitted: FittedSettings) -> dict[str, str]:
    return {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": str(fitted["share.coordinator.state.topic.min.isr"]),
        "retention.ms": "-1",  # the coordinator itself deletes what is not needed
        "segment.bytes": str(settings["share.coordinator.state.topic.segment.bytes"]),
    }


LAYOUT = TopicLayout(
    SHARE_TOPIC,
    "share.coordinator.state.topic.num.partitions",
    "share.coordinator.state.topic.replication.factor",
    configs,
)


class ShareCoordinator(Coordinator["ShareHost"]):
    modules = (
        "barnabas.broker.coordinators.share_host",
        "barnabas.shares.state.shard",
        "barnabas.broker.shares.share_partitions",  # which other requests of share groups need
    )

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, LAYOUT)
        self.writes = 0  # of single share partitions; and reads that noted a new leader
        self._places: dict[ShareKey, int] = {}  # of keys in earlier requests
        self._places_of = 0  # partitions that the topic had then
        self._write_latencies_ms: deque[float] = deque(maxlen=LATENCIES_REMEMBERED)

    def new_host(self, partition: Partition) -> ShareHost:
        from barnabas.broker.coordinators.share_host import ShareHost

        return ShareHost(self, partition)

    def new_shard(self) -> ShareStateShard:
        from barnabas.shares.state.shard import ShareStateShard

        return ShareStateShard(self.settings(), self.broker.clock.now_ms())

    def settings(self) -> ShareStateSettings:
        from barnabas.shares.state.settings import ShareStateSettings

        return ShareStateSettings.of(self.broker.settings)

    def configure(self, host: ShareHost) -> None:
        host.shard.configure(self.settings())

    def refusal(self, request: Message, error: KafkaError, version: int) -> Message:
        from barnabas.shares.state.apis import refusal

        found: Message = refusal(request, error)
        return found

    # -- requests ----------------------------------------------------------------------------------

    def host_for(self, key: ShareKey) -> ShareHost | None:
        """The host of a share partition's state, if this broker leads the partition that keeps it."""
        count = self.topic.partition_count
        if count != self._places_of or len(self._places) >= PARTITIONS_REMEMBERED_MAX:
            self._places, self._places_of = {}, count
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = partition_for(str(key), count)
        return self.hosts.get(place)

    def handle_state(self, request: Message, context: RequestContext) -> CombinedResponse:
        """Handle one of the five requests about share state."""
        from barnabas.shares.state.apis import is_empty, items_of, response_of

        kind = type(request)
        if is_empty(request):
            empty: Message = response_of(kind, ())
            return empty
        items = items_of(request)
        if len(items) == 1:
            return self._timed(kind, self.handle_one(items[0].key, request))
        parts = list(in_parts(items))
        if len(parts) == 1:
            return self._handle_part(kind, parts[0])
        return self._handle_parts(kind, parts, context.version)

    def handle_one(self, key: ShareKey, request: Message) -> Message | Deferred:
        """Handle a request about one share partition."""
        host = self.host_for(key)
        if host is None:
            return self.refusal(request, self.error_without_host(str(key)), 0)
        return host.handle_part(request, NO_CONTEXT)

    def _timed(self, kind: type[Message], response: Message | Deferred) -> Message | Deferred:
        """The response; the time until it is ready is noted for metrics."""
        if kind.schema.key != ApiKey.WRITE_SHARE_GROUP_STATE or not isinstance(response, Deferred):
            return response
        started, whole = self.broker.loop.time(), Deferred(response.cancel)

        def arrived(message: Response | None) -> None:
            self.note_write(started)
            whole.resolve(message)

        response.then(arrived)
        return whole

    def note_write(self, started: float) -> None:
        """Note how long a write took that began at this time of the loop."""
        self._write_latencies_ms.append((self.broker.loop.time() - started) * 1000)

    async def _handle_parts(self, kind: type[Message], parts: list[list[Item]], version: int) -> Response:
        from barnabas.shares.state.apis import response_of

        results = [result for part in parts for result in await self.results(kind, part)]
        return await self.broker.pieces.run(encode_in_steps(response_of(kind, results), version))

    async def ask(self, kind: type[Message], items: Iterable[Item]) -> list[Result]:
        """The results for items of a request of this broker. A shard that is not here refuses its items."""
        return [result for part in in_parts(items) for result in await self.results(kind, part)]

    async def results(self, kind: type[Message], part: list[Item]) -> list[Result]:
        from barnabas.shares.state.apis import results_of

        response: Any = self._handle_part(kind, part)
        if isinstance(response, Deferred):
            response = await resolved(response)
        else:
            await asyncio.sleep(0)  # others have a turn between parts
        return results_of(response)

    def _handle_part(self, kind: type[Message], items: list[Item]) -> Message | Deferred:
        from barnabas.shares.state.apis import request_of, response_of, results_of

        by_host: dict[ShareHost | None, list[Item]] = {}
        for item in items:
            by_host.setdefault(self.host_for(item.key), []).append(item)
        responses: list[Message | Deferred] = []
        for host, some in by_host.items():
            request = request_of(kind, some)
            if host is None:
                responses.append(self.refusal(request, self.error_without_host(str(some[0].key)), 0))
            else:
                responses.append(host.handle_part(request, NO_CONTEXT))
        if len(responses) == 1:
            return self._timed(kind, responses[0])
        started = self.broker.loop.time()

        def combine(found: list[Any]) -> Message:
            if kind.schema.key == ApiKey.WRITE_SHARE_GROUP_STATE:
                self.note_write(started)
            whole: Message = response_of(
                kind, [result for response in found for result in results_of(response)]
            )
            return whole

        return gather(responses, combine)

    # -- for metrics -------------------------------------------------------------------------------

    def write_latency_ms_max(self) -> float:
        return max(self._write_latencies_ms, default=0)

    def write_latency_ms_avg(self) -> float:
        return sum(self._write_latencies_ms) / max(len(self._write_latencies_ms), 1)


def in_parts(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Cut a request into parts: each names a share partition once, and its records fit into one batch."""
    part: list[Item] = []
    named: set[ShareKey] = set()
    size = 0
    for item in items:
        batches = getattr(item.data, "state_batches", ())
        size_here = ITEM_BYTES + len(item.key.group_id) + BATCH_BYTES * len(batches)
        if part and (item.key in named or size + size_here > PART_BYTES_MAX or len(part) >= KEYS_AT_ONCE):
            yield part
            part, size = [], 0
            named.clear()
        part.append(item)
        named.add(item.key)
        size += size_here
    if part:
        yield part
