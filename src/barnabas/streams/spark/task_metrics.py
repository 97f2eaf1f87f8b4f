"""Metrics of a query's tasks under Kafka Streams' names.

In: results of batches, ends and positions of partitions. Out: values by metric and task, as the catalogue
takes them. Names are those that Kafka Streams' beans have in Prometheus' exporter
(`kafka_streams_stream_task_metrics_process_total`). Does not know: the catalogue.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping

from barnabas.client.core.topology import TopicPartition
from barnabas.metrics.growth import Growth
from barnabas.streams.spark.task_port import TaskResult

TASK = "kafka_streams_stream_task_metrics_"
PROCESSED, COMMITTED, DROPPED = f"{TASK}process_total", f"{TASK}commit_total", f"{TASK}dropped_records_total"
LATENCY = f"{TASK}process_latency_avg"  # ns of a record in the last batch, as in Kafka Streams
NODE = "kafka_streams_stream_processor_node_metrics_"
# The exporter drops `_total` from gauges since its version 1.0, and dashboards ask for what is left.
ALSO = {DROPPED: f"{TASK}dropped_records", PROCESSED: f"{NODE}process"}
RATES = {
    f"{TASK}dropped_records_rate": DROPPED,
    f"{NODE}process_rate": PROCESSED,
    f"{TASK}process_rate": PROCESSED,
    f"{TASK}commit_rate": COMMITTED,
}
LAG = "kafka_consumer_consumer_fetch_manager_metrics_records_lag"
PROBLEMS, WRITTEN = "barnabas_streams_task_problems_total", "barnabas_streams_task_records_sent_total"


class TaskMetrics:
    """`values`: by metric, then by task (`0_1`)."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._growth = {name: Growth({}, now_s()) for name in RATES}
        self.values: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.lag = 0
        self.dropped: dict[str, int] = {}

    def add(self, result: TaskResult) -> None:
        if result.error is not None:
            return
        task = str(result.task)
        self.values[PROCESSED][task] += result.records
        self.values[WRITTEN][task] += result.outputs
        self.values[COMMITTED][task] += 1
        self.values[DROPPED][task] += sum(result.counts.dropped.values())
        self.values[PROBLEMS][task] += result.counts.problems
        for reason, count in result.counts.dropped.items():
            self.dropped[reason] = self.dropped.get(reason, 0) + count
        if result.records:
            self.values[LATENCY][task] = 1e9 * result.seconds / result.records

    def measure_lag(
        self, ends: Mapping[TopicPartition, int], positions: Mapping[TopicPartition, int]
    ) -> None:
        lags = {place: max(ends.get(place, at) - at, 0) for place, at in positions.items()}
        self.lag = sum(lags.values())
        self.values[LAG] = {str(place): float(lag) for place, lag in lags.items()}

    def snapshot(self) -> dict[str, dict[str, float]]:
        found = {name: dict(each) for name, each in list(self.values.items())}
        for name, other in ALSO.items():
            found[other] = found.get(name, {})
        for rate, name in RATES.items():
            found[rate] = self._growth[rate].rates(found.get(name, {}), self._now_s())
        return found
