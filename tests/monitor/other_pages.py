"""The names of metrics on pages other than a broker's: of the lag service, Connect, Streams, the registry."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.api.metrics import WorkerCollector
from barnabas.engine.catalogue.catalogue import Catalogue
from barnabas.engine.catalogue.metrics import metrics_text
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import QueryState
from barnabas.engine.places.place import FolderPlace
from barnabas.metadata.steps import at_once
from barnabas.monitor.lag_metrics import burrow, kafka_exporter, lag_exporter, opentelemetry
from barnabas.monitor.lag_metrics.page import Page
from barnabas.streams.spark.task_metrics import TaskMetrics
from barnabas.streams.spark.task_port import TaskId, TaskResult
from monitor.lag.test_lag_metrics import NOW_MS, cluster


def names_of(page: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\w+) ", page, re.M)) | set(re.findall(r"^([a-z]\w*)[{ ]", page, re.M))


def of_the_lag_service() -> set[str]:
    page = Page()
    for dialect in (burrow, kafka_exporter, opentelemetry):
        at_once(dialect.write(page, [cluster()], NOW_MS))
    at_once(lag_exporter.write(page, [cluster()], {"local": 1.5}, NOW_MS))
    return names_of("".join(page.chunks()))


def of_a_worker_of_connect() -> set[str]:
    rebalances = SimpleNamespace(
        completed=1, is_running=False, highest_ms=1.0, mean_ms=1.0, since_last_ms=1.0
    )
    startups = SimpleNamespace(attempts=0, failures=0)
    herder: Any = SimpleNamespace(
        running={},
        startups=startups,
        rebalances=rebalances,
        generation=1,
        worker={},
        leader_url="http://a",
        kind=str,
    )
    runner: Any = SimpleNamespace(tasks=list, attempts=0, starts_failed=0)
    collector = WorkerCollector(herder, runner)
    return {each.name for each in (*collector.collect(), *collector._rebalances(herder))}


def of_the_engine(folder: Path) -> set[str]:
    """The page of Streams on Spark."""
    place = TopicPartition("words", 0)
    tasks = TaskMetrics()
    tasks.add(TaskResult(TaskId(0, 0), records=5, outputs=7, seconds=0.5))
    tasks.measure_lag({place: 9}, {place: 4})
    reporter = Reporter(FolderPlace(folder), "words", "streams", write_s=0.01)
    reporter.set_state("words-0", QueryState.RUNNING)
    reporter.progress("words-0", metrics=tasks.snapshot())
    reporter.close()
    return names_of(metrics_text(Catalogue(FolderPlace(folder))))
