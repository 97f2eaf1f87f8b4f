"""A batch as a job of Spark: one Spark task for each task of the application.

In: batches of tasks, the pickled logic. Out: a result for each; a task that fails says why, and the others
count. Does not know: which batches are due.
"""

from __future__ import annotations

import hashlib
import pickle
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.client.core.transaction import Fenced
from barnabas.engine.errors import brief_text
from barnabas.plans.interpreter.records import TaskError
from barnabas.spark import worker
from barnabas.streams.spark.task_batches import run_task
from barnabas.streams.spark.task_port import MakeLogic, TaskBatch, TaskResult, TaskSettings

if TYPE_CHECKING:
    from pyspark import Broadcast
    from pyspark.sql import SparkSession

LOGICS_KEPT_MAX = 64
_logics: dict[str, MakeLogic] = {}


@dataclass(frozen=True, slots=True)
class PickledLogic:
    """A query's logic as it travels; a worker unpickles it once."""

    data: bytes
    digest: str

    @classmethod
    def of(cls, make: MakeLogic) -> PickledLogic:
        from pyspark import cloudpickle

        data: bytes = cloudpickle.dumps(make)  # type: ignore[no-untyped-call]
        return cls(data, hashlib.sha256(data).hexdigest())

    def load(self) -> MakeLogic:
        found = _logics.get(self.digest)
        if found is None:
            if len(_logics) >= LOGICS_KEPT_MAX:
                _logics.pop(next(iter(_logics)))
            found = _logics[self.digest] = pickle.loads(self.data)
        return found


class SparkJobs:
    """Runs the batches of queries on executors, each as a task of its own. A query's logic travels once, as a
    broadcast: later jobs name it."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._broadcasts: dict[str, Broadcast[PickledLogic]] = {}
        self._lock = threading.Lock()  # queries launch side by side

    def __call__(
        self, settings: TaskSettings, logic: PickledLogic, batches: Sequence[TaskBatch]
    ) -> list[TaskResult]:
        rows = self._spark.sparkContext.parallelize(batches, len(batches))
        return rows.mapPartitions(TaskJob(settings, self._broadcast(logic))).collect()

    def _broadcast(self, logic: PickledLogic) -> Broadcast[PickledLogic]:
        with self._lock:
            found = self._broadcasts.pop(logic.digest, None)
            if found is None:
                found = self._spark.sparkContext.broadcast(logic)
                if len(self._broadcasts) >= LOGICS_KEPT_MAX:
                    self._broadcasts.pop(next(iter(self._broadcasts))).unpersist()
            self._broadcasts[logic.digest] = found
            return found


class TaskJob:
    """The code of a job: pickled by its name, so that it is a few hundred bytes."""

    def __init__(self, settings: TaskSettings, logic: Broadcast[PickledLogic]) -> None:
        self._settings, self._logic = settings, logic

    def __call__(self, batches: Iterable[TaskBatch]) -> Iterator[TaskResult]:
        for batch in batches:
            yield run_one(self._settings, self._logic.value, batch)


def run_one(settings: TaskSettings, logic: PickledLogic, batch: TaskBatch) -> TaskResult:
    try:
        return run_task(settings, batch, logic.load())
    except Fenced as error:
        return TaskResult(batch.task, error=str(error), is_fenced=True)
    except Exception as error:
        text = f"task {batch.task}: {brief_text(str(error)) or type(error).__name__}"
        return TaskResult(batch.task, error=text, is_stopped_by_handler=isinstance(error, TaskError))
    finally:
        worker.settle()
