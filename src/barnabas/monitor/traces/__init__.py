"""Traces of clients: OpenTelemetry's spans for records that are sent and consumed."""

from barnabas.monitor.traces.client_interceptor import TracingInterceptor

__all__ = ["TracingInterceptor"]
