"""The traces of a node: spans that are open, spans that wait for a reporter, batches that are watched.

In: requests that sampling chose, the moments of their life. Out: spans, taken by the reporting every few
seconds. All containers are bounded; what does not fit is dropped. Runs on the loop.
Does not know: channels, OpenTelemetry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from random import Random
from time import time_ns
from typing import TYPE_CHECKING

from barnabas.broker.tracing.mode import Mode
from barnabas.broker.tracing.sampling import Sampling
from barnabas.broker.tracing.spans import INTERNAL, SERVER, Attribute, Span
from barnabas.broker.tracing.watches import Watch, Watches
from barnabas.records.trace_context import TraceContext

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition

OPEN_MAX = 1_000
FINISHED_MAX = 10_000
SYSTEM: dict[str, Attribute] = {"messaging.system": "kafka"}


class Request:
    """A traced request: its span, and the moments that its phases end at."""

    __slots__ = ("handled_ns", "span", "waits_for_followers", "written_ns")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.handled_ns = self.written_ns = 0
        self.waits_for_followers = False


class Tracing:
    def __init__(
        self, sampling: Sampling, *, now_ns: Callable[[], int] = time_ns, rng: Random | None = None
    ) -> None:
        self.sampling = sampling
        self.now_ns = now_ns
        self._rng = rng or Random()
        self.open: dict[Hashable, Request] = {}  # by channel and correlation id
        self.watches: Watches[Partition] = Watches()
        self.mode = Mode.OFF
        self.current: Request | None = None  # whose handler runs
        self._finished: deque[Span] = deque(maxlen=FINISHED_MAX)

    def begin(
        self, key: Hashable, name: str, contexts: list[TraceContext], attributes: dict[str, Attribute]
    ) -> Request | None:
        """Open the span of a request. One context is its parent; of several none is, and all are linked."""
        if len(self.open) >= OPEN_MAX:
            return None
        parent = contexts[0] if len(contexts) == 1 else None
        span = Span(
            name,
            self._new_context(parent),
            parent,
            self.now_ns(),
            kind=SERVER,
            attributes={**SYSTEM, **attributes},
            links=[] if parent is not None else contexts,
        )
        request = self.open[key] = Request(span)
        return request

    def end(self, key: Hashable, error: str = "") -> None:
        """The response leaves: close the span, and make spans of its phases."""
        request = self.open.pop(key, None)
        if request is None:
            return
        span = request.span
        span.end_ns, span.error = self.now_ns(), error
        self._finished.append(span)
        begun_ns = span.start_ns
        if request.handled_ns:
            self._phase(span, "append" if request.written_ns else "handle", begun_ns, request.handled_ns)
            begun_ns = request.handled_ns
        if request.written_ns:
            self._phase(span, "write", begun_ns, request.written_ns)
            begun_ns = request.written_ns
        if request.waits_for_followers:
            self._phase(span, "wait for followers", begun_ns, span.end_ns)

    def watch(self, request: Request, appended: Iterable[tuple[Partition, int]]) -> None:
        """Notice who reads the batches of a request."""
        for partition, offset in appended:
            self.watches.add(partition, Watch(request.span.context, offset, self.now_ns()))

    def fetched(self, partition: Partition, reader: str, fetch_offset: int, is_follower: bool) -> None:
        """A reader asks for this offset: it has everything before."""
        for watch in self.watches.reached(partition, reader, fetch_offset):
            attributes: dict[str, Attribute] = {
                **SYSTEM,
                "messaging.destination.name": partition.topic,
                "messaging.destination.partition.id": str(partition.index),
                "messaging.kafka.offset": watch.offset,
            }
            if is_follower:
                name = f"replicate to broker {reader}"
            else:
                name = f"fetch {partition.topic}"
                attributes["messaging.client.id"] = reader
            self._finished.append(
                Span(
                    name,
                    self._new_context(watch.parent),
                    watch.parent,
                    watch.since_ns,
                    self.now_ns(),
                    SERVER if not is_follower else INTERNAL,
                    attributes,
                )
            )

    def pop_spans(self) -> list[Span]:
        """The finished spans, each once. Called every few seconds."""
        found = list(self._finished)
        self._finished.clear()
        self.watches.expire(self.now_ns())
        return found

    def _phase(self, span: Span, name: str, start_ns: int, end_ns: int) -> None:
        self._finished.append(Span(name, self._new_context(span.context), span.context, start_ns, end_ns))

    def _new_context(self, parent: TraceContext | None) -> TraceContext:
        trace_id = parent.trace_id if parent is not None else self._rng.getrandbits(128) or 1
        return TraceContext(trace_id, self._rng.getrandbits(64) or 1, state=parent.state if parent else "")
