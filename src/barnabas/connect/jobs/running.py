"""Running jobs of a task: named so that they can be cancelled, with failures of Spark told apart.

In: a session, a function that runs jobs. Out: its result; Stopped if the task must stop; RetriableError where
a new attempt may work, with the Java process or executors gone. Does not know: sources, sinks.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.connect.jobs.sessions import WorkerSessions
from barnabas.connect.plugins import SINK, ConnectError, FencedError, RetriableError
from barnabas.connect.tasks.errors import Stopped
from barnabas.connect.tasks.job_parts import TaskParts
from barnabas.engine.catalogue.reporter import Reporter
from barnabas.engine.catalogue.statuses import QueryState
from barnabas.engine.errors import brief, brief_text
from barnabas.engine.session import is_remote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("barnabas.connect")

T = TypeVar("T")
FAILURES_MAX = 5  # of Spark, one after the other; then the task fails
PLAN_CHARS_MAX = 20_000
PYTHON_ERROR = re.compile(r"^\w[\w.]*(?:Error|Exception|Retriable|Loss|Unreachable)\w*: .*$", re.MULTILINE)


class JobRunner:
    """The jobs of one task, which come from one thread."""

    def __init__(self, sessions: WorkerSessions, parts: TaskParts, reporter: Reporter | None = None) -> None:
        """`reporter` tells the catalogue of the engine about the task."""
        self._reporter = reporter
        self._sessions = sessions
        self._parts = parts
        self._spark: SparkSession | None = None
        self._failures = 0
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
            found = work(spark)
        except (ConnectError, RetriableError, FencedError, Stopped):
            raise
        except Exception as error:
            if self._parts.stopping.is_set():
                raise Stopped from error
            self._failures += 1
            text = short(error)
            if self._sessions.is_lost(spark):
                self._spark = None
                raise RetriableError(f"the Java process of Spark is gone: {text}") from error
            if self._failures < FAILURES_MAX:
                raise RetriableError(f"Spark failed: {text}") from error
            raise ConnectError(f"Spark failed {self._failures} times: {text}") from error
        self._failures = 0
        return found

    def report(self, batch: int, rows_in: int, rows_out: int, seconds: float) -> None:
        """A batch or slice is written."""
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


def short(error: BaseException) -> str:
    """An error in one line. Of a Python function on an executor: the line that Python ended with."""
    found = PYTHON_ERROR.findall(str(error))
    return brief_text(found[-1]) if found else brief(error)


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
