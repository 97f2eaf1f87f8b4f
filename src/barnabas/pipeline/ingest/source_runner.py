"""A source's batches through all zones, each exactly once, whatever dies in between.

In: a session, a pipeline, the name of a source. Out: one `Batch` a step. The commit that brings batch N into
the raw zone also holds the position behind it; the zones behind it write with transaction ids of N. So a
restart knows where to read on, and carries N again: what is there stays as it is, what is missing is written
from raw. Does not know: schedules, other sources, views.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from barnabas.pipeline.engine.errors import (
    FeedError,
    ForeignLake,
    Interrupted,
    LakeAway,
    SourceAway,
    Stopped,
    explained,
)
from barnabas.pipeline.engine.session import apart
from barnabas.pipeline.ingest.batch_parser import Carrier, newest_of
from barnabas.pipeline.ingest.raw_zone import COLUMNS, Mark, RawZone
from barnabas.pipeline.ingest.results import Batch, Changed, Follower
from barnabas.pipeline.ingest.source_locks import turn
from barnabas.pipeline.ingest.zone_writer import Carried, Prepared
from barnabas.pipeline.lake.tables import Table, Zone
from barnabas.pipeline.sources.files import FilesReader
from barnabas.pipeline.sources.source_slice import LATE_BEFORE, Portion, Position, Reader, Stamp
from barnabas.pipeline.sources.table import TableReader
from barnabas.pipeline.sources.topic import TopicReader
from barnabas.pipeline.spec.model import FilesSource, Merging, Pipeline, Source, TableSource, TopicSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "Batch",
    "Changed",
    "Feed",
    "FeedError",
    "ForeignLake",
    "Interrupted",
    "LakeAway",
    "SourceAway",
    "Stopped",
    "open_reader",
]

BATCHES_PER_DRAIN_MAX = 100_000


def now() -> datetime:
    return datetime.now(UTC)


def open_reader(spark: SparkSession, pipeline: Pipeline, source: Source) -> Reader:
    if isinstance(source, TopicSource):
        return TopicReader(spark, source, f"barnabas-{pipeline.name}-{source.name}")
    if isinstance(source, TableSource):
        return TableReader(spark, source)
    if isinstance(source, FilesSource):
        return FilesReader(spark, source, pipeline.the_lake)
    raise Stopped(f"source {source.name}: there is no reader for a {type(source).__name__}")


class Feed:
    """One source. Not for several threads; several feeds may share a Spark session."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        source: str,
        *,
        clock: Callable[[], datetime] = now,
        reader: Reader | None = None,
        follower: Follower | None = None,
    ) -> None:
        # Settings and temporary views of its own: feeds run beside each other.
        self._spark = apart(spark)
        self._pipeline = pipeline
        self.source = pipeline.source(source)
        if self.source.merging is Merging.FIRST:
            # Batches are neither joined nor shuffled: what looks at Delta's log runs as one job, not as
            # three.
            self._spark.conf.set("spark.sql.adaptive.enabled", "false")
        # A batch is in memory for seconds: looking for the best way to compress it costs more than it saves.
        self._spark.conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")
        self._lake = pipeline.the_lake
        self._clock = clock
        self._reader = reader or open_reader(self._spark, pipeline, self.source)
        self._raw = RawZone(self._spark, self._lake, pipeline.name, source)
        self._follower = follower
        self._carrier = Carrier(self._spark, pipeline, self.source, follower)
        self._turn = turn(pipeline, source)
        self._mark: Mark | None = None
        self._is_open = False
        self._has_tables = False

    @property
    def position(self) -> Position | None:
        return self._mark.position if self._mark is not None else None

    def step(self) -> Batch | None:
        """One batch through all zones; None when there is nothing new. The first step finishes what died."""
        with ExitStack() as held:
            with self._explained("waiting for its turn"):
                held.enter_context(self._turn)
            return self._step()

    def _step(self) -> Batch | None:
        if not self._is_open:
            recovered = self.recover()
            if recovered is not None:
                return recovered
        assert self._mark is not None
        portion = self._reader.next(self._mark.position)
        if portion is not None:
            return self._carry(portion, self._mark)
        self._make_tables()
        return None

    def _make_tables(self) -> None:
        """Once all is read: also those that got no rows are there."""
        if not self._has_tables:
            with self._explained("making tables"):
                self._carrier.make_tables()
            self._has_tables = True

    def drain(self) -> list[Batch]:
        """Everything that is there now, as `frequency: batch` and `run --once` want it."""
        return list(self.batches())

    def batches(self, is_stopping: Callable[[], bool] = lambda: False) -> Iterator[Batch]:
        """Each batch of what is there now. What comes meanwhile is for the next time: a source that is
        written to all the time would keep everybody else waiting."""
        goal = self._reader.goal()
        for _ in range(BATCHES_PER_DRAIN_MAX):
            batch = self.step()
            if batch is not None:
                yield batch
                if not batch.recovered and self._reader.has_reached(self.position or {}, goal):
                    break
            elif waits_s := self._waits_s():
                time.sleep(waits_s)
            else:
                break
            if is_stopping():
                break
        self._make_tables()

    def _waits_s(self) -> float:
        """A source with a bandwidth limit may have more, later."""
        waits_s = self._reader.waits_s
        return waits_s if waits_s and self.lag() != 0 else 0.0

    def lag(self) -> int | None:
        """How many rows wait; None where only reading would tell."""
        return self._reader.lag(self.position)

    def recover(self) -> Batch | None:
        """Finds out how far the source was read, and finishes the last batch. None where nothing was
        missing."""
        with self._explained("opening"):
            if isinstance(self._reader, FilesReader):
                self._reader.look_again()
            mark = self._raw.newest_mark()
            if mark is None:
                mark = self._raw.begin(self._reader.start())
            self._carrier.open()
            self._mark = mark
            if mark.batch == 0:
                self._is_open = True
                return None
        started = self._clock()
        done, prepared = self._carry_from_raw(mark)
        self._mark = replace(mark, newest=self._newest_after(mark, prepared, self._stamp(mark.batch, None)))
        self._is_open = True
        if not done.changed:
            return None
        return self._batch(mark, prepared, done, started, recovered=True)

    # -- one batch ---------------------------------------------------------------------------------

    def _carry(self, portion: Portion, before: Mark) -> Batch | None:
        started = self._clock()
        if not portion.is_stable:
            return self._carry_unstable(portion, before, started)
        stamp = self._stamp(before.batch + 1, before.newest)
        with self._explained("reading"):
            prepared = self._carrier.prepare(portion.read(stamp))
        seconds = {"read": (self._clock() - started).total_seconds()}
        try:
            newest = self._bounded(newest_of(prepared.numbers), stamp)
            mark = before.following(portion.position, portion.merging, newest)
            with self._explained("writing raw"):
                at = time.perf_counter()
                self._raw.write(
                    prepared.frame.select(*[F.col(f"__{each}").alias(each) for each in COLUMNS]), mark
                )
                seconds["raw"] = round(time.perf_counter() - at, 3)
            self._mark = mark
            self._reader.done(portion, int(prepared.numbers["bytes"].sum()))
            if not prepared.count:
                return None
            done = self._through_zones(prepared, mark)
            done.seconds.update(seconds)
        finally:
            prepared.release()
        return self._batch(mark, prepared, done, started)

    def _carry_unstable(self, portion: Portion, before: Mark, started: datetime) -> Batch | None:
        """What reading again might not give again goes to raw first, and is read from there."""
        stamp = self._stamp(before.batch + 1, before.newest)
        mark = before.following(portion.position, portion.merging, None)
        try:
            with self._explained("reading"):
                self._raw.write(portion.read(stamp).drop(LATE_BEFORE).select(*COLUMNS), mark)
        except FeedError as error:
            if isinstance(self._reader, FilesReader) and not isinstance(error, LakeAway | Interrupted):
                self._reader.failed(portion, error)
            raise
        self._mark = mark
        done, prepared = self._carry_from_raw(mark)
        self._mark = replace(mark, newest=self._newest_after(mark, prepared, stamp))
        self._reader.done(portion, int(prepared.numbers["bytes"].sum()))
        return self._batch(mark, prepared, done, started)

    def _newest_after(self, mark: Mark, prepared: Prepared, stamp: Stamp) -> str | None:
        newest = self._bounded(newest_of(prepared.numbers), stamp)
        return max((each for each in (mark.newest, newest and newest.isoformat()) if each), default=None)

    def _carry_from_raw(self, mark: Mark) -> tuple[Carried, Prepared]:
        with self._explained("reading raw"):
            stamp = self._stamp(mark.batch, mark.newest_before)
            rows = self._raw.rows(mark.batch)
            late_before = F.lit(stamp.late_before).cast("timestamp").alias(LATE_BEFORE)
            prepared = self._carrier.prepare(rows.select(*COLUMNS, late_before))
        try:
            return self._through_zones(prepared, mark), prepared
        finally:
            prepared.release()

    def _through_zones(self, prepared: Prepared, mark: Mark) -> Carried:
        if not prepared.count and mark.merging is not Merging.MIRROR:
            return Carried()  # forgotten by retention
        versions = {each.table: each.version for each in self._versions()}
        with self._explained("writing"):
            done = self._carrier.carry(prepared, mark.batch, mark.merging)
        # A commit that was there already changed nothing.
        done.changed = [each for each in done.changed if versions.get(each.table) != each.version]
        return done

    def _versions(self) -> Iterator[Changed]:
        for each in self._carrier.staging:
            for zone in (Zone.STAGING, Zone.QUARANTINE):
                yield self._now(Table(zone, each.name))
        for _, trusted in self._carrier.trusted:
            for zone in (Zone.TRUSTED, Zone.QUARANTINE):
                yield self._now(Table(zone, trusted.name))

    def _now(self, table: Table) -> Changed:
        return Changed(table, self._lake.version(self._spark, table), 0)

    def _stamp(self, batch: int, newest: str | None) -> Stamp:
        late_before = None
        if newest is not None and self.source.lateness_s is not None:
            late_before = datetime.fromisoformat(newest) - timedelta(seconds=self.source.lateness_s)
        return Stamp(self.source.name, batch, self._clock(), late_before)

    @staticmethod
    def _bounded(newest: datetime | None, stamp: Stamp) -> datetime | None:
        """An event time in the future does not make everything else late."""
        return min(newest, stamp.ingested_at) if newest is not None else None

    def _batch(
        self, mark: Mark, prepared: Prepared, done: Carried, started: datetime, *, recovered: bool = False
    ) -> Batch:
        return Batch(
            pipeline=self._pipeline.name,
            source=self.source.name,
            batch=mark.batch,
            rows_in=prepared.count,
            malformed=done.malformed,
            duplicates=done.duplicates,
            staged=done.staged,
            accepted=done.accepted,
            quarantined=done.quarantined,
            late=done.late,
            bytes=int(prepared.numbers["bytes"].sum()),
            started=started,
            ended=self._clock(),
            position=mark.position,
            changed=tuple(done.changed),
            newest_event_time=newest_of(prepared.numbers),
            recovered=recovered,
            seconds=done.seconds,
        )

    @contextmanager
    def _explained(self, doing: str) -> Iterator[None]:
        """After any failure the feed opens anew: what is in the lake is what counts, not what we remember."""
        try:
            yield
        except Exception as error:
            self._is_open = False
            self._carrier = Carrier(self._spark, self._pipeline, self.source, self._follower)
            raise explained(error, f"source {self.source.name}, {doing}") from error
