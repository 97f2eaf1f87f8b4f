"""The life of a source that is a Spark job: plan a slice, write it on executors, store its offsets.

In: a task, a session, an offset store. Out: records in topics, then their offsets, slice after slice. At
least once; exactly once with a transactional id: executors write in the transaction of this process, which
also holds the offsets. An attempt that failed is aborted and its epoch fenced before the slice is written
again. Does not know: where rows come from.
"""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.jobs.encoding import ENCODED, REPORT, Encoding
from barnabas.connect.jobs.pieces import Piece
from barnabas.connect.jobs.reports import Report, check, note
from barnabas.connect.jobs.running import JobRunner, plan_of
from barnabas.connect.plugins import ConnectError, FencedError, RetriableError, Slice, SparkSource
from barnabas.connect.tasks.auditing import SourceAudit
from barnabas.connect.tasks.errors import FIRST_DELAY_MS, Stage, Stopped
from barnabas.connect.tasks.job_parts import TaskParts
from barnabas.connect.tasks.offsets import OffsetMemory
from barnabas.connect.tasks.producing import TaskProducer
from barnabas.connect.tasks.progress import LastError
from barnabas.connect.tasks.topic_creation import CreationGroup
from barnabas.engine.session import parallelism

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger("barnabas.connect")

DELAY_MS_MAX = 60_000
PAUSE_S = 0.2
WRITERS_MAX = 256
POSITIONS_SHOWN_MAX = 3
COLUMNS = ("value", "key", "topic", "partition", "timestamp", "headers")


class SourceJob:
    def __init__(
        self,
        task: SparkSource,
        parts: TaskParts,
        runner: JobRunner,
        producer: TaskProducer,
        store: OffsetMemory,
        piece: Piece,
        groups: tuple[CreationGroup, ...] = (),
        audit: SourceAudit | None = None,
    ) -> None:
        """`producer` is transactional if the source is exactly once."""
        self._task = task
        self._parts = parts
        self._runner = runner
        self._producer = producer
        self._store = store
        self._piece = piece
        self._groups = groups
        self._audit = audit
        self._progress = parts.progress
        self._delay_ms = FIRST_DELAY_MS

    def run(self) -> None:
        stopping, paused = self._parts.stopping, self._parts.paused
        while not stopping.is_set():
            self._progress.tick()
            if paused.is_set():
                stopping.wait(PAUSE_S)
                continue
            try:
                if not self._run_once():
                    stopping.wait(self._task.poll_interval_s)
                self._delay_ms = FIRST_DELAY_MS
            except Stopped:
                break
            except RetriableError as error:
                self._wait(error)

    def _wait(self, error: RetriableError) -> None:
        self._progress.retries += 1
        self._runner.waits(error)
        self._note(error)
        log.warning("task %s tries again in %d ms: %s", self._parts.name, self._delay_ms, error)
        self._parts.stopping.wait(self._delay_ms / 1000)
        self._delay_ms = min(self._delay_ms * 2, DELAY_MS_MAX)

    def _note(self, error: BaseException) -> None:
        self._progress.last_error = LastError(str(error), Stage.TASK_POLL, int(time.time() * 1000))

    def _run_once(self) -> bool:
        """Plan and write one slice; False if there was none."""
        started = time.monotonic()
        planned = self._runner.run(lambda spark: self._task.plan(spark, self._store))
        if planned is None:
            return False
        reports = self._written(planned)
        self._progress.call_ms.add((time.monotonic() - started) * 1000)
        self._count(reports)
        self._commit(planned, reports)
        seconds = time.monotonic() - started
        self._runner.report(self._progress.commits, *counts_of(reports), seconds)
        return True

    def _written(self, planned: Slice) -> list[Report]:
        """Run the job. An attempt that fails leaves nothing, if the source is exactly once."""
        progress, noted = self._progress, self._progress.last_error
        is_exact = self._producer.transactional_id is not None
        joined = self._producer.renew() if is_exact else None
        encoding = Encoding(
            self._piece,
            planned.topic,
            planned.key_schema,
            planned.value_schema,
            self._groups,
            self._producer.transactional_id,
            joined,
        )
        try:
            reports = self._runner.run(lambda spark: self._job(spark, planned, encoding))
            note(reports, progress)
            check(reports)
        except BaseException as error:
            is_final = isinstance(error, ConnectError) and not isinstance(
                error, (RetriableError, FencedError)
            )
            if isinstance(error, ConnectError) and progress.last_error is noted:  # else it names the record
                self._note(error)
            if is_exact:
                self._abort()
            if is_final:
                raise ConnectError(f"{slice_of(planned)}: {error}") from error
            raise
        return reports

    def _job(self, spark: SparkSession, planned: Slice, encoding: Encoding) -> list[Report]:
        frame = columns_of(planned.frame)
        if encoding.joined is None:
            job = frame.mapInArrow(encoding.write, REPORT)
        else:
            job = exactly_once(spark, frame, encoding)
        self._progress.plan = plan_of(job)
        return [Report.read(row["report"]) for row in job.collect()]

    def _abort(self) -> None:
        """Executors that still write are fenced by the next epoch; a broker that is away does it later."""
        try:
            self._producer.renew()
        except Stopped:
            log.info(
                "task %s: its open transaction ends by its timeout, or with the next start", self._parts.name
            )

    def _count(self, reports: list[Report]) -> None:
        progress = self._progress
        count_in, count_out = counts_of(reports)
        progress.records_in += count_in
        progress.records_out += count_out
        progress.batches.add(count_in)
        for topic in sorted({topic for each in reports for topic in each.topics}):
            if topic not in progress.topics:
                progress.topics.add(topic)
                self._parts.used_topic(topic)

    def _commit(self, planned: Slice, reports: list[Report]) -> None:
        started = time.monotonic()
        progress, positions = self._progress, list(planned.positions)
        try:
            if self._producer.transactional_id is not None:
                written = {TopicPartition(*place) for each in reports for place in each.places}
                self._producer.include(sorted(written))
                progress.transactions.add(sum(each.records_out for each in reports))
            if positions and self._store.topic is not None:
                self._producer.write([self._store.table(positions)])
            self._producer.commit()
            if self._audit is not None:
                for topic, partition, _, _, counts in (each for report in reports for each in report.counts):
                    self._audit.has(topic, partition, counts)
                self._audit.settled()
            self._store.save(positions)
        except BaseException:
            progress.commit_failures += 1
            raise
        progress.commits += 1
        progress.commit_ms.add((time.monotonic() - started) * 1000)
        self._task.commit(positions)


def slice_of(planned: Slice) -> str:
    """`the slice for the topic orders up to {"id": 7} of {"table": "orders"}`."""
    ends = [f"{json.dumps(offset)} of {json.dumps(partition)}" for partition, offset in planned.positions]
    shown = ", ".join(ends[:POSITIONS_SHOWN_MAX]) + (" and others" if len(ends) > POSITIONS_SHOWN_MAX else "")
    topic = "" if planned.topic is None else f" for the topic {planned.topic}"
    return f"the slice{topic}{shown and ' up to '}{shown}"


def counts_of(reports: list[Report]) -> tuple[int, int]:
    """Records that were read and written."""
    return sum(each.records_in for each in reports), sum(each.records_out for each in reports)


def exactly_once(spark: SparkSession, frame: DataFrame, encoding: Encoding) -> DataFrame:
    """Encode, bring the rows of each partition together in their order, write."""
    writers = min(max(parallelism(spark), 1), WRITERS_MAX)
    encoded = frame.mapInArrow(encoding.encode, ENCODED)
    together = encoded.repartition(writers, "topic", "partition")
    ordered = together.sortWithinPartitions("topic", "partition", "piece", "place")
    return ordered.mapInArrow(encoding.write_encoded, REPORT)


def columns_of(frame: DataFrame) -> DataFrame:
    """The columns that are parts of records, in a fixed order."""
    if "value" not in frame.columns:
        raise ConnectError(
            f"the frame of a source needs a column `value`, it has {', '.join(frame.columns)}:"
            " make one with struct(...)"
        )
    return frame.select(*[name for name in COLUMNS if name in frame.columns])
