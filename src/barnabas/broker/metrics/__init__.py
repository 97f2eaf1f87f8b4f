"""Metrics of a broker under Kafka's names: counted where things happen, read when Prometheus asks.

`Metrics` hands out counters that the hot path increments as plain attributes, and keeps callbacks for what
can be looked up. `serve_metrics` answers GET /metrics on the broker's own loop.
"""

from barnabas.broker.metrics.counters import ApiMetrics, TopicMetrics
from barnabas.broker.metrics.endpoint import serve_metrics
from barnabas.broker.metrics.metrics import Metrics

__all__ = ["ApiMetrics", "Metrics", "TopicMetrics", "serve_metrics"]
