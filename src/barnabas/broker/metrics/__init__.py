"""Metrics of a broker under Kafka's names: counted where events happen, read when Prometheus scrapes.

`Metrics` has counters that the hot path increments as plain attributes, and callbacks for values that are
looked up at each scrape. `serve_metrics` serves GET /metrics on the broker's event loop.
"""

from barnabas.broker.metrics.counters import ApiMetrics, TopicMetrics
from barnabas.broker.metrics.endpoint import serve_metrics
from barnabas.broker.metrics.metrics import Metrics

__all__ = ["ApiMetrics", "Metrics", "TopicMetrics", "serve_metrics"]
