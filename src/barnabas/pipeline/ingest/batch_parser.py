"""A batch on its way from bytes to the trusted zone: parsed, judged, written to every table behind its
source.

In: rows of the raw zone. Out: commits in staging, trusted and quarantine, and counts. Spark makes one pass
over the bytes; what becomes of each row is judged from a few numbers a row in the driver, so that no table is
joined or shuffled. Does not know: sources, positions, the raw zone's commits.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from barnabas.pipeline.ingest import drift, known_keys, parsing, quarantine, refined_zone, rules, schemas
from barnabas.pipeline.ingest import zone_rows as zone
from barnabas.pipeline.ingest.masking import masked
from barnabas.pipeline.ingest.parsing import MALFORMED, raw
from barnabas.pipeline.ingest.results import Follower
from barnabas.pipeline.ingest.zone_writer import ROW, Carried, Cover, Landing, Memory, Prepared, Way
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import DELETE, IGNORE, LATE, OP, RESCUED
from barnabas.pipeline.lake.tables import Table, Zone
from barnabas.pipeline.spec.model import Drift, Merging, Pipeline, RuleKind, Source, Trusted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RESCUED_SAMPLES = 200


class Carrier:
    """The tables behind one source."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, source: Source, follower: Follower | None = None
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._source = source
        self._lake = pipeline.the_lake
        self.staging = pipeline.staging_of(source.name)
        self.trusted = [
            (each, trusted) for each in self.staging for trusted in pipeline.trusted_of(each.name)
        ]
        self._schema: StructType | None = None
        self._memory = Memory(
            {trusted.name: refined_zone.appended_by(pipeline, trusted.name) for _, trusted in self.trusted},
            commits.Appender(self._lake.is_local),
            follower,
        )

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
        """The columns from now on; tables that are there get the columns that they lack."""
        self._schema = schema
        for table, columns in self._tables(schema):
            if table.zone is not Zone.QUARANTINE and self._lake.exists(self._spark, table):
                commits.add_columns(self._spark, self._lake.path(table), columns)

    def make_tables(self) -> None:
        """Tables that have no rows yet are made empty, so that everybody can read them."""
        for table, columns in self._tables(self._schema) if self._schema is not None else ():
            if not self._lake.exists(self._spark, table):
                commits.ensure(self._spark, self._lake.path(table), columns, commits.CHANGES)

    def _tables(self, schema: StructType) -> Iterator[tuple[Table, StructType]]:
        for each in self.staging:
            yield Table(Zone.STAGING, each.name), zone.with_system(schema.fields)
        for _, trusted in self.trusted:
            yield Table(Zone.TRUSTED, trusted.name), self.trusted_schema(trusted, schema)
        names = dict.fromkeys(
            each.name for each in (*self.staging, *[trusted for _, trusted in self.trusted])
        )
        for name in names:
            yield quarantine.table_of(name), schemas.from_ddl(quarantine.DDL)

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
            found.append(F.col(f"_broken{index}").alias(f"own{index}"))
            referring = rules.broken(trusted.rules, str(index), raw("ingested_at"), references=True)
            found.append((F.col(f"_broken{index}") + referring).alias(f"broken{index}"))
            for number, rule in enumerate(trusted.rules):
                if rule.kind is RuleKind.UNIQUE:
                    shown = [masked(trusted, name) for name in rule.columns]
                    found += named_hashes(shown, f"u{index}_{number}")
        return found

    def _pass(self, frame: DataFrame, schema: StructType, wanted: list[Column], *, widened: bool) -> Prepared:
        frame = frame.persist()
        rows = frame
        for index, (_, trusted) in enumerate(self.trusted if schema.fields else ()):
            rows = rules.with_references(self._spark, self._lake, rows, trusted.rules, str(index))
        size = F.coalesce(F.length(raw("value")), F.lit(0)).alias("bytes")
        table = rows.select(ROW, F.col(MALFORMED).alias("malformed"), size, *wanted).toArrow()
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
        if not self.staging:
            return Carried()
        way = Way(batch, merging, writer, cover)
        if not way.adds or merging is not Merging.FIRST:
            self.make_tables()
        landing = Landing(self._spark, self._pipeline, self._source, self._memory, found, way)
        return landing.land(self.staging, self.trusted, is_staged=is_staged)


def named_hashes(columns: list[Column], name: str) -> list[Column]:
    first, second, whole = known_keys.hashes(columns)
    return [first.alias(f"{name}a"), second.alias(f"{name}b"), whole.alias(f"{name}n")]


def to_numpy(column: Any) -> Any:
    """Nulls of numbers become the least one."""
    import pyarrow as pa

    is_flag = pa.types.is_boolean(column.type)
    if column.null_count:
        column = column.fill_null(False if is_flag else np.iinfo(np.int64).min)
    return np.asarray(column.to_numpy(), np.bool_ if is_flag else np.int64)


def newest_of(numbers: dict[str, Any]) -> datetime | None:
    times = numbers.get("event_time")
    if times is None or not len(times) or (top := int(times.max())) == np.iinfo(np.int64).min:
        return None
    try:
        return datetime.fromtimestamp(top / 1e6, UTC)
    except (OverflowError, ValueError, OSError):
        return None
