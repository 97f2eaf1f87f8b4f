"""Metrics of tasks under Kafka Streams' names."""

from __future__ import annotations

from barnabas.streams.spark.task_metrics import TaskMetrics
from barnabas.streams.spark.task_port import TaskCounts, TaskId, TaskResult

TASK = "kafka_streams_stream_task_metrics_"


def test_rates_of_a_task_are_records_and_batches_a_second() -> None:
    now = [100.0]
    metrics = TaskMetrics(lambda: now[0])
    for _ in range(2):
        metrics.add(TaskResult(TaskId(0, 1), records=30, counts=TaskCounts({"late": 5}), seconds=0.3))
    now[0] += 10.0
    found = metrics.snapshot()
    assert found[f"{TASK}process_rate"] == {"0_1": 6.0}
    assert found["kafka_streams_stream_processor_node_metrics_process_rate"] == {"0_1": 6.0}
    assert found[f"{TASK}commit_rate"] == {"0_1": 0.2}
    assert found[f"{TASK}dropped_records_rate"] == {"0_1": 1.0}


def test_rates_look_at_the_last_half_minute() -> None:
    now = [0.0]
    metrics = TaskMetrics(lambda: now[0])
    metrics.add(TaskResult(TaskId(0, 0), records=600))
    for _ in range(40):
        now[0] += 1.0
        found = metrics.snapshot()
    assert found[f"{TASK}process_total"] == {"0_0": 600.0}
    assert found[f"{TASK}process_rate"] == {"0_0": 0.0}


def test_a_batch_that_failed_counts_nowhere() -> None:
    metrics = TaskMetrics()
    metrics.add(TaskResult(TaskId(0, 0), records=600, error="away"))
    found = metrics.snapshot()
    assert f"{TASK}commit_rate" not in found
    assert found["kafka_streams_stream_thread_metrics_task_closed_total"] == {"": 1.0}
