"""A batch as a job of Spark: one Spark task for each task of the application.

In: batches of tasks, the pickled logic. Out: a result for each; a task that fails says why, and the others
count. Does not know: which batches are due.
"""

from __future__ import annotations

import hashlib
import pickle
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


def run_batches(
    spark: SparkSession, settings: TaskSettings, logic: PickledLogic, batches: Sequence[TaskBatch]
) -> list[TaskResult]:
    """Run the batches on executors, each as a task of its own."""

    def run_here(some: Iterable[TaskBatch]) -> Iterator[TaskResult]:
        for batch in some:
            yield run_one(settings, logic, batch)

    rows = spark.sparkContext.parallelize(batches, len(batches))
    return rows.mapPartitions(run_here).collect()


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
