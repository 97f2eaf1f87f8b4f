"""The life of a sink that is a Spark job: choose a range, decode it on executors, write it, commit offsets.

In: a task, a session, a member of the group that holds partitions and fetches nothing. Out: DataFrames handed
to the task, one bounded batch after the other; offsets committed after each, with the number of the batch as
their metadata. So a sink that keeps batch numbers beside its data is exactly once. Does not know: what is
written where.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import TopicPartition
from barnabas.connect.jobs.batches import DecodedRange, decode
from barnabas.connect.jobs.failures import short
from barnabas.connect.jobs.pieces import Piece
from barnabas.connect.jobs.reports import check, note
from barnabas.connect.jobs.running import JobRunner, plan_of
from barnabas.connect.plugins import Batch, ConnectError, FencedError, RetriableError, SinkContext, SparkSink
from barnabas.connect.plugins.spark import Ranges
from barnabas.connect.tasks.auditing import SinkAudit
from barnabas.connect.tasks.consuming import SinkConsumer
from barnabas.connect.tasks.errors import FIRST_DELAY_MS, Stage, Stopped
from barnabas.connect.tasks.job_parts import TaskParts
from barnabas.connect.tasks.progress import LastError
from barnabas.protocol import KafkaError
from barnabas.spark.basics.settings import ClientSettings
from barnabas.spark.planning import limited

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("barnabas.connect")

POLL_MS = 200
DELAY_MS_MAX = 60_000
BATCH_RECORDS, BATCH_RECORDS_DEFAULT = "barnabas.spark.batch.records", 500_000
BATCH_INTERVAL, BATCH_INTERVAL_DEFAULT = "barnabas.spark.batch.interval.ms", 1000
METADATA = "barnabas-batch:"  # before the number of the batch, in the metadata of committed offsets
COMMIT_S = 30.0


class SinkJob:
    def __init__(
        self,
        task: SparkSink,
        context: SinkContext,
        parts: TaskParts,
        runner: JobRunner,
        consumer: SinkConsumer,
        piece: Piece,
        client: ClientSettings,
        audit: SinkAudit | None = None,
    ) -> None:
        self._audit = audit
        self._task = task
        self._context = context
        self._parts = parts
        self._runner = runner
        self._consumer = consumer
        self._piece = piece
        self._client = client
        self._progress = parts.progress
        self._records_max = whole_number(parts.config, BATCH_RECORDS, BATCH_RECORDS_DEFAULT)
        self._interval_s = whole_number(parts.config, BATCH_INTERVAL, BATCH_INTERVAL_DEFAULT) / 1000
        self._delay_ms = FIRST_DELAY_MS
        self._open: dict[TopicPartition, int] = {}  # the next offset of each partition
        self._number = -1  # of the last batch that is committed
        self._redo: tuple[int, Ranges] | None = None
        self._last_batch = 0.0
        self._doing: Ranges = {}  # of the batch that is being written

    def run(self) -> None:
        stopping, paused = self._parts.stopping, self._parts.paused
        while not stopping.is_set():
            self._progress.tick()
            try:
                self._follow()
                if paused.is_set() or not self._open:
                    continue
                if not self._run_once():
                    stopping.wait(min(self._interval_s, 1.0))
                self._delay_ms = FIRST_DELAY_MS
            except Stopped:
                break
            except RetriableError as error:
                self._progress.retries += 1
                self._runner.waits(error)
                self._note(error)
                log.warning("task %s tries again in %d ms: %s", self._parts.name, self._delay_ms, error)
                self._doing = {}
                self._open.clear()  # ask again which offsets the store has reached
                stopping.wait(self._delay_ms / 1000)
                self._delay_ms = min(self._delay_ms * 2, DELAY_MS_MAX)

    def _note(self, error: BaseException) -> None:
        """Note the error, with the first record of the batch that was being written."""
        where = next(iter(sorted(self._doing.items())), None)
        place = (None, None, None) if where is None else (where[0].topic, where[0].partition, where[1][0])
        self._progress.last_error = LastError(str(error), Stage.TASK_PUT, int(time.time() * 1000), *place)

    # -- partitions --------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Stay a member of the group; between two batches partitions may go and come."""
        if self._consumer.must_release:
            self._open.clear()
            self._consumer.release()
        try:
            self._consumer.poll(POLL_MS)
        except (KafkaError, ClientError, TimeoutError) as error:
            if isinstance(error, KafkaError) and not error.code.retriable:
                raise
            raise RetriableError(f"the group cannot be followed: {short(error)}") from error
        now = set(self._consumer.assignment)
        if now == set(self._open) or self._consumer.must_release:
            return
        self._open.clear()
        self._progress.partitions = len(now)
        self._context.assignment = set(now)
        if not now:
            return
        committed = self._consumer.committed_with_metadata(sorted(now))
        starts = {where: committed[where].offset for where in now if where in committed}
        for where in now - set(starts):
            position = self._consumer.position(where)
            if position is None:
                return  # the next poll finds it
            starts[where] = position
        topics = sorted({where.topic for where in now})
        self._runner.run(lambda spark: self._task.open(spark, topics))
        last = self._runner.run(lambda spark: self._task.last_batch())
        numbers = [number_in(each.metadata) for each in committed.values()]
        self._number, self._redo = continued(numbers, last)
        if self._redo is not None and not self._redo[1]:
            raise ConnectError(
                f"the sink holds batch {self._redo[0]}, whose offsets are not committed, and does not know"
                " its ranges any more: set the offsets by PATCH /connectors/NAME/offsets"
            )
        if self._redo is not None and not set(self._redo[1]) <= now:
            raise ConnectError(
                f"the sink holds a part of batch {self._redo[0]}, with partitions that are not this task's:"
                " give the connector one task, and all topics that it had"
            )
        if len(committed) < len(now) or None in numbers:
            self._commit_offsets(self._number, starts)  # a first batch that is not committed is known by it
        self._open = starts

    # -- batches -----------------------------------------------------------------------------------------

    def _run_once(self) -> bool:
        """Write one batch; False if there was nothing to write."""
        if self._redo is not None:
            number, ranges = self._redo
            log.info("task %s finishes batch %d", self._parts.name, number)
            self._next_ranges()  # for the lag
            self._batch(number, ranges)
            self._redo = None
            return True
        wait_s = self._last_batch + self._interval_s - time.monotonic()
        if wait_s > 0:
            self._parts.stopping.wait(min(wait_s, 0.5))
            return True
        ranges = self._next_ranges()
        if not ranges:
            return False
        self._last_batch = time.monotonic()
        self._batch(self._number + 1, ranges)
        return True

    def _next_ranges(self) -> Ranges:
        try:
            ends = self._consumer.ends(sorted(self._open), read_committed=self._client.is_read_committed)
        except (KafkaError, ClientError, TimeoutError) as error:
            raise RetriableError(f"ends of partitions are not known: {short(error)}") from error
        starts = {where: offset for where, offset in self._open.items() if where in ends}
        behind = {where: max(ends[where] - offset, 0) for where, offset in starts.items()}
        self._progress.lag = max(behind.values(), default=0)
        for where, offset in starts.items():
            if ends[where] < offset:
                log.warning("%s ends at %d, before %d: the topic was made anew", where, ends[where], offset)
                self._open[where] = starts[where] = 0
        found = limited(starts, ends, self._records_max)
        return {where: (starts[where], end) for where, end in found.items() if end > starts[where]}

    def _batch(self, number: int, ranges: Ranges) -> None:
        """Write and commit a batch; an error names it. After a RetriableError it comes again with the same
        number."""
        noted, self._doing = self._progress.last_error, ranges
        try:
            self._written(number, ranges)
        except (RetriableError, FencedError):
            raise
        except ConnectError as error:
            if self._progress.last_error is noted:  # else it names the record
                self._note(error)
            raise ConnectError(f"batch {number} of {span(self._doing)}: {error}") from error
        self._doing = {}

    def _written(self, number: int, ranges: Ranges) -> None:
        started = time.monotonic()
        decoded = self._runner.run(lambda spark: self._decoded(spark, ranges))
        try:
            note(decoded.reports, self._progress)
            check(decoded.reports)
            self._doing = decoded.ranges
            topics = sorted(decoded.shapes.by_topic)
            read = sum(each.records_in for each in decoded.reports)
            for part, topic in enumerate(topics):
                self._write(decoded, number, topic, part, topics)
        finally:
            self._released(decoded)
        self._progress.call_ms.add((time.monotonic() - started) * 1000)
        self._progress.batches.add(read)
        self._progress.records_in += read
        self._progress.records_out += sum(decoded.shapes.counts.values())
        ends = {where: end for where, (_, end) in decoded.ranges.items()}
        if self._audit is not None:
            self._count(decoded, ends, self._audit)
        self._commit(number, ends)
        written = sum(decoded.shapes.counts.values())
        self._runner.report(number, read, written, time.monotonic() - started)

    def _count(self, decoded: DecodedRange, ends: Mapping[TopicPartition, int], audit: SinkAudit) -> None:
        """Count what the sink has written, but not pieces that were cut."""
        audit.forget(ends)
        pieces = [each for report in decoded.reports for each in report.counts]
        for topic, partition, start, end, counts in sorted(pieces, key=lambda piece: piece[:3]):
            audit.has(TopicPartition(topic, partition), start, end, counts)
        audit.flushed(ends, self._consumer.topic_ids())

    def _decoded(self, spark: SparkSession, ranges: Ranges) -> DecodedRange:
        check, name = self._task.record_check(spark), type(self._task).__qualname__
        return decode(spark, self._piece, self._client, ranges, self._consumer.topic_ids(), check, name)

    def _released(self, decoded: DecodedRange) -> None:
        try:
            decoded.release()
        except Exception as error:
            log.debug("packets are not released: %s", error)

    def _write(
        self, decoded: DecodedRange, number: int, topic: str, part: int, topics: Sequence[str]
    ) -> None:
        parts, progress = self._parts, self._progress
        key, value = decoded.shapes.by_topic[topic]
        batch = Batch(
            parts.connector, parts.task, number, decoded.ranges, key, value, topic, part, len(topics),
            parts.config,
        )  # fmt: skip
        if topic not in progress.topics:
            progress.topics.add(topic)
            parts.used_topic(topic)

        def write(spark: SparkSession) -> None:
            frame = decoded.frame(topic)
            progress.plan = plan_of(frame)
            self._task.write(frame, batch)

        self._runner.run(write)

    def _commit(self, number: int, ends: dict[TopicPartition, int]) -> None:
        started = time.monotonic()
        # All partitions get the number, so that none tells an older one.
        offsets = {**self._open, **ends}
        self._commit_offsets(number, offsets)
        self._number, self._open = number, offsets
        self._progress.commits += 1
        self._progress.commit_ms.add((time.monotonic() - started) * 1000)

    def _commit_offsets(self, number: int, offsets: Mapping[TopicPartition, int]) -> None:
        try:
            self._consumer.commit(offsets, COMMIT_S, f"{METADATA}{number}")
        except (KafkaError, ClientError, TimeoutError) as error:
            self._progress.commit_failures += 1
            raise RetriableError(f"offsets of batch {number} are not committed: {short(error)}") from error


def number_in(metadata: str) -> int | None:
    """The number of a batch in the metadata of an offset; None if somebody else committed it."""
    found = re.fullmatch(rf"{METADATA}(-?\d+)", metadata)
    return None if found is None else int(found[1])


def continued(
    numbers: Sequence[int | None], last: tuple[int, Ranges] | None
) -> tuple[int, tuple[int, Ranges] | None]:
    """The number of the last batch that counts, and a batch that must be finished first.

    `numbers` are those of committed offsets, `last` the batch that the sink's data holds. Offsets that were
    set or deleted by hand have no number: then they count, and numbers go on behind those of the sink."""
    known = [each for each in numbers if each is not None]
    held = -1 if last is None else last[0]
    if not known or len(known) < len(numbers):
        return max([held, *known]), None
    committed = max(known)
    if last is not None and held == committed + 1:
        return committed, last
    return max(held, committed), None


def whole_number(config: Mapping[str, str], name: str, default: int) -> int:
    text = (config.get(name) or str(default)).strip()
    if not text.isdigit() or not int(text):
        raise ConnectError(f"{name} is {text!r}: a whole number of at least 1 is needed")
    return int(text)


def span(ranges: Ranges) -> str:
    """`orders-0 offsets 5 to 9, orders-1 offsets 0 to 3`."""
    found = [
        f"{where.topic}-{where.partition} offsets {first} to {end - 1}"
        for where, (first, end) in sorted(ranges.items())
    ]
    return ", ".join(found[:5]) + (f" and {len(found) - 5} more partitions" if len(found) > 5 else "")
