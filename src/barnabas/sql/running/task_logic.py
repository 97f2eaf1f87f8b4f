"""The logic of a persistent query's task: the interpreter, and the lines of the processing log with its
results.

Pickled once for each query. Does not know: Spark, transactions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from barnabas.client.core.topology import TopicPartition
from barnabas.plans.plan import Plan
from barnabas.spark.basics.settings import ClientSettings
from barnabas.sql.columns import loading
from barnabas.sql.running.processing_log import LogSettings, ProcessingLog
from barnabas.streams.columns.task import Part
from barnabas.streams.spark.plan_logic import MakePlanLogic, PlanLogic
from barnabas.streams.spark.state_files import StateFile
from barnabas.streams.spark.task_outputs import table_of
from barnabas.streams.spark.task_port import InputRecord, OutputRecord, TaskCounts

assert loading.FORMS  # imported for the forms that it registers


class SqlLogic:
    def __init__(self, inner: PlanLogic, log: ProcessingLog) -> None:
        self._inner, self._log = inner, log

    def process_parts(self, parts: Sequence[Part]) -> list[pa.Table] | None:
        tables = self._inner.process_parts(parts)
        if tables is None:
            self._log.clear()  # the same records come again, one by one
            return None
        self._log.left_out_by_operators(self._inner.counts.dropped)
        lines = self._log.pop_lines()
        return [*tables, table_of(lines)] if lines else tables

    def process(self, topic: str, record: InputRecord) -> Sequence[OutputRecord]:
        return self._inner.process(topic, record)

    def finish(self) -> Sequence[OutputRecord]:
        outputs = self._inner.finish()
        self._log.left_out_by_operators(self._inner.counts.dropped)
        return [*outputs, *self._log.pop_lines()]

    @property
    def counts(self) -> TaskCounts:
        found = self._inner.counts
        return replace(found, dropped={**found.dropped, **self._log.counts})


@dataclass(frozen=True)
class MakeSqlLogic:
    plan: Plan
    number: int
    client: ClientSettings
    log: LogSettings

    def __call__(self, state: StateFile, partition: int) -> SqlLogic:
        log = ProcessingLog(self.log)
        inner = MakePlanLogic(self.plan, self.number, self.client, log.handlers())
        return SqlLogic(inner(state, partition), log)

    # -- a state that was lost ---------------------------------------------------------------------

    def facts(self, state: StateFile) -> str:
        return self._plain.facts(state)

    def restore(
        self, state: StateFile, partition: int, facts: str, positions: Mapping[TopicPartition, int]
    ) -> None:
        self._plain.restore(state, partition, facts, positions)

    @property
    def _plain(self) -> MakePlanLogic:
        return MakePlanLogic(self.plan, self.number, self.client)
