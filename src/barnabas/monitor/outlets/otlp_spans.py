"""Spans of the broker as spans of OpenTelemetry's library.

In: a `Span`, the resource. Out: a `ReadableSpan` for an exporter. Does not know: the network.
"""

from __future__ import annotations

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from barnabas.broker.tracing.spans import SERVER, Span
from barnabas.records.trace_context import TraceContext


def readable(span: Span, resource: Resource, scope: InstrumentationScope) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=span_context(span.context),
        parent=span_context(span.parent, is_remote=True) if span.parent is not None else None,
        resource=resource,
        attributes=span.attributes,
        events=[Event(name, timestamp=at_ns) for name, at_ns in span.events],
        links=[Link(span_context(each, is_remote=True)) for each in span.links],
        kind=SpanKind.SERVER if span.kind == SERVER else SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
        start_time=span.start_ns,
        end_time=span.end_ns,
        instrumentation_scope=scope,
    )


def span_context(context: TraceContext, *, is_remote: bool = False) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.is_sampled else TraceFlags.DEFAULT)
    state = TraceState.from_header([context.state]) if context.state else None
    return SpanContext(context.trace_id, context.span_id, is_remote, flags, state)
