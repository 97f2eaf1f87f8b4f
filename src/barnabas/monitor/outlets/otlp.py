"""OpenTelemetry: metrics and spans by OTLP, over HTTP or gRPC.

In: snapshots, spans. Out: OTLP requests, made and repeated by OpenTelemetry's own exporters. Values have the
names and labels that Prometheus sees; `kafka.cluster.id`, `service.name` and `service.instance.id` are
attributes of the resource. The standard variables (OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME,
OTEL_RESOURCE_ATTRIBUTES) count where no setting says otherwise. Does not know: threads.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from barnabas.broker.reporters.reporter import Snapshot
from barnabas.monitor.outlets.otlp_spans import readable
from barnabas.monitor.outlets.points import Point, points

if TYPE_CHECKING:
    from barnabas.broker.tracing.spans import Span

DEFAULT_ENDPOINT = "http://127.0.0.1:4318"
DEFAULT_GRPC_ENDPOINT = "http://127.0.0.1:4317"
SCOPE = InstrumentationScope("barnabas")
POINTS_A_REQUEST = 10_000
NS = 1_000_000_000
RESOURCE_LABELS = {"cluster": "kafka.cluster.id", "node": "service.instance.id"}


class LastMessage(logging.Handler):
    """Keeps what the exporters log: the courier says it, once a minute."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()


class OtlpOutlet:
    def configure(self, settings: Mapping[str, Any]) -> None:
        self._dialect: str = settings["barnabas.metrics.dialect"]
        self._reason = LastMessage()
        logger = logging.getLogger("opentelemetry.exporter")
        logger.handlers = [self._reason]
        logger.propagate = False
        self._is_grpc = settings["barnabas.otlp.protocol"] == "grpc"
        options = options_of(settings)
        if self._is_grpc:
            from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import (
                OTLPMetricExporter as GrpcMetrics,
            )
            from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans

            self._metrics: Any = GrpcMetrics(**grpc_options(options))
            self._spans: Any = GrpcSpans(**grpc_options(options))
        else:
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            self._metrics = OTLPMetricExporter(**http_options(options, "metrics"))
            self._spans = OTLPSpanExporter(**http_options(options, "traces"))
        self._resource: Resource | None = None

    def report(self, snapshot: Snapshot) -> None:
        resource = self._resource_of(snapshot.labels)
        for batch in batches(points(snapshot, self._dialect)):
            metrics = list(metrics_of(batch, snapshot))
            data = MetricsData([ResourceMetrics(resource, [ScopeMetrics(SCOPE, metrics, "")], "")])
            if self._metrics.export(data) is not MetricExportResult.SUCCESS:
                raise OSError(f"the OTLP receiver took no metrics: {self._reason.text}")

    def export_spans(self, spans: Sequence[Span], labels: Mapping[str, str]) -> None:
        resource = self._resource_of(labels)
        found = [readable(span, resource, SCOPE) for span in spans]
        if self._spans.export(found) is not SpanExportResult.SUCCESS:
            raise OSError(f"the OTLP receiver took no spans: {self._reason.text}")

    def close(self) -> None:
        self._metrics.shutdown()
        self._spans.shutdown()

    def _resource_of(self, labels: Mapping[str, str]) -> Resource:
        if self._resource is None:
            own = {RESOURCE_LABELS.get(name, name): value for name, value in labels.items()}
            if "OTEL_SERVICE_NAME" not in os.environ:
                own["service.name"] = "barnabas"
            self._resource = Resource.create(own)
        return self._resource


def metrics_of(batch: Sequence[Point], snapshot: Snapshot) -> Iterator[Metric]:
    time_ns, started_ns = int(snapshot.time_s * NS), int(snapshot.started_s * NS)
    by_name: dict[tuple[str, bool], list[Point]] = {}
    for point in batch:
        by_name.setdefault((point.name, point.is_counter), []).append(point)
    for (name, is_counter), found in by_name.items():
        numbers = [
            NumberDataPoint(each.labels, started_ns if is_counter else 0, time_ns, each.value)
            for each in found
        ]
        data: Sum | Gauge = Gauge(numbers)
        if is_counter:
            data = Sum(numbers, AggregationTemporality.CUMULATIVE, is_monotonic=True)
        yield Metric(name, found[0].help, "", data)


def batches(given: Iterator[Point]) -> Iterator[list[Point]]:
    batch: list[Point] = []
    for point in given:
        batch.append(point)
        if len(batch) == POINTS_A_REQUEST:
            yield batch
            batch = []
    if batch:
        yield batch


# -- options of the exporters -------------------------------------------------------------------------


def options_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    headers = settings["barnabas.otlp.headers"]
    return {
        "endpoint": settings["barnabas.otlp.endpoint"],
        "ca_file": settings["barnabas.otlp.ca.file"],
        "timeout_s": settings["barnabas.otlp.timeout.ms"] / 1000,
        "is_compressed": settings["barnabas.otlp.compression"] == "gzip",
        "headers": parse_headers(headers.value) if headers is not None else None,
    }


def parse_headers(text: str) -> dict[str, str]:
    """`name=value,name=value`. The error does not show the values: they may be secrets."""
    found = {}
    for number, each in enumerate(text.split(","), 1):
        name, equals, value = each.partition("=")
        if not equals or not name.strip():
            raise ValueError(f"barnabas.otlp.headers: header {number} is not name=value")
        found[name.strip().lower()] = value.strip()
    return found


def http_options(options: Mapping[str, Any], signal: str) -> dict[str, Any]:
    from opentelemetry.exporter.otlp.proto.http import Compression

    found: dict[str, Any] = {
        "timeout": options["timeout_s"],
        "compression": Compression.Gzip if options["is_compressed"] else Compression.NoCompression,
        "headers": options["headers"],
        "certificate_file": options["ca_file"],
    }
    endpoint = options["endpoint"]
    if endpoint is None and not is_in_environment(signal):
        endpoint = DEFAULT_ENDPOINT
    if endpoint is not None:
        found["endpoint"] = f"{endpoint.rstrip('/')}/v1/{signal}"
    return found


def grpc_options(options: Mapping[str, Any]) -> dict[str, Any]:
    import grpc

    found: dict[str, Any] = {
        "timeout": options["timeout_s"],
        "compression": grpc.Compression.Gzip if options["is_compressed"] else grpc.Compression.NoCompression,
        "headers": options["headers"],
    }
    endpoint = options["endpoint"]
    if endpoint is None and not is_in_environment("metrics") and not is_in_environment("traces"):
        endpoint = DEFAULT_GRPC_ENDPOINT
    if endpoint is not None:
        found["endpoint"] = endpoint
        found["insecure"] = not endpoint.startswith("https:")
    if options["ca_file"] is not None:
        found["credentials"] = grpc.ssl_channel_credentials(Path(options["ca_file"]).read_bytes())
    return found


def is_in_environment(signal: str) -> bool:
    names = "OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT"
    return any(name in os.environ for name in names)
