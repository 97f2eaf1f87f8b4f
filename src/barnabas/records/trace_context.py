"""W3C's trace context in headers of records: `traceparent` says which span a record belongs to.

In: headers, ids. Out: a `TraceContext`, or the text of the header. A header that is not well formed counts as
none, as W3C demands. Does not know: spans, sampling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

TRACEPARENT, TRACESTATE = "traceparent", "tracestate"
VALUE = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
SAMPLED = 1
VERSION_0 = b"00"
FORBIDDEN_VERSION = b"ff"


class TraceContext(NamedTuple):
    trace_id: int
    span_id: int
    is_sampled: bool = True
    state: str = ""  # `tracestate`, passed on as it is

    @property
    def traceparent(self) -> bytes:
        return b"00-%032x-%016x-%02x" % (self.trace_id, self.span_id, SAMPLED if self.is_sampled else 0)


def parse_traceparent(value: bytes) -> TraceContext | None:
    found = VALUE.fullmatch(value)
    if found is None:
        return None
    version, trace, span, flags, rest = found.groups()
    if version == FORBIDDEN_VERSION or (version == VERSION_0 and rest is not None):
        return None
    trace_id, span_id = int(trace, 16), int(span, 16)
    if not trace_id or not span_id:
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & SAMPLED))


def context_of(headers: Iterable[tuple[str, bytes | None]]) -> TraceContext | None:
    """The context that a record's headers carry; of several headers of one name the last counts."""
    found: TraceContext | None = None
    state = ""
    for name, value in headers:
        if value is None:
            continue
        if name == TRACEPARENT:
            found = parse_traceparent(value)
        elif name == TRACESTATE:
            state = value.decode("ascii", "replace")
    return found._replace(state=state) if found is not None and state else found


def headers_of(context: TraceContext) -> list[tuple[str, bytes]]:
    """The headers that carry a context."""
    found = [(TRACEPARENT, context.traceparent)]
    if context.state:
        found.append((TRACESTATE, context.state.encode("ascii", "replace")))
    return found
