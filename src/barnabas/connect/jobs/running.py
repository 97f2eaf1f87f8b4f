"""Running jobs of a task: named so that they can be cancelled, with failures of Spark told apart.

In: a session, a function that runs jobs. Out: its result; Stopped if the task must stop; RetriableError if
the connector raised one, or if Spark lost executors or its Java process; ConnectError for everything else.
Does not know: sources, sinks.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.connect.jobs.failures import is_away, may_pass, short
from barnabas.connect.jobs.sessions import WorkerSessions
from barnabas.connect.plugins import SINK, ConnectError, RetriableError
from barnabas.connect.tasks.errors import Stopped
from barnabas.connect.tasks.job_parts import TaskParts
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import QueryState
from barnabas.engine.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("barnabas.connect")

T = TypeVar("T")
# Losses of Spark without a batch between them before the task fails: a quarter of an hour with the pauses.
LOSSES_MAX = 20
PLAN_CHARS_MAX = 20_000


class JobRunner:
    """The jobs of one task, which come from one thread."""

    def __init__(self, sessions: WorkerSessions, parts: TaskParts, reporter: Reporter | None = None) -> None:
        """`reporter` tells the catalogue of the engine about the task."""
        self._reporter = reporter
        self._sessions = sessions
        self._parts = parts
        self._spark: SparkSession | None = None
        self._losses = 0
        parts.set_wake(self.cancel)

    @property
    def group(self) -> str:
        return f"connect-{self._parts.name}"

    def session(self) -> SparkSession:
        if self._spark is not None and self._sessions.is_lost(self._spark):
            self._spark = None
        if self._spark is None:
            self._spark = self._sessions.open(self._parts.config)
        return self._spark

    def run(self, work: Callable[[SparkSession], T]) -> T:
        """Run it with the session of the task."""
        spark = self.session()
        try:
            self._name(spark)
            return work(spark)
        except (ConnectError, Stopped):
            raise
        except Exception as error:
            if self._parts.stopping.is_set():
                raise Stopped from error
            raise self._failure(error, spark) from error

    def _failure(self, error: Exception, spark: SparkSession) -> ConnectError:
        text = short(error)
        is_lost = self._sessions.is_lost(spark)
        if is_lost:
            self._spark = None
            text = f"the Java process of Spark is gone: {text}"
        elif may_pass(error):
            return RetriableError(text)
        elif not is_away(error):
            return ConnectError(text)
        self._losses += 1
        if self._losses < LOSSES_MAX:
            return RetriableError(f"Spark failed: {text}")
        return ConnectError(f"Spark failed {self._losses} times without a batch between: {text}")

    def report(self, batch: int, rows_in: int, rows_out: int, seconds: float) -> None:
        """A batch or slice is written."""
        self._losses = 0
        if self._reporter is not None:
            progress = self._parts.progress
            lag = progress.lag if progress.kind == SINK else None
            self._reporter.set_state(self._parts.name, QueryState.RUNNING, kind=f"connect {progress.kind}")
            self._reporter.progress(
                self._parts.name, batch=batch, rows_in=rows_in, rows_out=rows_out, seconds=seconds, lag=lag
            )

    def waits(self, error: BaseException) -> None:
        """The task tries again after a pause."""
        if self._reporter is not None:
            self._reporter.failed(self._parts.name, str(error), state=QueryState.WAITING)

    def ended(self, error: BaseException | None) -> None:
        """The task is stopped, or failed."""
        if self._reporter is None:
            return
        if error is None:
            self._reporter.set_state(self._parts.name, QueryState.STOPPED)
        else:
            self._reporter.failed(self._parts.name, str(error))

    def _name(self, spark: SparkSession) -> None:
        if is_remote(spark):
            spark.addTag(self.group)
        else:
            spark.sparkContext.setJobGroup(
                self.group, f"connector {self._parts.name}", interruptOnCancel=True
            )

    def cancel(self) -> None:
        """From another thread: the jobs that run end now."""
        spark = self._spark
        if spark is None:
            return
        try:
            if is_remote(spark):
                spark.interruptTag(self.group)
            else:
                spark.sparkContext.cancelJobGroup(self.group)
        except Exception as error:
            log.debug("task %s: its jobs are not cancelled: %s", self._parts.name, error)


def plan_of(frame: DataFrame) -> str:
    """The physical plan of a frame, as Spark's `explain` prints it."""
    whole: Any = frame
    try:
        if is_remote(frame.sparkSession):
            text = whole._explain_string(mode="formatted")
        else:
            text = whole._jdf.queryExecution().explainString(
                whole._sc._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("formatted")
            )
    except Exception as error:
        return f"the plan cannot be shown: {short(error)}"
    return str(text)[:PLAN_CHARS_MAX]
