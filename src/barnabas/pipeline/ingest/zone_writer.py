"""The end of a batch's way: rows that were judged land in their tables, side by side.

In: a parsed batch in Spark's memory with the numbers of each row, and how it goes in this time. Out: commits
in staging, trusted, quarantine and refined, and counts. What is written is decided before the first commit;
commits do not wait for each other, each has the id of its batch. Does not know: formats, sources, the raw
zone.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from barnabas.pipeline.ingest import known_keys, quarantine, refined_zone, rules, schemas
from barnabas.pipeline.ingest import zone_rows as zone
from barnabas.pipeline.ingest.key_index import Flags
from barnabas.pipeline.ingest.masking import masked
from barnabas.pipeline.ingest.parsing import MALFORMED
from barnabas.pipeline.ingest.results import Added, Changed, Follower
from barnabas.pipeline.ingest.verdicts import (
    Hashes,
    StagingVerdict,
    TrustedVerdict,
    judge_staging,
    judge_trusted,
)
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import DELETE, IGNORE, OP
from barnabas.pipeline.lake.tables import Table, Zone
from barnabas.pipeline.spec.model import Merging, Pipeline, Refined, RuleKind, Source, Staging, Trusted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ROW = "_row"
RELEASE = "release"
NO_BATCH = -1
OUTSIDE = "outside"  # among the numbers: rows that are there to be compared, not to be written
LISTED_MAX = 4000  # rows named in the query itself; more of them are joined
COMMITS_AT_ONCE_MAX = 6
LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Prepared:
    """A parsed batch in Spark's memory, and what was computed of each row. Release it when it is done."""

    frame: DataFrame
    numbers: dict[str, Any]
    schema: StructType
    widened: bool

    @property
    def count(self) -> int:
        return len(self.numbers[ROW])

    def release(self) -> None:
        self.frame.unpersist()


@dataclass(frozen=True, slots=True)
class Cover:
    """What a replay rewrites: the rows that come from a part of the raw zone, and nothing else."""

    raw: str  # conditions on the columns of each zone
    zone: str
    quarantine: str


@dataclass(slots=True)
class Carried:
    staged: int = 0
    duplicates: int = 0
    malformed: int = 0
    accepted: int = 0
    quarantined: int = 0
    late: int = 0
    changed: list[Changed] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Way:
    """How rows go into tables this time."""

    batch: int
    merging: Merging
    writer: str = ""
    cover: Cover | None = None

    @property
    def own_batch(self) -> int:
        """Rows of this batch that are there already were written by the same batch, before something died."""
        return NO_BATCH if self.writer else self.batch

    @property
    def adds(self) -> bool:
        """Whether no rows mean that nothing changes."""
        return self.merging is not Merging.MIRROR and self.cover is None


@dataclass(frozen=True, slots=True)
class Memory:
    """What one batch leaves for the next: keys of tables, and what is appended to by rows of a trusted
    table."""

    refinements: Mapping[str, list[tuple[Refined, str]]]
    appender: commits.Appender
    follower: Follower | None = None
    pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(COMMITS_AT_ONCE_MAX, thread_name_prefix="commit")
    )
    tracked: dict[tuple[Table, tuple[str, ...]], known_keys.Tracked] = field(default_factory=dict)


class Landing:
    """One batch into the tables behind its source."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        source: Source,
        memory: Memory,
        found: Prepared,
        way: Way,
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._source = source
        self._lake = pipeline.the_lake
        self._memory = memory
        self._tracked = memory.tracked
        self._found = found
        self._way = way
        self._done = Carried()
        self._commits: list[Callable[[], None]] = []
        self._staging_commits: list[Callable[[], None]] = []
        self._refused: dict[Table, list[tuple[Zone, int, DataFrame | None]]] = {}

    def land(
        self, stagings: list[Staging], trusteds: list[tuple[Staging, Trusted]], *, is_staged: bool
    ) -> Carried:
        """`is_staged`: the rows are in staging already, only trusted judges again."""
        numbers, way, done = self._found.numbers, self._way, self._done
        malformed, ignored, deletes = (numbers[name] for name in ("malformed", "ignored", "deletes"))
        outside = numbers.get(OUTSIDE)
        if outside is not None:
            malformed, ignored = malformed & ~outside, ignored | outside
        fine = ~malformed & ~ignored
        verdicts: dict[str, StagingVerdict] = {}
        for index, each in enumerate(stagings):
            keys = hashes_of(numbers, f"k{index}") if each.key else None
            if keys is not None and way.merging is not Merging.FIRST:
                malformed = malformed | (fine & ~keys.whole)
                fine = fine & keys.whole
            verdict = StagingVerdict(fine, np.zeros(len(fine), np.bool_))
            if not is_staged:
                verdict = self._stage(each, fine, keys)
            verdicts[each.name] = verdict
            done.staged += int(verdict.staged.sum())
            done.duplicates += int(verdict.duplicates.sum())
        done.late = int((numbers["late"] & verdicts[stagings[0].name].staged).sum())
        done.malformed = int(malformed.sum())
        for index, (each, trusted) in enumerate(trusteds):
            self._trust(index, each, trusted, verdicts[each.name], deletes)
        if not is_staged:
            self._refuse_malformed(stagings, malformed)
        self._quarantine()
        self._commit()
        return done

    def _commit(self) -> None:
        """All commits; the first problem is raised when all have come to their end."""
        # Merges take their ids from the session, one at a time.
        if self._way.merging is not Merging.FIRST or self._way.cover is not None:
            for commit in (*self._staging_commits, *self._commits):
                commit()
            return
        # Views wait for trusted, nobody waits for staging.
        in_order = (*self._commits, *self._staging_commits)
        futures = [self._memory.pool.submit(commit) for commit in in_order]
        wait(futures)
        for future in futures:
            future.result()

    # -- staging -----------------------------------------------------------------------------------

    def _stage(self, each: Staging, fine: Flags, keys: Hashes | None) -> StagingVerdict:
        table, way = Table(Zone.STAGING, each.name), self._way
        tracked = self._known(table, each.key) if keys is not None else None
        known = None
        if tracked is not None and keys is not None:
            known = tracked.index(way.own_batch, keys.first, keys.second)
        verdict = judge_staging(fine, keys, way.merging, known)
        if not verdict.staged.any() and way.adds:
            return verdict
        numbers = self._found.numbers
        rows = only(self._found, verdict.staged, ~numbers["malformed"] & ~numbers["ignored"], fine_rows())
        names = [f"`{name}`" for name in self._found.schema.names]
        rows = rows.select(*names, *zone.system_columns(), OP)

        def commit() -> None:
            version = self._write(rows, table, each.key, int(verdict.staged.sum()))
            if tracked is not None and keys is not None:
                new = verdict.staged & keys.whole
                tracked.add(keys.first[new], keys.second[new], version)

        self._staging_commits.append(commit)
        return verdict

    def _known(self, table: Table, columns: Any) -> known_keys.Tracked | None:
        """The keys that are there and stay there. Rows that replace those of their key need none."""
        cover = self._way.cover
        if self._way.merging is not Merging.FIRST:
            return None
        if cover is not None:
            return known_keys.Tracked(self._spark, self._lake, table, tuple(columns), f"NOT ({cover.zone})")
        name = (table, tuple(columns))
        if name not in self._tracked:
            self._tracked[name] = known_keys.Tracked(self._spark, self._lake, table, tuple(columns))
        return self._tracked[name]

    # -- trusted -----------------------------------------------------------------------------------

    def _trust(
        self, index: int, staging: Staging, trusted: Trusted, staged: StagingVerdict, deletes: Flags
    ) -> None:
        table, found = Table(Zone.TRUSTED, trusted.name), self._found
        uniques: dict[int, Any] = {}
        trackers: dict[int, known_keys.Tracked] = {}
        for number, rule in enumerate(trusted.rules):
            if rule.kind is RuleKind.UNIQUE:
                known = None
                hashes = hashes_of(found.numbers, f"u{index}_{number}")
                tracked = self._known(table, rule.columns)
                if tracked is not None:
                    trackers[number] = tracked
                    known = tracked.index(self._way.own_batch, hashes.first, hashes.second)
                uniques[number] = (hashes, known)
        verdict = judge_trusted(staged.staged, deletes, found.numbers[f"broken{index}"], uniques)
        count = int(verdict.accepted.sum())
        self._done.accepted += count
        self._refuse(index, trusted, verdict, deletes)
        if not count and self._way.adds:
            return
        rows = self._accepted(index, trusted, verdict, deletes)
        increments = self._increments(table, rows)

        def commit() -> None:
            before = self._lake.version(self._spark, table)
            version = self._write(rows, table, staging.key, count)
            if increments is not None and version > before:
                self._tell(table, version, increments)
            for number, tracked in trackers.items():
                hashes, new = uniques[number][0], verdict.claimed[number]
                tracked.add(hashes.first[new], hashes.second[new], version)

        self._commits.append(commit)
        if not self._way.writer:
            for each, alias in self._memory.refinements.get(trusted.name, ()):
                self._commits.append(self._refining(each, alias, rows))

    def _increments(self, table: Table, rows: DataFrame) -> Future[Mapping[str, Any]] | None:
        """What the rows are to views, computed beside the commit that adds them; views that cannot be told
        read the table's changes instead."""
        follower, way = self._memory.follower, self._way
        if follower is None or way.merging is not Merging.FIRST or way.writer or way.cover is not None:
            return None
        found: Future[Mapping[str, Any]] = Future()

        def compute() -> None:
            started = time.perf_counter()
            try:
                found.set_result(follower.increments(table, rows.drop(OP, ROW)))
            except Exception as problem:
                LOG.warning("views over %s read its changes: %s", table, str(problem).partition("\n")[0])
                found.set_result({})
            self._done.seconds[f"views of {table}"] = round(time.perf_counter() - started, 3)

        self._commits.append(compute)
        return found

    def _tell(self, table: Table, version: int, increments: Future[Mapping[str, Any]]) -> None:
        txn = self._txn(table)
        assert self._memory.follower is not None
        self._memory.follower.added(Added(table, version, txn.app, txn.version, increments.result()))

    def _accepted(self, index: int, trusted: Trusted, verdict: TrustedVerdict, deletes: Flags) -> DataFrame:
        found, numbers = self._found, self._found.numbers
        passing = fine_rows() & ((F.col(f"_broken{index}") == 0) | (F.col(OP) == DELETE))
        would = ~numbers["malformed"] & ~numbers["ignored"] & ((numbers[f"own{index}"] == 0) | deletes)
        rows = only(found, verdict.accepted, would, passing)
        return rows.select(
            *[masked(trusted, name) for name in found.schema.names], *zone.system_columns(), OP, ROW
        )

    def _refining(self, each: Refined, alias: str, rows: DataFrame) -> Callable[[], None]:
        def commit() -> None:
            started = time.perf_counter()
            app = f"{self._pipeline.name}/{self._source.name}/refined/{each.name}"
            txn = commits.Txn(app, self._way.batch)
            changed = refined_zone.append_rows(self._memory.appender, self._lake, each, alias, rows, txn)
            if changed is not None:
                self._done.changed.append(changed)
            self._done.seconds[f"refined.{each.name}"] = round(time.perf_counter() - started, 3)

        return commit

    # -- quarantine --------------------------------------------------------------------------------

    def _refuse(self, index: int, trusted: Trusted, verdict: TrustedVerdict, deletes: Flags) -> None:
        count = int(verdict.refused.sum())
        self._done.quarantined += count
        if self._way.writer == RELEASE:  # what is refused again stays where it is
            return
        refused = None
        if count:
            rows = self._broken(index, verdict, deletes)
            labels = [
                F.when(F.col("_bits").bitwiseAND(F.lit(1 << number)) != 0, F.lit(rule.label))
                for number, rule in enumerate(trusted.rules)
            ]
            reasons = [
                F.when(label.isNotNull(), rules.reason(rule))
                for label, rule in zip(labels, trusted.rules, strict=True)
            ]
            table = Table(Zone.TRUSTED, trusted.name)
            refused = quarantine.refused(rows, table, without_nulls(labels), without_nulls(reasons))
        self._refused.setdefault(quarantine.table_of(trusted.name), []).append((Zone.TRUSTED, count, refused))

    def _broken(self, index: int, verdict: TrustedVerdict, deletes: Flags) -> DataFrame:
        """Rows that break rules, with `_bits`. Where the rows alone say so, nothing is joined to them."""
        numbers, refused = self._found.numbers, verdict.refused
        own = numbers[f"own{index}"]
        if not np.array_equal(own[refused], verdict.broken[refused]):
            return with_numbers(self._found, refused, verdict.broken)
        bits = F.col(f"_broken{index}")
        breaking = fine_rows() & (bits != 0) & (F.col(OP) != DELETE)
        would = ~numbers["malformed"] & ~numbers["ignored"] & ~deletes & (own != 0)
        return only(self._found, refused, would, breaking).withColumn("_bits", bits)

    def _refuse_malformed(self, stagings: list[Staging], malformed: Flags) -> None:
        count = int(malformed.sum())
        self._done.quarantined += count
        if self._way.writer.startswith(RELEASE):
            return
        for each in stagings:
            refused = None
            if count:
                rows = only(self._found, malformed, self._found.numbers["malformed"], F.col(MALFORMED))
                if not self._found.numbers["malformed"][malformed].all():  # also rows without a key
                    rows = with_numbers(self._found, malformed, None)
                refused = quarantine.malformed(
                    rows,
                    Table(Zone.STAGING, each.name),
                    self._found.schema,
                    "debezium change event" if self._source.changes else schemas.form_of(self._source),
                )
            self._refused.setdefault(quarantine.table_of(each.name), []).append(
                (Zone.STAGING, count, refused)
            )

    def _quarantine(self) -> None:
        """One commit for all that a table's quarantine gets."""
        for table, parts in self._refused.items():
            if any(rows is not None for _, _, rows in parts) or not self._way.adds:
                self._commits.append(self._quarantining(table, parts))

    def _quarantining(
        self, table: Table, parts: list[tuple[Zone, int, DataFrame | None]]
    ) -> Callable[[], None]:
        def commit() -> None:
            started = time.perf_counter()
            path = self._lake.path(table)
            txn = None if self._way.writer else self._txn(table)
            outdated = self._outdated(table, [judge for judge, _, _ in parts])
            frames = [rows for _, _, rows in parts if rows is not None]
            if not frames:
                if outdated:
                    commits.delete(self._spark, path, outdated, txn)
                return
            whole = frames[0]
            for rows in frames[1:]:
                whole = whole.unionByName(rows)
            if outdated:
                commits.overwrite(whole, path, txn, where=outdated)
            elif txn is not None:
                self._memory.appender.append(whole, path, txn, properties=self._properties(table))
            else:
                commits.append(whole, path, None, properties=self._properties(table))
            self._note(table, sum(count for _, count, _ in parts), started)

        return commit

    def _outdated(self, table: Table, judges: list[Zone]) -> str:
        """What is judged anew, by a snapshot or a replay, says what is wrong now: the rows that go, if there
        are any."""
        way = self._way
        if way.adds or not self._lake.exists(self._spark, table):
            return ""
        zones = ", ".join(f"'{judge}'" for judge in judges)
        waiting = f"zone IN ({zones}) AND source = '{self._source.name}' AND {quarantine.WAITING}"
        if way.cover is not None and way.merging is Merging.FIRST:
            waiting = f"{waiting} AND {way.cover.quarantine}"
        return "" if self._lake.read(self._spark, table).where(waiting).isEmpty() else waiting

    # -- commits -----------------------------------------------------------------------------------

    def _write(self, rows: DataFrame, table: Table, keys: Any, count: int) -> int:
        """The version of the table with these rows in it."""
        started = time.perf_counter()
        path, way, found = self._lake.path(table), self._way, self._found
        if way.cover is not None and way.merging is Merging.FIRST:
            commits.overwrite(rows.drop(OP, ROW), path, where=way.cover.zone)
        else:
            zone.write(
                rows, path, found.schema.names, keys, way.merging, self._txn(table), self._memory.appender,
                widens=found.widened, properties=self._properties(table),
            )  # fmt: skip
        return self._note(table, count, started)

    def _properties(self, table: Table) -> dict[str, str] | None:
        """A table that is not there yet is made by its first rows."""
        return None if self._lake.exists(self._spark, table) else dict(commits.CHANGES)

    def _txn(self, table: Table) -> commits.Txn:
        parts = (self._pipeline.name, self._source.name, str(table.zone), table.name, self._way.writer)
        return commits.Txn("/".join(each for each in parts if each), self._way.batch)

    def _note(self, table: Table, rows: int, started: float) -> int:
        version = self._lake.version(self._spark, table)
        self._done.changed.append(Changed(table, version, rows))
        self._done.seconds[str(table)] = round(time.perf_counter() - started, 3)
        return version


def without_nulls(columns: list[Column]) -> Column:
    return F.filter(F.array(*columns), lambda each: each.isNotNull())


def fine_rows() -> Column:
    return ~F.col(MALFORMED) & (F.col(OP) != IGNORE)


def hashes_of(numbers: dict[str, Any], name: str) -> Hashes:
    return Hashes(numbers[f"{name}a"], numbers[f"{name}b"], numbers[f"{name}n"])


def only(found: Prepared, wanted: Flags, by_condition: Flags, condition: Column) -> DataFrame:
    """The wanted rows: those that a condition finds, without those that it finds too many."""
    rows = found.frame.where(condition)
    return without(rows, found.numbers[ROW][by_condition & ~wanted])


def without(rows: DataFrame, numbers: Any) -> DataFrame:
    if not len(numbers):
        return rows
    if len(numbers) <= LISTED_MAX:
        return rows.where(F.expr(f"{ROW} NOT IN ({','.join(map(str, numbers.tolist()))})"))
    return rows.join(F.broadcast(numbered(rows.sparkSession, {ROW: numbers})), ROW, "left_anti")


def with_numbers(found: Prepared, wanted: Flags, bits: Any) -> DataFrame:
    """The wanted rows, with `_bits` beside them."""
    columns = {ROW: found.numbers[ROW][wanted]}
    if bits is not None:
        columns["_bits"] = bits[wanted]
    return found.frame.join(F.broadcast(numbered(found.frame.sparkSession, columns)), ROW)


def numbered(spark: SparkSession, columns: dict[str, Any]) -> DataFrame:
    import pyarrow as pa

    return spark.createDataFrame(pa.table({name: pa.array(values) for name, values in columns.items()}))
