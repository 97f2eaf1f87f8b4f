"""Spans as values: a piece of work with its begin, its end and its place in a trace.

In: what happened. Out: values that reporters with `export_spans` send. Times are nanoseconds since 1970.
Does not know: OpenTelemetry's library, sampling.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.records.trace_context import TraceContext

Attribute = str | int | float | bool
SERVER, INTERNAL = "server", "internal"


@dataclass(slots=True)
class Span:
    name: str
    context: TraceContext  # of this span
    parent: TraceContext | None
    start_ns: int
    end_ns: int = 0
    kind: str = INTERNAL
    attributes: dict[str, Attribute] = field(default_factory=dict)
    links: list[TraceContext] = field(default_factory=list)
    events: list[tuple[str, int]] = field(default_factory=list)
    error: str = ""  # why the work failed
