"""Runs one source: each of its batches goes through all zones exactly once, also after crashes.

In: a session, a pipeline, the name of a source. Out: one `BatchResult` for each step. The commit that brings
batch N into the raw zone also holds the source's position behind it. The other zones commit with transaction
ids of N. After a restart the runner therefore knows where to continue, and writes N again from raw: Delta
skips the commits that exist. Does not know: schedules, other sources, views.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from barnabas.engine.errors import (
    CommitConflict,
    IngestError,
    LakeUnavailable,
    NeedsDecision,
    classified,
)
from barnabas.engine.lease_status import check_lease, lease_status
from barnabas.engine.session import apart, is_local
from barnabas.pipeline.ingest.audit_mark import AuditMark
from barnabas.pipeline.ingest.batch_parser import BatchParser, in_reading_order
from barnabas.pipeline.ingest.compaction import Compactor
from barnabas.pipeline.ingest.complete_batch import CompleteBatch, CompleteBatches
from barnabas.pipeline.ingest.fenced_tables import fence_tables
from barnabas.pipeline.ingest.judging.parsed_batch import ROWS_ON_DRIVER_MAX, ParsedBatch
from barnabas.pipeline.ingest.maintenance import keeping_checkpoint
from barnabas.pipeline.ingest.raw_zone import COLUMNS, RawCheckpoint, RawZone
from barnabas.pipeline.ingest.results import BatchResult, CommitListener, TableChange
from barnabas.pipeline.ingest.table_properties import keep_statistics
from barnabas.pipeline.ingest.write_mode import WriteResult
from barnabas.pipeline.ingest.zone_audit import zone_audit
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.sources.files import FilesReader
from barnabas.pipeline.sources.source_slice import LATE_BEFORE, Position, Reader, SourceSlice, Stamp
from barnabas.pipeline.sources.table import TableReader
from barnabas.pipeline.sources.topic import TopicReader, client_id_of
from barnabas.pipeline.spec.model import FilesSource, Merging, Pipeline, Source, TableSource, TopicSource
from barnabas.pipeline.spec.source_locks import source_lock
from barnabas.pipeline.spec.state_folder import state_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BATCHES_PER_DRAIN_MAX = 100_000
ADAPTIVE = "spark.sql.adaptive.enabled"


def now() -> datetime:
    return datetime.now(UTC)


def open_reader(spark: SparkSession, pipeline: Pipeline, source: Source) -> Reader:
    if isinstance(source, TopicSource):
        return TopicReader(spark, source, client_id_of(pipeline.name, source.name))
    if isinstance(source, TableSource):
        return TableReader(spark, source, pipeline.lake_location)
    if isinstance(source, FilesSource):
        return FilesReader(spark, source, pipeline.lake_location, pipeline.spark.settings)
    raise NeedsDecision(f"source {source.name}: there is no reader for {type(source).__name__}")


class SourceRunner:
    """One source. Use it from one thread; several runners may share a Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        source: str,
        *,
        clock: Callable[[], datetime] = now,
        reader: Reader | None = None,
        listener: CommitListener | None = None,
    ) -> None:
        # Runners work in parallel, so each has its own settings and temporary views.
        self._spark = apart(spark)
        self._pipeline = pipeline
        self.source = pipeline.source(source)
        is_appended = self.source.merging is Merging.INSERT_NEW
        if is_appended and is_local(spark) and ADAPTIVE not in pipeline.spark.settings:
            # These batches are neither joined nor shuffled. Without adaptive execution Spark reads Delta's
            # log in one job instead of three, which counts on few cores.
            self._spark.conf.set(ADAPTIVE, "false")
        # A batch stays in memory for seconds: compressing it costs more than it saves.
        self._spark.conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")
        self._lake = pipeline.lake_location
        self._clock = clock
        self._reader = reader or open_reader(self._spark, pipeline, self.source)
        self._state_folder = state_folder(pipeline)
        # A process keeps its epoch: with another one it would pass the fence of the next holder.
        self._epoch = lease_status(self._state_folder).epoch
        self._raw = RawZone(self._spark, self._lake, pipeline.name, source, self._epoch)
        self._listener = listener
        self._audit = zone_audit(spark, pipeline, source)
        self._parser = self._new_parser()
        self._lock = source_lock(pipeline, source)
        self._complete = CompleteBatches(pipeline, source)
        self._compactor = Compactor(spark, pipeline, self.source, self._epoch)
        self._checkpoint: RawCheckpoint | None = None
        self._is_open = False
        self._has_tables = False
        self._has_moved = False  # the last step brought the position forward, with rows or without

    def _new_parser(self) -> BatchParser:
        return BatchParser(self._spark, self._pipeline, self.source, self._listener, self._epoch, self._audit)

    @property
    def position(self) -> Position | None:
        return self._checkpoint.position if self._checkpoint is not None else None

    def step(self) -> BatchResult | None:
        """Bring one batch through all zones; None when there is nothing new, or only records of aborted
        transactions.

        The first step finishes a batch that a crash interrupted."""
        with ExitStack() as held:
            with self._failures_classified("waiting for the lock of the source"):
                held.enter_context(self._lock)
                check_lease(self._state_folder, self._epoch)
            batch = self._step()
        if self._audit is not None:
            if self._checkpoint is not None:
                self._audit.complete(self._checkpoint.batch)
            self._audit.count_if_due()
        if batch is not None:
            self._compactor.committed([self._raw.table, *dict.fromkeys(each.table for each in batch.changed)])
        return batch

    def _step(self) -> BatchResult | None:
        self._has_moved = False
        if not self._is_open:
            recovered = self.recover()
            if recovered is not None:
                return recovered
        assert self._checkpoint is not None
        source_slice = self._reader.next(self._checkpoint.position)
        if source_slice is not None:
            return self._ingest(source_slice, self._checkpoint)
        self._make_tables()
        return None

    def _make_tables(self) -> None:
        """Make the tables that got no rows, once everything is read."""
        if not self._has_tables:
            with self._failures_classified("making tables"):
                self._parser.make_tables()
            self._has_tables = True

    def drain(self) -> list[BatchResult]:
        """Read everything that the source has now, as `frequency: batch` and `run --once` do."""
        found = list(self.batches())
        self.count_zones()
        return found

    def count_zones(self) -> None:
        """Count for the audit what is not counted yet. Batches wait if that fails."""
        if self._audit is not None:
            self._audit.count()

    def batches(self, is_stopping: Callable[[], bool] = lambda: False) -> Iterator[BatchResult]:
        """Read what the source has now, batch by batch.

        Rows that arrive meanwhile are left for the next call: a busy source would never end."""
        goal = self._reader.goal()
        for _ in range(BATCHES_PER_DRAIN_MAX):
            # Asked before the step: the pause may end while the step works.
            may_be_pausing = self._reader.waits_s > 0
            batch = self.step()
            if batch is not None:
                yield batch
            if self._has_moved:  # with rows or without
                if self._reader.has_reached(self.position or {}, goal):
                    break
            elif batch is not None:
                pass  # an interrupted batch was finished; its source was not read
            elif may_be_pausing and self.lag() != 0:
                time.sleep(self._reader.waits_s)
            else:
                break
            if is_stopping():
                break
        self._make_tables()

    def wait_for_compaction(self) -> None:
        """Wait until nothing is being compacted in the background."""
        self._compactor.wait()

    def lag(self) -> int | None:
        """How many rows are unread; None where that cannot be known without reading."""
        return self._reader.lag(self.position)

    def recover(self) -> BatchResult | None:
        """Find out how far the source was read, and finish its last batch; None where nothing was missing.

        A batch that is noted as complete is not judged again: rules may have changed meanwhile, and a
        backfill gives the rows that it reads again the number of the last batch."""
        with self._failures_classified("opening"):
            fence_tables(self._spark, self._pipeline)
            if isinstance(self._reader, FilesReader):
                self._reader.look_again()
            checkpoint = self._raw.newest_checkpoint()
            if checkpoint is None:
                self._complete.forget()
                checkpoint = self._raw.begin(self._reader.start())
            self._keep_statistics()
            self._parser.open()
            complete = self._complete.last()
            if complete is not None and complete.batch == checkpoint.batch:
                newest = max((each for each in (checkpoint.newest, complete.newest) if each), default=None)
                checkpoint = replace(checkpoint, newest=newest, audit=complete.audit or checkpoint.audit)
            else:
                complete = None
            self._checkpoint = checkpoint
            if self._audit is not None:
                self._audit.begin(checkpoint.batch, checkpoint.audit)
            if complete is not None or checkpoint.batch == 0:
                self._is_open = True
                return None
        started = self._clock()
        done, parsed = self._write_from_raw(checkpoint, recovers=True)
        self._checkpoint = replace(
            checkpoint, newest=self._newest_after(checkpoint, parsed, self._stamp(checkpoint.batch, None))
        )
        self._note_complete()
        self._is_open = True
        if not done.changed:
            return None
        return self._batch(checkpoint, parsed, done, started, recovered=True)

    def _keep_statistics(self) -> None:
        """Give tables of an older lake the properties that new ones have."""
        with keeping_checkpoint(self._spark, self._pipeline, self._raw.table):
            keep_statistics(self._spark, self._pipeline, self._raw.table)
        for each in self._versions():
            keep_statistics(self._spark, self._pipeline, each.table)

    # -- one batch ---------------------------------------------------------------------------------

    def _ingest(self, source_slice: SourceSlice, before: RawCheckpoint) -> BatchResult | None:
        started = self._clock()
        if not source_slice.is_stable:
            return self._ingest_unstable(source_slice, before, started)
        stamp = self._stamp(before.batch + 1, before.newest)
        with self._failures_classified("reading"):
            references = self._parser.reference_versions()
            rows_max = int(source_slice.facts.get("offsets", ROWS_ON_DRIVER_MAX + 1))
            parsed = self._parser.parse(source_slice.read(stamp), rows_max, references)
        seconds = {"read": (self._clock() - started).total_seconds()}
        try:
            newest = self._bounded(parsed.totals.newest_event_time, stamp)
            checkpoint = before.following(
                source_slice.position, source_slice.merging, newest, references, self._mark()
            )
            with self._failures_classified("writing raw"):
                at = time.perf_counter()
                self._raw.write(
                    parsed.frame.select(*[F.col(f"__{each}").alias(each) for each in COLUMNS]), checkpoint
                )
                seconds["raw"] = round(time.perf_counter() - at, 3)
            self._checkpoint, self._has_moved = checkpoint, True
            self._reader.done(source_slice, parsed.totals.bytes)
            done = self._write_zones(parsed, checkpoint) if parsed.count else WriteResult()
            self._note_complete()
            if not parsed.count:
                return None
            done.seconds.update(seconds)
        finally:
            parsed.release()
        return self._batch(checkpoint, parsed, done, started)

    def _ingest_unstable(
        self, source_slice: SourceSlice, before: RawCheckpoint, started: datetime
    ) -> BatchResult | None:
        """Write the slice to raw first and go on from there: reading the source again may give other rows."""
        stamp = self._stamp(before.batch + 1, before.newest)
        try:
            with self._failures_classified("reading"):
                references = self._parser.reference_versions()
                checkpoint = before.following(source_slice.position, source_slice.merging, None, references)
                self._raw.write(source_slice.read(stamp).drop(LATE_BEFORE).select(*COLUMNS), checkpoint)
        except IngestError as error:
            if isinstance(self._reader, FilesReader) and not isinstance(
                error, LakeUnavailable | CommitConflict
            ):
                self._reader.failed(source_slice, error)
            raise
        self._checkpoint, self._has_moved = checkpoint, True
        done, parsed = self._write_from_raw(checkpoint)
        self._checkpoint = replace(checkpoint, newest=self._newest_after(checkpoint, parsed, stamp))
        self._note_complete()
        self._reader.done(source_slice, parsed.totals.bytes)
        return self._batch(checkpoint, parsed, done, started)

    def _mark(self) -> AuditMark | None:
        return self._audit.mark() if self._audit is not None else None

    def _note_complete(self) -> None:
        """Note that all zones have the last batch."""
        assert self._checkpoint is not None
        with self._failures_classified("noting that the batch is complete"):
            done = CompleteBatch(self._checkpoint.batch, self._checkpoint.newest, self._mark())
            self._complete.note(done)

    def _newest_after(self, checkpoint: RawCheckpoint, parsed: ParsedBatch, stamp: Stamp) -> str | None:
        newest = self._bounded(parsed.totals.newest_event_time, stamp)
        return max(
            (each for each in (checkpoint.newest, newest and newest.isoformat()) if each), default=None
        )

    def _write_from_raw(
        self, checkpoint: RawCheckpoint, *, recovers: bool = False
    ) -> tuple[WriteResult, ParsedBatch]:
        with self._failures_classified("reading raw"):
            stamp = self._stamp(checkpoint.batch, checkpoint.newest_before)
            rows = self._raw.rows(checkpoint.batch)
            count = rows.count()
            late_before = F.lit(stamp.late_before).cast("timestamp").alias(LATE_BEFORE)
            rows = in_reading_order(rows, count).select(*COLUMNS, late_before)
            parsed = self._parser.parse(rows, count, checkpoint.references)
        try:
            return self._write_zones(parsed, checkpoint, recovers=recovers), parsed
        finally:
            parsed.release()

    def _write_zones(
        self, parsed: ParsedBatch, checkpoint: RawCheckpoint, *, recovers: bool = False
    ) -> WriteResult:
        if not parsed.count and checkpoint.merging is not Merging.REPLACE_ALL:
            return WriteResult()  # retention has removed the rows
        versions = {each.table: each.version for each in self._versions()}
        with self._failures_classified("writing"):
            done = self._parser.write(parsed, checkpoint.batch, checkpoint.merging, recovers=recovers)
        # A commit that existed already has changed nothing.
        done.changed = [each for each in done.changed if versions.get(each.table) != each.version]
        return done

    def _versions(self) -> Iterator[TableChange]:
        for each in self._parser.staging:
            for zone in (Zone.STAGING, Zone.QUARANTINE):
                yield self._now(TableName(zone, each.name))
        for _, trusted in self._parser.trusted:
            for zone in (Zone.TRUSTED, Zone.QUARANTINE):
                yield self._now(TableName(zone, trusted.name))

    def _now(self, table: TableName) -> TableChange:
        return TableChange(table, self._lake.version(self._spark, table), 0)

    def _stamp(self, batch: int, newest: str | None) -> Stamp:
        late_before = None
        if newest is not None and self.source.lateness_s is not None:
            late_before = datetime.fromisoformat(newest) - timedelta(seconds=self.source.lateness_s)
        return Stamp(self.source.name, batch, self._clock(), late_before)

    @staticmethod
    def _bounded(newest: datetime | None, stamp: Stamp) -> datetime | None:
        """Cap event times at the present: one in the future would make all other rows late."""
        return min(newest, stamp.ingested_at) if newest is not None else None

    def _batch(
        self,
        checkpoint: RawCheckpoint,
        parsed: ParsedBatch,
        done: WriteResult,
        started: datetime,
        *,
        recovered: bool = False,
    ) -> BatchResult:
        return BatchResult(
            pipeline=self._pipeline.name,
            source=self.source.name,
            batch=checkpoint.batch,
            rows_in=parsed.count,
            malformed=done.malformed,
            duplicates=done.duplicates,
            staged=done.staged,
            accepted=done.accepted,
            quarantined=done.quarantined,
            late=done.late,
            bytes=parsed.totals.bytes,
            started=started,
            ended=self._clock(),
            position=checkpoint.position,
            changed=tuple(done.changed),
            newest_event_time=parsed.totals.newest_event_time,
            recovered=recovered,
            seconds=done.seconds,
        )

    @contextmanager
    def _failures_classified(self, doing: str) -> Iterator[None]:
        """Classify a failure, and make the next step start from what the lake holds."""
        try:
            yield
        except Exception as error:
            self._is_open = False
            self._parser = self._new_parser()
            raise classified(error, f"source {self.source.name}, {doing}") from error
