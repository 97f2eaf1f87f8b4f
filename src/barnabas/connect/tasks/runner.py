"""Tasks in threads of the worker: start, pause, resume, stop; states reported through a callback.

In: the configuration of a task, the worker's properties. Out: a thread that runs the task's loop, and states
(RUNNING, PAUSED, FAILED with its trace, UNASSIGNED after a stop). Each task has its own clients: they close
with it. Does not know: groups of workers, REST.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from barnabas.connect.config.secrets import Redaction
from barnabas.connect.plugins import (
    SINK,
    ConnectError,
    Connector,
    FencedError,
    Plugins,
    SinkContext,
    SinkTask,
    SourceContext,
    SourceTask,
)
from barnabas.connect.tasks.auditing import SinkAudit, SourceAudit, audit_settings
from barnabas.connect.tasks.chain import Chain
from barnabas.connect.tasks.client_properties import client_properties
from barnabas.connect.tasks.consuming import SinkConsumer
from barnabas.connect.tasks.dead_letters import NAME as DEAD_LETTER_TOPIC
from barnabas.connect.tasks.dead_letters import DeadLetterQueue
from barnabas.connect.tasks.errors import ErrorHandler, ErrorSettings, RawRecord, Stage, Stopped
from barnabas.connect.tasks.job_parts import Jobs, TaskParts
from barnabas.connect.tasks.offsets import FileOffsets, OffsetMemory, TopicOffsets
from barnabas.connect.tasks.producing import TaskProducer
from barnabas.connect.tasks.progress import Progress
from barnabas.connect.tasks.quiet_logs import hide_secrets
from barnabas.connect.tasks.sink_loop import SinkLoop
from barnabas.connect.tasks.source_loop import Boundary, SourceLoop, Transactions
from barnabas.connect.tasks.task_clients import TaskClient
from barnabas.connect.tasks.topic_creation import TopicCreation, creation_groups
from barnabas.spark.producer import OnRefused

log = logging.getLogger("barnabas.connect")

OnStatus = Callable[[Any, str | None], None]  # a state by its name, and a trace; from any thread
STOP_MS = "5000"  # task.shutdown.graceful.timeout.ms
FLUSH_MS = "60000"
FLUSH_TIMEOUT_MS = "5000"


class RunningTask:
    """One task in its thread."""

    def __init__(
        self,
        connector: str,
        task: int,
        config: Mapping[str, str],
        worker: Mapping[str, str],
        plugins: Plugins,
        on_status: OnStatus,
        *,
        is_paused: bool = False,
        reconfigure: Callable[[], None] = lambda: None,
        used_topic: Callable[[str], None] = lambda topic: None,
        jobs: Jobs | None = None,
        redaction: Redaction | None = None,
    ) -> None:
        self._jobs = jobs
        self._redaction = redaction
        self.connector = connector
        self.task = task
        self._config = dict(config)
        self._worker = worker
        self._plugins = plugins
        self._on_status = on_status
        self._reconfigure = reconfigure
        self._used_topic = used_topic
        self._stopping = threading.Event()
        self._cancelled = threading.Event()
        self._leave: Callable[[], None] | None = None
        self._paused = threading.Event()
        if is_paused:
            self._paused.set()
        found = plugins.connector(config["connector.class"])
        self._plugin: Connector = found()
        self.progress = Progress(connector, task, found.KIND)
        self.clients: list[TaskClient] = []
        self.has_run = False
        self._closers: list[Callable[[], None]] = []
        self._wake: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, name=f"task-{connector}-{task}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def pause(self) -> None:
        self._paused.set()
        self._tell("PAUSED")

    def resume(self) -> None:
        self._paused.clear()
        self._tell("RUNNING")

    def stop(self, timeout_s: float) -> bool:
        """Stop and wait. False: it did not end in time. Then it is left behind: it gives its partitions to
        others, and may write and commit nothing more when it goes on."""
        self.ask_to_stop()
        if self._thread.ident is not None:
            self._thread.join(timeout_s)
        if not self._thread.is_alive():
            return True
        self._cancelled.set()
        if self._leave is not None:
            self._leave()
        return False

    def ask_to_stop(self) -> None:
        """Set the event and wake what waits elsewhere."""
        self._stopping.set()
        if self._wake is not None:
            self._wake()

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    @property
    def has_failed(self) -> bool:
        return self.progress.state == "FAILED"

    @property
    def config(self) -> Mapping[str, str]:
        """As configured: may hold secrets."""
        return self._config

    def class_of(self, setting: str) -> str:
        """The class that a setting of the task names, or the worker's."""
        return self._config.get(setting) or self._worker.get(setting, "")

    def _tell(self, state: str, trace: str | None = None) -> None:
        self.has_run = self.has_run or state == "RUNNING"
        if self.progress.state == "FAILED" and state != "UNASSIGNED":
            return
        self.progress.moved(state)
        self._on_status(state, trace)

    def _run(self) -> None:
        given = self._redaction
        hide_secrets(given or Redaction(self._config, self._config, {}, self._plugin.CONFIG))
        try:
            self._loop()
            self._tell("UNASSIGNED")
        except Stopped:
            self._tell("UNASSIGNED")
        except BaseException as error:
            if isinstance(error, FencedError):
                log.warning("task %s-%d: %s", self.connector, self.task, error)
            else:
                log.exception("task %s-%d failed", self.connector, self.task)
            trace = "".join(traceback.format_exception(error))
            self.progress.failures += 1
            self._tell("FAILED", trace)
        finally:
            for close in reversed(self._closers):
                try:
                    close()
                except Exception:
                    log.exception("task %s-%d: something did not close", self.connector, self.task)

    def _loop(self) -> None:
        settings = self._plugin.CONFIG.parse(self._config)
        task: Any = self._plugin.task_class(settings)()
        if isinstance(task, SourceTask):
            self._source(task, settings)
        elif isinstance(task, SinkTask):
            self._sink(task, settings)
        else:
            self.progress.road = "spark"
            if self._jobs is None:
                raise ConnectError(f"{type(task).__qualname__} is a Spark job: this runner has threads only")
            self._jobs.run(task, settings, self._parts())

    def _parts(self) -> TaskParts:
        return TaskParts(
            connector=self.connector,
            task=self.task,
            config=self._config,
            worker=self._worker,
            plugins=self._plugins,
            progress=self.progress,
            stopping=self._stopping,
            paused=self._paused,
            cancelled=self._cancelled,
            tell=self._tell,
            used_topic=self._used_topic,
            reconfigure=self._reconfigure,
            properties=self.properties,
            store=self.store,
            transactional_id=self._transactional_id(),
            closers=self._closers,
            clients=self.clients,
            set_wake=lambda wake: setattr(self, "_wake", wake),
        )

    def properties(self, kind: str, client_id: str) -> dict[str, str]:
        return client_properties(kind, self._worker, self._config, client_id)

    def _errors(self, dead_letters: DeadLetterQueue | None = None) -> ErrorHandler:
        return ErrorHandler(ErrorSettings.of(self._config), self.progress, self._stopping, dead_letters)

    def store(self) -> OffsetMemory:
        """The store of this task's offsets: the connector's topic, the worker's, a file, or memory alone."""
        shared = self._worker.get("offset.storage.topic")
        topic = self._config.get("offsets.storage.topic") or shared
        if topic:
            properties = self.properties("consumer", f"connector-offsets-{self.connector}")
            found = TopicOffsets(self.connector, topic, properties)
            if shared and topic != shared:  # offsets from before it had a topic of its own
                before = TopicOffsets(
                    self.connector, shared, client_properties("consumer", self._worker, {}, "offsets")
                )
                before.load()
                for key, value in before.records():
                    found.apply(key, value)
            found.load()
            return found
        path = self._worker.get("offset.storage.file.filename")
        return FileOffsets(self.connector, Path(path)) if path else OffsetMemory(self.connector)

    def _flush_ms(self) -> int:
        return int(self._worker.get("offset.flush.interval.ms", FLUSH_MS))

    def _flush_timeout_ms(self) -> int:
        return int(self._worker.get("offset.flush.timeout.ms", FLUSH_TIMEOUT_MS))

    def producer(self) -> TaskProducer:
        """The task's producer; transactional where the worker has exactly-once sources enabled."""
        properties = self.properties("producer", f"connector-producer-{self.connector}-{self.task}")
        creates = self._worker.get("topic.creation.enable", "true").strip().lower() == "true"
        groups = creation_groups(self._config) if creates else []
        producer = TaskProducer(
            properties,
            self._stopping,
            prepare=TopicCreation(groups) if groups else None,
            transactional_id=self._transactional_id(),
            on_refused=self._left_out(),
            on_away=self.progress.waits_for_broker,
            cancelled=self._cancelled,
        )
        self._closers.append(producer.close)
        self.clients.append(TaskClient("producer", properties["client.id"], producer))
        producer.start()
        return producer

    def _left_out(self) -> OnRefused | None:
        """Decide about a record that the broker refuses: as in Connect it is left out only by tasks that
        tolerate errors, and not inside of a transaction."""
        errors = self._errors()
        if not errors.settings.tolerates_all or self._transactional_id() is not None:
            return None
        return lambda where, key, text: errors.failed(
            RawRecord(where.topic, where.partition, None, key, shown=repr(key)),
            Stage.KAFKA_PRODUCE,
            "producer",
            ConnectError(text),
        )

    def _transactional_id(self) -> str | None:
        if self._worker.get("exactly.once.source.support", "disabled").strip().lower() != "enabled":
            return None
        group = self._worker.get("group.id", "connect-cluster")
        return self._config.get("producer.override.transactional.id", f"{group}-{self.connector}-{self.task}")

    def _source(self, task: SourceTask, settings: Any) -> None:
        chain = Chain.of(self._worker, self._config, self._plugins, self._errors())
        self._closers.append(chain.close)
        producer = self.producer()  # before offsets are read: it fences and ends an earlier transaction
        store = self.store()
        transactions = Transactions()
        is_exact = producer.transactional_id is not None
        boundary = Boundary.of(self._worker, self._config) if is_exact else None
        by_task = boundary is not None and boundary.kind == "connector"
        context = SourceContext(
            self.connector, self.task, settings, self._config, self._stopping, self.progress.report,
            offsets=store, reconfigure=self._reconfigure, transaction=transactions if by_task else None,
        )  # fmt: skip
        properties = self.properties("producer", f"connector-audit-{self.connector}-{self.task}")
        counting = audit_settings(self._worker, properties)
        audit = None if counting is None else SourceAudit(counting, store.topic)
        if audit is not None:
            producer.on_acknowledged = audit.acknowledged
            self._closers.append(audit.close)
        self._closers.append(task.stop)
        task.start(context)
        self._tell("PAUSED" if self._paused.is_set() else "RUNNING")
        SourceLoop(
            task, chain, producer, store, self.progress, flush_interval_ms=self._flush_ms(),
            flush_timeout_ms=self._flush_timeout_ms(), boundary=boundary, transactions=transactions,
            used_topic=self._used_topic, audit=audit,
        ).run(self._stopping, self._paused)  # fmt: skip

    def _sink(self, task: SinkTask, settings: Any) -> None:
        dead_letters = None
        if self._config.get(DEAD_LETTER_TOPIC, "").strip():
            client_id = f"connector-dlq-producer-{self.connector}-{self.task}"
            properties = self.properties("producer", client_id)
            dead_letters = DeadLetterQueue(self._config, properties, self.progress, self._stopping)
            self._closers.append(dead_letters.close)
            dead_letters.start()
        chain = Chain.of(self._worker, self._config, self._plugins, self._errors(dead_letters))
        self._closers.append(chain.close)
        given = self.properties("consumer", f"connector-consumer-{self.connector}-{self.task}")
        consumer = SinkConsumer(
            given,
            f"connect-{self.connector}",
            self._config.get("topics", ""),
            self._config.get("topics.regex", ""),
            cancelled=self._cancelled,
        )
        self._closers.append(consumer.close)
        self.clients.append(TaskClient("consumer", given["client.id"], consumer))
        consumer.start()
        self._leave = consumer.leave
        self._wake = consumer.wake
        context = SinkContext(
            self.connector, self.task, settings, self._config, self._stopping, self.progress.report
        )
        properties = self.properties("producer", f"connector-audit-{self.connector}-{self.task}")
        counting = audit_settings(self._worker, properties)
        audit = None if counting is None else SinkAudit(counting, self.connector)
        if audit is not None:
            self._closers.append(audit.close)
        loop = SinkLoop(
            task, context, chain, consumer, self.progress, dead_letters=dead_letters,
            flush_interval_ms=self._flush_ms(), used_topic=self._used_topic, audit=audit,
            records_max=consumer.records_max, commit_s=self._flush_timeout_ms() / 1000,
            cancelled=self._cancelled,
        )  # fmt: skip
        self._closers.append(task.stop)
        task.start(context)
        self._tell("PAUSED" if self._paused.is_set() else "RUNNING")
        loop.run(self._stopping, self._paused)


class TaskRunner:
    """All tasks of a worker process. Calls come from one thread, `on_status` calls from tasks' threads."""

    def __init__(self, worker: Mapping[str, str], plugins: Plugins, jobs: Jobs | None = None) -> None:
        self._jobs = jobs
        self._worker = worker
        self._plugins = plugins
        self._tasks: dict[tuple[str, int], RunningTask] = {}
        self._stop_s = int(worker.get("task.shutdown.graceful.timeout.ms", STOP_MS)) / 1000
        self.attempts = 0  # of starting tasks
        self.attempts_failed = 0

    def start(
        self,
        connector: str,
        task: int,
        config: Mapping[str, str],
        target_state: str,
        on_status: OnStatus,
        *,
        reconfigure: Callable[[], None] = lambda: None,
        used_topic: Callable[[str], None] = lambda topic: None,
        redaction: Redaction | None = None,
    ) -> None:
        """Start a task in its thread. A task of the same name that runs already is an error."""
        known = self._tasks.get((connector, task))
        if known is not None and known.is_alive:
            raise ValueError(f"task {connector}-{task} runs already")
        self.attempts += 1
        try:
            running = RunningTask(
                connector, task, config, self._worker, self._plugins, on_status,
                is_paused=target_state == "PAUSED", reconfigure=reconfigure, used_topic=used_topic,
                jobs=self._jobs, redaction=redaction,
            )  # fmt: skip
        except BaseException:
            self.attempts_failed += 1
            raise
        self._tasks[connector, task] = running
        running.start()

    def stop(self, connector: str, task: int, timeout_s: float | None = None) -> None:
        """Stop a task and wait until it ended, or its grace time is over."""
        timeout_s = self._stop_s if timeout_s is None else timeout_s
        running = self._tasks.pop((connector, task), None)
        if running is not None and not running.stop(timeout_s):
            log.warning("task %s-%d did not end within %.0f s: it is left behind", connector, task, timeout_s)

    def pause(self, connector: str, task: int) -> None:
        self._tasks[connector, task].pause()

    def resume(self, connector: str, task: int) -> None:
        self._tasks[connector, task].resume()

    def running(self) -> list[tuple[str, int]]:
        return sorted(self._tasks)

    @property
    def starts_failed(self) -> int:
        """Tasks that failed before they ran, as far as they are still here."""
        return self.attempts_failed + sum(not each.has_run and each.has_failed for each in self.tasks())

    def tasks(self) -> list[RunningTask]:
        return [task for _, task in sorted(self._tasks.items())]

    def progress(self) -> list[Progress]:
        """Reports of all tasks about themselves."""
        return [task.progress for _, task in sorted(self._tasks.items())]

    def stop_all(self, timeout_s: float | None = None) -> None:
        """Stop all tasks, which have the grace time together."""
        ends_at = time.monotonic() + (self._stop_s if timeout_s is None else timeout_s)
        for task in self._tasks.values():
            task.ask_to_stop()
        for connector, task_id in list(self._tasks):
            self.stop(connector, task_id, max(0.0, ends_at - time.monotonic()))

    def close(self) -> None:
        """End what tasks share: the session of Spark, if one was started."""
        if self._jobs is not None:
            self._jobs.close()


__all__ = ["SINK", "OnStatus", "RunningTask", "TaskRunner"]
