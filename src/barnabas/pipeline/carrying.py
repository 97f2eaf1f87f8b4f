"""A batch on its way from bytes to the trusted zone: parsed, judged, written to every table behind its
source.

In: rows of the raw zone. Out: commits in staging, trusted and quarantine, and counts. Spark makes one pass
over the bytes; what becomes of each row is judged from a few numbers a row in the driver, so that no table is
joined or shuffled. Does not know: sources, positions, the raw zone's commits.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from barnabas.pipeline import drift, parsing, quarantine, rules, schemas
from barnabas.pipeline.changed import Changed
from barnabas.pipeline.judging import Hashes, StagingVerdict, TrustedVerdict, judge_staging, judge_trusted
from barnabas.pipeline.keys import Flags
from barnabas.pipeline.lake import LATE, RESCUED, Table, Zone
from barnabas.pipeline.masking import masked
from barnabas.pipeline.model import Drift, Merging, Pipeline, RuleKind, Source, Staging, Trusted
from barnabas.pipeline.parsing import DELETE, IGNORE, MALFORMED, OP, raw
from barnabas.pipeline.zones import commits
from barnabas.pipeline.zones import staging as zone

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

ROW = "_row"
RELEASE = "release"
NO_BATCH = -1
OUTSIDE = "outside"  # among the numbers: rows that are there to be compared, not to be written
LISTED_MAX = 4000  # rows named in the query itself; more of them are joined
RESCUED_SAMPLES = 200


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
    accepted_rows: dict[str, DataFrame] = field(default_factory=dict)
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


class Carrier:
    """The tables behind one source."""

    def __init__(self, spark: SparkSession, pipeline: Pipeline, source: Source) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._source = source
        self._lake = pipeline.the_lake
        self.staging = pipeline.staging_of(source.name)
        self.trusted = [
            (each, trusted) for each in self.staging for trusted in pipeline.trusted_of(each.name)
        ]
        self._schema: StructType | None = None
        self._tracked: dict[tuple[Table, tuple[str, ...]], zone.Tracked] = {}
        self.seconds: dict[str, float] = {}

    # -- tables ------------------------------------------------------------------------------------

    def open(self) -> None:
        """Tables are made where they are missing; a schema that is to be inferred waits for samples."""
        if not self.staging:
            return
        found = schemas.declared(self._source)
        for each in self.staging:
            table = Table(Zone.STAGING, each.name)
            if self._lake.exists(self._spark, table):
                there = self._lake.read(self._spark, table).schema
                found = drift.together(found or StructType(), there, each.name)
        if found is not None and found.fields:
            self._adopt(found)

    def _adopt(self, schema: StructType) -> None:
        """The columns from now on; tables are made, or get the columns that they lack."""
        self._schema = schema
        for each in self.staging:
            self._make(Table(Zone.STAGING, each.name), zone.with_system(schema.fields))
            self._make(quarantine.table_of(each.name), schemas.from_ddl(quarantine.DDL))
        for _, trusted in self.trusted:
            self._make(Table(Zone.TRUSTED, trusted.name), self.trusted_schema(trusted, schema))
            self._make(quarantine.table_of(trusted.name), schemas.from_ddl(quarantine.DDL))

    def _make(self, table: Table, schema: StructType) -> None:
        path = self._lake.path(table)
        if not self._lake.exists(self._spark, table):
            commits.ensure(self._spark, path, schema, commits.CHANGES)
        elif table.zone is not Zone.QUARANTINE:
            commits.add_columns(self._spark, path, schema)

    def trusted_schema(self, trusted: Trusted, schema: StructType) -> StructType:
        empty = self._spark.createDataFrame([], schema).select(
            *[masked(trusted, name) for name in schema.names]
        )
        return zone.with_system(empty.schema.fields)

    # -- parsing and judging -----------------------------------------------------------------------

    def prepare(self, rows: DataFrame) -> Prepared:
        """`rows` have the columns of the raw zone and `late_before`. Runs the one pass over them."""
        rows = parsing.prefixed(rows).withColumn(ROW, F.monotonically_increasing_id())
        if not self.staging:
            return self._pass(rows.withColumn(MALFORMED, F.lit(False)), StructType(), [], widened=False)
        schema, sampled = self._schema, None
        if schema is None:
            sampled = rows = rows.persist()
            schema = self._inferred(rows)
        found = self._parsed(rows, schema, widened=sampled is not None)
        rescued = np.flatnonzero(found.numbers["rescued"]) if self._sees_drift else ()
        if len(rescued) and any(each.drift is not Drift.RESCUE for each in self.staging):
            found = self._drifted(rows, found, schema)
        if sampled is not None:
            sampled.unpersist()
        return found

    @property
    def _sees_drift(self) -> bool:
        return parsing.effective_format(self._source).value == "json" and not self._source.changes

    def _inferred(self, rows: DataFrame) -> StructType:
        values = [
            row[0] for row in rows.select(raw("value")).limit(schemas.samples_wanted(self._source)).collect()
        ]
        schema = schemas.from_ddl(
            schemas.inferred_ddl(self._source, [value and bytes(value) for value in values])
        )
        self._adopt(schema)
        return schema

    def _drifted(self, rows: DataFrame, found: Prepared, schema: StructType) -> Prepared:
        strict = [each for each in self.staging if each.drift is Drift.STOP]
        samples = (
            found.frame.where(F.col(RESCUED).isNotNull() & ~F.col(MALFORMED))
            .select(RESCUED, raw("value"))
            .limit(RESCUED_SAMPLES)
            .collect()
        )
        if not samples:
            return found
        if strict:
            found.release()
            raise drift.stop(strict[0], [row[0] for row in samples])
        ddl = drift.columns_to_add([bytes(row[1]) for row in samples], schema.names)
        if not ddl:
            return found
        found.release()
        wider = StructType([*schema.fields, *schemas.from_ddl(ddl).fields])
        self._adopt(wider)
        return self._parsed(rows, wider, widened=True)

    def _parsed(self, rows: DataFrame, schema: StructType, *, widened: bool) -> Prepared:
        frame = parsing.parsed(rows, self._source, schema)
        frame = frame.withColumn(LATE, self._late(schema))
        for index, (_, trusted) in enumerate(self.trusted):
            frame = rules.with_references(self._spark, self._lake, frame, trusted.rules, str(index))
            frame = frame.withColumn(
                f"_broken{index}", rules.broken(trusted.rules, str(index), raw("ingested_at"))
            )
        return self._pass(frame, schema, self._number_columns(), widened=widened)

    def _late(self, schema: StructType) -> Column:
        name = self._source.event_time
        if not name or name not in schema.names or self._source.lateness_s is None:
            return F.lit(False)
        return F.coalesce(F.col(f"`{name}`").cast("timestamp") < raw("late_before"), F.lit(False))

    def _number_columns(self) -> list[Column]:
        found: list[Column] = [
            F.col(LATE).alias("late"),
            (F.col(OP) == IGNORE).alias("ignored"),
            (F.col(OP) == DELETE).alias("deletes"),
            F.col(RESCUED).isNotNull().alias("rescued"),
        ]
        if self._source.event_time:
            at = F.col(f"`{self._source.event_time}`").cast("timestamp")
            found.append(F.unix_micros(at).alias("event_time"))
        for index, each in enumerate(self.staging):
            if each.key:
                found += named_hashes([F.col(f"`{name}`") for name in each.key], f"k{index}")
        for index, (_, trusted) in enumerate(self.trusted):
            found.append(F.col(f"_broken{index}").alias(f"broken{index}"))
            for number, rule in enumerate(trusted.rules):
                if rule.kind is RuleKind.UNIQUE:
                    shown = [masked(trusted, name) for name in rule.columns]
                    found += named_hashes(shown, f"u{index}_{number}")
        return found

    def _pass(self, frame: DataFrame, schema: StructType, wanted: list[Column], *, widened: bool) -> Prepared:
        frame = frame.persist()
        size = F.coalesce(F.length(raw("value")), F.lit(0)).alias("bytes")
        table = frame.select(ROW, F.col(MALFORMED).alias("malformed"), size, *wanted).toArrow()
        numbers = {name: to_numpy(table.column(name)) for name in table.column_names}
        order = np.argsort(numbers[ROW], kind="stable")
        if len(order) and not np.array_equal(order, np.arange(len(order))):
            numbers = {name: values[order] for name, values in numbers.items()}
        return Prepared(frame, numbers, schema, widened)

    # -- writing -----------------------------------------------------------------------------------

    def carry(
        self,
        found: Prepared,
        batch: int,
        merging: Merging,
        *,
        writer: str = "",
        is_staged: bool = False,
        cover: Cover | None = None,
    ) -> Carried:
        """Into every table. `is_staged`: the rows are in staging already, only trusted judges again. `writer`
        is set when it is no batch of the source; with a `cover` rows replace what came from the same part of
        raw."""
        done = Carried()
        if not self.staging:
            return done
        numbers = found.numbers
        malformed, ignored, deletes = (numbers[name] for name in ("malformed", "ignored", "deletes"))
        outside = numbers.get(OUTSIDE)
        if outside is not None:
            malformed, ignored = malformed & ~outside, ignored | outside
        fine = ~malformed & ~ignored
        way = Way(batch, merging, writer, cover)
        verdicts: dict[str, StagingVerdict] = {}
        for index, each in enumerate(self.staging):
            table = Table(Zone.STAGING, each.name)
            keys = hashes_of(numbers, f"k{index}") if each.key else None
            if keys is not None and merging is not Merging.FIRST:
                malformed = malformed | (fine & ~keys.whole)
                fine = fine & keys.whole
            if is_staged:
                verdict = StagingVerdict(fine, np.zeros(len(fine), np.bool_))
            else:
                tracked = self._known(table, each.key, way) if keys is not None else None
                known = None
                if tracked is not None and keys is not None:
                    known = tracked.index(way.own_batch, keys.first, keys.second)
                verdict = judge_staging(fine, keys, merging, known)
                self._stage(found, each, verdict, way, done)
                if tracked is not None and keys is not None:
                    rows = verdict.staged & keys.whole
                    version = self._lake.version(self._spark, table)
                    tracked.add(keys.first[rows], keys.second[rows], version)
            verdicts[each.name] = verdict
            done.staged += int(verdict.staged.sum())
            done.duplicates += int(verdict.duplicates.sum())
        done.late = int((numbers["late"] & verdicts[self.staging[0].name].staged).sum())
        done.malformed = int(malformed.sum())
        for index, (each, trusted) in enumerate(self.trusted):
            self._trust(found, index, trusted, verdicts[each.name], deletes, way, done)
        if not is_staged:
            self._refuse_malformed(found, malformed, way, done)
        return done

    def _known(self, table: Table, columns: Any, way: Way) -> zone.Tracked | None:
        """The keys that are there and stay there. Rows that replace those of their key need none."""
        if way.merging is not Merging.FIRST:
            return None
        if way.cover is not None:
            return zone.Tracked(self._spark, self._lake, table, tuple(columns), f"NOT ({way.cover.zone})")
        return self._keys_of(table, columns)

    def _stage(
        self,
        found: Prepared,
        each: Staging,
        verdict: StagingVerdict,
        way: Way,
        done: Carried,
    ) -> None:
        if not verdict.staged.any() and way.adds:
            return
        started = time.perf_counter()
        table = Table(Zone.STAGING, each.name)
        rows = only(
            found, verdict.staged, ~found.numbers["malformed"] & ~found.numbers["ignored"], fine_rows()
        )
        names = [f"`{name}`" for name in found.schema.names]
        rows = rows.select(*names, *zone.system_columns(), OP)
        self._write(rows, found, table, each.key, way)
        self._note(done, table, int(verdict.staged.sum()), started)

    def _trust(
        self,
        found: Prepared,
        index: int,
        trusted: Trusted,
        staged: StagingVerdict,
        deletes: Flags,
        way: Way,
        done: Carried,
    ) -> None:
        started = time.perf_counter()
        table = Table(Zone.TRUSTED, trusted.name)
        uniques: dict[int, Any] = {}
        trackers: dict[int, zone.Tracked] = {}
        for number, rule in enumerate(trusted.rules):
            if rule.kind is RuleKind.UNIQUE:
                known = None
                hashes = hashes_of(found.numbers, f"u{index}_{number}")
                tracked = self._known(table, rule.columns, way)
                if tracked is not None:
                    trackers[number] = tracked
                    known = tracked.index(way.own_batch, hashes.first, hashes.second)
                uniques[number] = (hashes, known)
        verdict = judge_trusted(staged.staged, deletes, found.numbers[f"broken{index}"], uniques)
        count = int(verdict.accepted.sum())
        done.accepted += count
        if count or not way.adds:
            passing = fine_rows() & ((F.col(f"_broken{index}") == 0) | (F.col(OP) == DELETE))
            numbers = found.numbers
            would = ~numbers["malformed"] & ~numbers["ignored"] & ((numbers[f"broken{index}"] == 0) | deletes)
            rows = only(found, verdict.accepted, would, passing)
            rows = rows.select(
                *[masked(trusted, name) for name in found.schema.names], *zone.system_columns(), OP, ROW
            )
            keys = next(each.key for each in self.staging if each.name == trusted.staging)
            self._write(rows, found, table, keys, way)
            self._note(done, table, count, started)
            done.accepted_rows[trusted.name] = rows
        for number, rows_taken in verdict.claimed.items():
            if number in trackers:
                hashes = uniques[number][0]
                version = self._lake.version(self._spark, table)
                trackers[number].add(hashes.first[rows_taken], hashes.second[rows_taken], version)
        self._refuse(found, trusted, verdict, way, done)

    def _refuse(
        self,
        found: Prepared,
        trusted: Trusted,
        verdict: TrustedVerdict,
        way: Way,
        done: Carried,
    ) -> None:
        count = int(verdict.refused.sum())
        done.quarantined += count
        if way.writer == RELEASE:  # what is refused again stays where it is
            return
        table = quarantine.table_of(trusted.name)
        self._empty_quarantine(table, Zone.TRUSTED, way)
        if count:
            started = time.perf_counter()
            rows = with_numbers(found, verdict.refused, verdict.broken)
            labels = [
                (
                    F.when(F.col("_bits").bitwiseAND(F.lit(1 << n)) != 0, F.lit(rule.label)),
                    rules.reason(rule),
                    n,
                )
                for n, rule in enumerate(trusted.rules)
            ]
            names = F.filter(F.array(*[label for label, _, _ in labels]), lambda each: each.isNotNull())
            reasons = F.filter(
                F.array(*[F.when(label.isNotNull(), why) for label, why, _ in labels]),
                lambda each: each.isNotNull(),
            )
            refused = quarantine.refused(rows, Table(Zone.TRUSTED, trusted.name), names, reasons)
            self._to_quarantine(refused, table, Zone.TRUSTED, way)
            self._note(done, table, count, started)

    def _refuse_malformed(self, found: Prepared, malformed: Flags, way: Way, done: Carried) -> None:
        count = int(malformed.sum())
        done.quarantined += count
        if way.writer.startswith(RELEASE):
            return
        for each in self.staging:
            self._empty_quarantine(quarantine.table_of(each.name), Zone.STAGING, way)
            if not count:
                continue
            started = time.perf_counter()
            rows = with_numbers(found, malformed, None)
            table = quarantine.table_of(each.name)
            refused = quarantine.malformed(
                rows.select(*[name for name in rows.columns if name.startswith(parsing.RAW_PREFIX)]),
                Table(Zone.STAGING, each.name),
                found.schema,
                "debezium change event" if self._source.changes else schemas.form_of(self._source),
            )
            self._to_quarantine(refused, table, Zone.STAGING, way)
            self._note(done, table, count, started)

    def _to_quarantine(self, rows: DataFrame, table: Table, judge: Zone, way: Way) -> None:
        txn = None if way.writer else self._txn(table.name, f"quarantine-{judge}", way)
        commits.append(rows, self._lake.path(table), txn)

    def _empty_quarantine(self, table: Table, judge: Zone, way: Way) -> None:
        """What is judged anew, by a snapshot or a replay, says what is wrong now."""
        if way.cover is None and way.merging is not Merging.MIRROR:
            return
        waiting = f"zone = '{judge}' AND source = '{self._source.name}' AND {quarantine.WAITING}"
        if way.cover is not None and way.merging is Merging.FIRST:
            waiting = f"{waiting} AND {way.cover.quarantine}"
        if not self._lake.read(self._spark, table).where(waiting).isEmpty():
            self._spark.sql(f"DELETE FROM delta.`{self._lake.path(table)}` WHERE {waiting}")

    def _write(self, rows: DataFrame, found: Prepared, table: Table, keys: Any, way: Way) -> None:
        path = self._lake.path(table)
        names = found.schema.names
        if way.cover is not None and way.merging is Merging.FIRST:
            commits.overwrite(rows.drop(OP, ROW), path, where=way.cover.zone)
            return
        txn = self._txn(table.name, str(table.zone), way)
        zone.write(rows, path, names, keys, way.merging, txn, widens=found.widened)

    # -- small things ------------------------------------------------------------------------------

    def _keys_of(self, table: Table, columns: Any) -> zone.Tracked:
        name = (table, tuple(columns))
        if name not in self._tracked:
            self._tracked[name] = zone.Tracked(self._spark, self._lake, table, tuple(columns))
        return self._tracked[name]

    def _txn(self, table: str, part: str, way: Way) -> commits.Txn:
        parts = (self._pipeline.name, self._source.name, part, table, way.writer)
        return commits.Txn("/".join(each for each in parts if each), way.batch)

    def _note(self, done: Carried, table: Table, rows: int, started: float) -> None:
        done.changed.append(Changed(table, self._lake.version(self._spark, table), rows))
        done.seconds[str(table)] = round(time.perf_counter() - started, 3)


def fine_rows() -> Column:
    return ~F.col(MALFORMED) & (F.col(OP) != IGNORE)


def named_hashes(columns: list[Column], name: str) -> list[Column]:
    first, second, whole = zone.hashes(columns)
    return [first.alias(f"{name}a"), second.alias(f"{name}b"), whole.alias(f"{name}n")]


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


def to_numpy(column: Any) -> Any:
    """Nulls of numbers become the least one."""
    import pyarrow as pa

    if column.null_count:
        column = column.fill_null(False if pa.types.is_boolean(column.type) else np.iinfo(np.int64).min)
    return column.to_numpy()


def newest_of(numbers: dict[str, Any]) -> datetime | None:
    times = numbers.get("event_time")
    if times is None or not len(times) or (top := int(times.max())) == np.iinfo(np.int64).min:
        return None
    try:
        return datetime.fromtimestamp(top / 1e6, UTC)
    except (OverflowError, ValueError, OSError):
        return None
