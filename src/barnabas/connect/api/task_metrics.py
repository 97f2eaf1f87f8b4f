"""Attributes of Connect's task metrics, each a function of what a task tells. Does not know: Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from barnabas.connect.tasks.progress import Progress

Attributes = dict[str, Callable[[Progress], float]]


def percentage(part: int, rest: int) -> float:
    """The share of a part, between 0 and 1, as Kafka's percentages are."""
    return part / (part + rest) if part + rest else 0.0


TASK: Attributes = {
    "running-ratio": lambda task: task.ratio("RUNNING"),
    "pause-ratio": lambda task: task.ratio("PAUSED"),
    "offset-commit-max-time-ms": lambda task: task.commit_ms.highest,
    "offset-commit-avg-time-ms": lambda task: task.commit_ms.mean,
    "offset-commit-success-percentage": lambda task: percentage(task.commits, task.commit_failures),
    "offset-commit-failure-percentage": lambda task: percentage(task.commit_failures, task.commits),
    "batch-size-max": lambda task: task.batches.highest,
    "batch-size-avg": lambda task: task.batches.mean,
}
SOURCE: Attributes = {
    "source-record-poll-rate": lambda task: task.rates()[0],
    "source-record-poll-total": lambda task: task.records_in,
    "source-record-write-rate": lambda task: task.rates()[1],
    "source-record-write-total": lambda task: task.records_out,
    "poll-batch-max-time-ms": lambda task: task.call_ms.highest,
    "poll-batch-avg-time-ms": lambda task: task.call_ms.mean,
    "source-record-active-count": lambda task: task.in_flight,
    "source-record-active-count-max": lambda task: task.active.highest,
    "source-record-active-count-avg": lambda task: task.active.mean,
    "transaction-size-min": lambda task: task.transactions.lowest,
    "transaction-size-max": lambda task: task.transactions.highest,
    "transaction-size-avg": lambda task: task.transactions.mean,
}
SINK: Attributes = {
    "sink-record-read-rate": lambda task: task.rates()[0],
    "sink-record-read-total": lambda task: task.records_in,
    "sink-record-send-rate": lambda task: task.rates()[1],
    "sink-record-send-total": lambda task: task.records_out,
    "sink-record-lag-max": lambda task: task.lag,
    "partition-count": lambda task: task.partitions,
    "offset-commit-seq-no": lambda task: task.commits,
    "offset-commit-completion-rate": lambda task: task.per_second(task.commits),
    "offset-commit-completion-total": lambda task: task.commits,
    "offset-commit-skip-rate": lambda task: task.per_second(task.commits_skipped),
    "offset-commit-skip-total": lambda task: task.commits_skipped,
    "put-batch-max-time-ms": lambda task: task.call_ms.highest,
    "put-batch-avg-time-ms": lambda task: task.call_ms.mean,
    "sink-record-active-count": lambda task: task.in_flight,
    "sink-record-active-count-max": lambda task: task.active.highest,
    "sink-record-active-count-avg": lambda task: task.active.mean,
}
ERRORS: Attributes = {
    "total-record-failures": lambda task: task.failures,
    "total-record-errors": lambda task: task.errors,
    "total-records-skipped": lambda task: task.skipped,
    "total-retries": lambda task: task.retries,
    "total-errors-logged": lambda task: task.errors_logged,
    "deadletterqueue-produce-requests": lambda task: task.dead_letters,
    "deadletterqueue-produce-failures": lambda task: task.dead_letter_failures,
    "last-error-timestamp": lambda task: 0 if task.last_error is None else task.last_error.at_ms,
}
