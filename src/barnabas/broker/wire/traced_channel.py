"""A channel whose sampled requests are traced.

A listener makes such channels only if a setting asks for traces: without it, tracing costs nothing. A request
that is not sampled costs a call and a subtraction more. A sampled one takes the ordinary path, with objects,
instead of the shortcuts for produce requests and followers' fetches; its responses are the same.
In: frames. Out: spans in the node's `Tracing`. Does not know: reporters.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from barnabas.broker.tracing.contexts import contexts_of
from barnabas.broker.tracing.mode import Mode
from barnabas.broker.tracing.spans import Attribute
from barnabas.broker.wire.channel import Channel
from barnabas.protocol import ApiKey, ErrorCode, Message
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.api.deferred import Response
    from barnabas.broker.api.routes import Handler, Route, Router
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.partitions import Partitions
    from barnabas.broker.produce.pending_responses import Refuse
    from barnabas.broker.produce.purgatory import Wait
    from barnabas.broker.tracing.tracing import Request, Tracing

FETCH = int(ApiKey.FETCH)
NAMED_MAX = 100  # partitions of a fetch that are compared with watched ones


class TracedRoutes(dict[int, "Route"]):
    """The routes of a router. While a frame is traced, `get` returns copies whose handlers are traced, and
    without a layout: a traced produce request is decoded."""

    def __init__(self, router: Router, tracing: Tracing) -> None:
        super().__init__(router.routes)
        self._router = router
        self._tracing = tracing

    def get(self, key: int, default: Any = None) -> Any:
        route = super().get(key, default)
        tracing = self._tracing
        if tracing.mode is Mode.OFF:
            return route
        route = route or self._router.find(key >> 16, key & 0xFFFF)
        if route is None:
            return default
        traced = copy.copy(route)
        traced.layout = None
        if tracing.mode is Mode.SPANS:
            traced.handler = opening(tracing, route, route.handler)
        else:
            traced.handler = comparing(tracing, route.handler)
        return traced


class TracedChannel(Channel):
    __slots__ = ()

    def _request(self, frame: memoryview) -> None:
        tracing = self.listener.broker.tracing
        assert tracing is not None
        if tracing.sampling.wants(frame):
            self._traced(frame, tracing, Mode.SPANS)
        elif tracing.watches and frame[1] == FETCH and not frame[0]:
            self._traced(frame, tracing, Mode.READERS)
        else:
            super()._request(frame)

    def _traced(self, frame: memoryview, tracing: Tracing, mode: Mode) -> None:
        tracing.mode = mode
        self.shortcut = None
        try:
            super()._request(frame)
        finally:
            tracing.mode, tracing.current = Mode.OFF, None

    def respond_after_tick(self, response: Message, refuse: Refuse) -> Message | None:
        traced = self._appended(response)
        result = super().respond_after_tick(response, refuse)
        if traced is not None and result is None:
            self._note_write(traced)
        return result

    def respond_after_commit(self, response: ProduceResponse, waits: list[Wait], timeout_ms: int) -> None:
        traced = self._appended(response)
        super().respond_after_commit(response, waits, timeout_ms)
        if traced is not None:
            traced.waits_for_followers = True
            self._note_write(traced)

    def encode_to(self, out: list[Any], route: Route, correlation_id: int, response: Response) -> None:
        super().encode_to(out, route, correlation_id, response)
        tracing = self.listener.broker.tracing
        if tracing is not None and tracing.open:
            tracing.end((self, correlation_id), error_in(response))

    def connection_lost(self, exc: Exception | None) -> None:
        tracing = self.listener.broker.tracing
        if tracing is not None and tracing.open:
            for key in [key for key in tracing.open if isinstance(key, tuple) and key[0] is self]:
                tracing.end(key, "the connection was lost")
        super().connection_lost(exc)

    def _appended(self, response: Message) -> Request | None:
        """Watch the batches of the request whose handler runs, if it is traced."""
        tracing = self.listener.broker.tracing
        traced = tracing.current if tracing is not None else None
        if tracing is None or traced is None or not isinstance(response, ProduceResponse):
            return None
        appended = list(appended_in(response, self.partitions))
        tracing.watch(traced, appended)
        if len(appended) == 1:
            traced.span.attributes["messaging.kafka.offset"] = appended[0][1]
        return traced

    def _note_write(self, traced: Request) -> None:
        tracing = self.listener.broker.tracing
        assert tracing is not None
        now_ns = tracing.now_ns

        def written() -> None:
            traced.written_ns = now_ns()

        self.tick.when_written(written)


def opening(tracing: Tracing, route: Route, handler: Handler) -> Handler:
    """The handler in a span."""

    def run(request: Any, context: RequestContext) -> Any:
        compare(tracing, request, context)
        key = context.channel, context.correlation_id
        contexts = contexts_of(batches_in(request)) if isinstance(request, ProduceRequest) else []
        traced = tracing.begin(key, *described(route, request, context, contexts))
        tracing.current = traced
        result = handler(request, context)
        if traced is not None:
            traced.handled_ns = tracing.now_ns()
            if result is None and isinstance(request, ProduceRequest) and not request.acks:
                tracing.end(key)  # there is no response
        return result

    return run


def comparing(tracing: Tracing, handler: Handler) -> Handler:
    def run(request: Any, context: RequestContext) -> Any:
        compare(tracing, request, context)
        return handler(request, context)

    return run


def compare(tracing: Tracing, request: Any, context: RequestContext) -> None:
    """Notice watched batches that a reader has got."""
    if not tracing.watches or not isinstance(request, FetchRequest):
        return
    follower = max(request.replica_state.replica_id, request.replica_id)
    reader = str(follower) if follower >= 0 else context.client_id or context.host
    partitions = context.broker.partitions
    left = NAMED_MAX
    for topic in request.topics:
        for asked in topic.partitions[:left]:
            left -= 1
            found = partitions.get(topic.topic, asked.partition) or partitions.get_by_id(
                topic.topic_id, asked.partition
            )
            if found is not None:
                tracing.fetched(found, reader, asked.fetch_offset, follower >= 0)


def described(
    route: Route, request: Any, context: RequestContext, contexts: list[Any]
) -> tuple[str, list[Any], dict[str, Attribute]]:
    """The name, the contexts and the attributes of a request's span."""
    api = "".join(part.capitalize() for part in ApiKey(route.key).name.split("_"))
    attributes: dict[str, Attribute] = {
        "messaging.operation.name": api,
        "messaging.client.id": context.client_id or "",
        "client.address": context.host,
        "kafka.api.version": route.version,
        "kafka.listener": context.listener,
    }
    if isinstance(request, ProduceRequest):
        attributes["kafka.acks"] = request.acks
        named = list(names_in(request, context.broker.partitions))
        if len(named) == 1:
            attributes["messaging.destination.name"] = named[0][0]
            attributes["messaging.destination.partition.id"] = str(named[0][1])
            api = f"{api} {named[0][0]}"
        else:
            attributes["kafka.partitions.count"] = len(named)
    return api, contexts, attributes


def names_in(request: ProduceRequest, partitions: Partitions) -> Iterator[tuple[str, int]]:
    for topic in request.topic_data:
        for data in topic.partition_data:
            found = None if topic.name else partitions.get_by_id(topic.topic_id, data.index)
            yield topic.name or (found.topic if found is not None else ""), data.index


def batches_in(request: ProduceRequest) -> Iterator[Any]:
    return (data.records for topic in request.topic_data for data in topic.partition_data)


def appended_in(response: ProduceResponse, partitions: Partitions) -> Iterator[tuple[Partition, int]]:
    for topic in response.responses:
        for each in topic.partition_responses:
            found = partitions.get(topic.name, each.index) or partitions.get_by_id(topic.topic_id, each.index)
            if found is not None and not each.error_code:
                yield found, each.base_offset


def error_in(response: Response) -> str:
    """Kafka's name of the first error of a produce response, or of a whole response."""
    code = 0
    if isinstance(response, ProduceResponse):
        code = next(
            (p.error_code for t in response.responses for p in t.partition_responses if p.error_code), 0
        )
    elif isinstance(response, Message):
        code = getattr(response, "error_code", 0) or 0
    return ErrorCode(code).name if code else ""
