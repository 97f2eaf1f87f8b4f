"""Metrics as values: a registry keyed by the names of Kafka's MBeans, histograms, rates, and dialects of
names.

Parts of a program register sources in a `Registry`; outlets (Prometheus, JMX readers, others) walk its
samples.
"""

from barnabas.metrics.histogram import Histogram, Snapshot
from barnabas.metrics.registry import Reading, Registry
from barnabas.metrics.samples import Kind, Metric, Sample, Tags, metric_of

__all__ = ["Histogram", "Kind", "Metric", "Reading", "Registry", "Sample", "Snapshot", "Tags", "metric_of"]
