"""A batch over columns where the plan and its records allow it, else record by record.

In: a way to make the interpreter's task, the records of the batch. Out: tables for topics, or None: the
interpreter has to run. A batch that fails over columns has written nothing; the interpreter then finds the
record, and its handlers judge it. Does not know: transactions.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pyarrow as pa

from barnabas.plans.interpreter.task import Task
from barnabas.streams.columns import loading
from barnabas.streams.columns.column import NotColumnar
from barnabas.streams.columns.task import ColumnTask, Part

assert loading.STEPS
log = logging.getLogger("barnabas.streams")


def run_by_columns(make: Callable[[], Task], parts: Sequence[Part]) -> list[pa.Table] | None:
    """The results of a batch, state written to the task's backend; None where columns cannot take it."""
    task = make()
    try:
        columns = ColumnTask.built(task)
        columns.compute(parts)
    except NotColumnar as error:
        log.debug("sub-topology %d runs record by record: %s", task.subtopology.number, error)
    except Exception as error:
        log.warning(
            "a batch of sub-topology %d runs record by record: %s: %s",
            task.subtopology.number,
            type(error).__name__,
            error,
        )
    else:
        return columns.write()  # a failure here fails the batch: part of the state may be written
    return None
