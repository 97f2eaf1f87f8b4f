"""An interceptor that traces a producer's and a consumer's records with OpenTelemetry.

In: records on their way. Out: a span `send TOPIC` for each record until it is acknowledged, whose context
travels in the record's headers (W3C `traceparent`); a span `poll TOPIC` for the records of a poll, with links
to the spans that sent them; `processing(record)` for the caller's own work. Spans go to the tracer provider
of the application. Does not know: exporters, the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TracerProvider,
)

from barnabas.records.trace_context import TRACEPARENT, TRACESTATE, TraceContext, context_of, headers_of

if TYPE_CHECKING:
    from barnabas.client.core.errors import ClientError
    from barnabas.client.core.fetching import ConsumerRecord
    from barnabas.client.core.interceptors import SettledBatch
    from barnabas.protocol import KafkaError
    from barnabas.records.record import Headers

OPEN_MAX = 10_000  # records that are sent and not acknowledged
LINKS_MAX = 128  # of a poll
SYSTEM = "messaging.system"


class TracingInterceptor:
    """`Producer(..., interceptors=[tracing])`, `GroupConsumer(..., interceptors=[tracing])`."""

    def __init__(self, provider: TracerProvider | None = None, *, group: str = "") -> None:
        """`group`: the consumer group, an attribute of spans of a consumer."""
        self._tracer = trace.get_tracer("barnabas.client", tracer_provider=provider)
        self._group = group
        self._open: dict[bytes, Span] = {}  # by `traceparent`

    # -- a producer's side -----------------------------------------------------------------------------

    def on_send(self, topic: str, headers: Headers) -> Headers:
        """The headers with the context of a new span. A context that the caller put there is its parent."""
        given = context_of(headers)
        parent = None
        if given is not None:
            parent = trace.set_span_in_context(NonRecordingSpan(span_context(given)))
        span = self._tracer.start_span(
            f"send {topic}", parent, SpanKind.PRODUCER, self._attributes(topic, "send", "send")
        )
        own = trace_context(span)
        if own is None:
            return headers
        if span.is_recording() and len(self._open) < OPEN_MAX:
            self._open[own.traceparent] = span
        else:
            span.end()
        kept = [each for each in headers if each[0] not in (TRACEPARENT, TRACESTATE)]
        return (*kept, *headers_of(own))

    def on_acknowledgement(self, batch: SettledBatch, error: KafkaError | ClientError | None) -> None:
        for record in batch.records:
            value = next((each[1] for each in record.headers if each[0] == TRACEPARENT), None)
            span = self._open.pop(value, None) if value is not None else None
            if span is None:
                continue
            span.set_attribute("messaging.destination.partition.id", str(batch.where.partition))
            if error is not None:
                span.set_status(Status(StatusCode.ERROR, str(error)))
            span.end()

    # -- a consumer's side -----------------------------------------------------------------------------

    def on_consume(self, records: Sequence[ConsumerRecord]) -> None:
        """One span for each topic of a poll."""
        by_topic: dict[str, list[ConsumerRecord]] = {}
        for record in records:
            by_topic.setdefault(record.topic, []).append(record)
        for topic, found in by_topic.items():
            contexts = dict.fromkeys(filter(None, (context_of(each.headers) for each in found)))
            links = [Link(span_context(each)) for each in list(contexts)[:LINKS_MAX]]
            attributes = self._attributes(topic, "receive", "poll")
            attributes["messaging.batch.message_count"] = len(found)
            self._tracer.start_span(f"poll {topic}", Context(), SpanKind.CLIENT, attributes, links).end()

    @contextmanager
    def processing(self, record: ConsumerRecord) -> Iterator[Span]:
        """A span for the work on one record, linked to the span that sent it. It is the current span."""
        given = context_of(record.headers)
        attributes = self._attributes(record.topic, "process", "process")
        attributes["messaging.destination.partition.id"] = str(record.partition)
        attributes["messaging.kafka.offset"] = record.offset
        with self._tracer.start_as_current_span(
            f"process {record.topic}",
            kind=SpanKind.CONSUMER,
            attributes=attributes,
            links=[Link(span_context(given))] if given is not None else (),
        ) as span:
            yield span

    def _attributes(self, topic: str, kind: str, name: str) -> dict[str, str | int]:
        found: dict[str, str | int] = {
            SYSTEM: "kafka",
            "messaging.operation.type": kind,
            "messaging.operation.name": name,
            "messaging.destination.name": topic,
        }
        if self._group and kind != "send":
            found["messaging.consumer.group.name"] = self._group
        return found


def span_context(context: TraceContext) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED if context.is_sampled else TraceFlags.DEFAULT)
    return SpanContext(context.trace_id, context.span_id, is_remote=True, trace_flags=flags)


def trace_context(span: Span) -> TraceContext | None:
    """The context of a span; None without a tracer provider."""
    found = span.get_span_context()
    if not found.is_valid:
        return None
    state = found.trace_state.to_header() if found.trace_state else ""
    return TraceContext(found.trace_id, found.span_id, found.trace_flags.sampled, state)
