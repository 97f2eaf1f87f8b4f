"""Runs a task that is a Spark job in the thread of its task: the other road beside loops in threads.

In: a task and what its thread gives. Out: a job of a source or of a sink that runs until it is stopped. All
tasks of a worker share its session. Does not know: how jobs work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from os import getpid
from socket import gethostname
from threading import Lock
from typing import TYPE_CHECKING, Any

from barnabas.connect.config import Settings
from barnabas.connect.jobs.pieces import Piece
from barnabas.connect.jobs.reports import CONSUMER, PRODUCER
from barnabas.connect.jobs.running import JobRunner
from barnabas.connect.jobs.sessions import WorkerSessions, of_spark
from barnabas.connect.jobs.sink_job import SinkJob
from barnabas.connect.jobs.source_job import SourceJob
from barnabas.connect.plugins import (
    SINK,
    SOURCE,
    ConnectError,
    SinkContext,
    SourceContext,
    SparkSink,
    SparkSource,
)
from barnabas.connect.tasks.auditing import SinkAudit, SourceAudit, audit_settings
from barnabas.connect.tasks.client_properties import connection_settings
from barnabas.connect.tasks.consuming import SinkConsumer
from barnabas.connect.tasks.job_parts import TaskParts
from barnabas.connect.tasks.producing import TaskProducer
from barnabas.connect.tasks.task_clients import TaskClient, Together
from barnabas.connect.tasks.topic_creation import TopicCreation, creation_groups
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.places.place import place_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACE = "barnabas.engine.place"  # a folder or URL: where the engine's catalogue is
DELIVERY, DELIVERY_MS = "delivery.timeout.ms", "120000"  # Kafka's default
TIMEOUT, TIMEOUT_MS = "transaction.timeout.ms", "900000"  # what brokers allow at most, by default


class SparkRoad:
    """Spark jobs of a worker."""

    def __init__(self, worker: Mapping[str, str], given: SparkSession | None = None) -> None:
        self.sessions = WorkerSessions(worker, given)
        self._worker = worker
        self._lock = Lock()
        self._reporter: Reporter | None = None

    def run(self, task: Any, settings: Settings, parts: TaskParts) -> None:
        if isinstance(task, SparkSource):
            self._source(task, settings, parts)
        elif isinstance(task, SparkSink):
            self._sink(task, settings, parts)
        else:
            raise ConnectError(f"{type(task).__qualname__} is neither a task of threads nor a Spark job")

    def close(self) -> None:
        self.sessions.close()
        if self._reporter is not None:
            self._reporter.close()

    def _runner(self, parts: TaskParts) -> JobRunner:
        """The runner of a task; with a place of the engine, its catalogue lists the task as a query."""
        place = self._worker.get(PLACE, "").strip()
        with self._lock:
            if place and self._reporter is None:
                name = self._worker.get("group.id", "standalone")
                self._reporter = Reporter(
                    place_at(place, of_spark(self._worker)),
                    f"connect-{name}",
                    f"worker-{gethostname()}-{getpid()}",
                )
        return JobRunner(self.sessions, parts, self._reporter)

    def _source(self, task: SparkSource, settings: Settings, parts: TaskParts) -> None:
        properties = parts.properties("producer", f"connector-producer-{parts.name}")
        properties.setdefault(TIMEOUT, TIMEOUT_MS)  # a slice may take minutes
        creates = parts.worker.get("topic.creation.enable", "true").strip().lower() == "true"
        groups = tuple(creation_groups(parts.config)) if creates else ()
        producer = TaskProducer(
            properties,
            parts.stopping,
            prepare=TopicCreation(list(groups)) if groups else None,
            transactional_id=parts.transactional_id,
            on_away=parts.progress.waits_for_broker,
            cancelled=parts.cancelled,
        )
        parts.closers.append(producer.close)
        executors = parts.progress.executors[PRODUCER]
        parts.clients.append(TaskClient(PRODUCER, properties["client.id"], Together(producer, executors)))
        producer.start()  # before offsets are read: it fences and ends an earlier transaction
        store = parts.store()
        context = SourceContext(
            parts.connector, parts.task, settings, parts.config, parts.stopping, parts.progress.report,
            offsets=store, reconfigure=parts.reconfigure,
        )  # fmt: skip
        parts.closers.append(task.stop)
        task.start(context)
        runner = self._runner(parts)
        parts.tell("PAUSED" if parts.paused.is_set() else "RUNNING")
        # Executors that cannot deliver give up, so that the task sees it and tries the slice again.
        piece = Piece.of(parts, SOURCE, {DELIVERY: DELIVERY_MS, **properties})
        counting = audit_settings(parts.worker, properties)
        audit = None if counting is None else SourceAudit(counting)
        if audit is not None:
            parts.closers.append(audit.close)
        run_and_report(runner, SourceJob(task, parts, runner, producer, store, piece, groups, audit).run)

    def _sink(self, task: SparkSink, settings: Settings, parts: TaskParts) -> None:
        properties = parts.properties("consumer", f"connector-consumer-{parts.name}")
        consumer = SinkConsumer(
            properties,
            f"connect-{parts.connector}",
            parts.config.get("topics", ""),
            parts.config.get("topics.regex", ""),
            fetches=False,
            cancelled=parts.cancelled,
        )
        parts.closers.append(consumer.close)
        executors = parts.progress.executors[CONSUMER]
        parts.clients.append(TaskClient(CONSUMER, properties["client.id"], Together(consumer, executors)))
        consumer.start()
        context = SinkContext(
            parts.connector, parts.task, settings, parts.config, parts.stopping, parts.progress.report
        )
        parts.closers.append(task.stop)
        task.start(context)
        runner = self._runner(parts)
        letters = parts.properties("producer", f"connector-dlq-producer-{parts.name}")
        client = replace(connection_settings(properties), client_id=f"connector-consumer-{parts.name}")
        parts.tell("PAUSED" if parts.paused.is_set() else "RUNNING")
        piece = Piece.of(parts, SINK, letters)
        counting = audit_settings(parts.worker, letters)
        audit = None if counting is None else SinkAudit(counting, parts.connector)
        if audit is not None:
            parts.closers.append(audit.close)
        run_and_report(runner, SinkJob(task, context, parts, runner, consumer, piece, client, audit).run)


def run_and_report(runner: JobRunner, run: Callable[[], None]) -> None:
    """Run a job, and tell the catalogue how it ended."""
    try:
        run()
    except BaseException as error:
        runner.ended(error)
        raise
    runner.ended(None)
