"""Parses a batch and hands it to the tables behind its source.

In: rows of the raw zone. Out: commits in staging, trusted and quarantine, and counts. Spark makes one pass
over the bytes. A few facts of each row then decide what becomes of it: on the driver if the batch is small,
so that Spark joins and shuffles nothing, else on executors (`judging`).
Does not know: sources, positions, the raw zone's commits.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from barnabas.engine.errors import brief
from barnabas.engine.lease_status import lease_status
from barnabas.pipeline.ingest import (
    drift,
    parsing,
    quarantine,
    registry_versions,
    rules,
    schemas,
    table_properties,
)
from barnabas.pipeline.ingest import zone_rows as zone
from barnabas.pipeline.ingest.dedupe.known_keys import key_hashes
from barnabas.pipeline.ingest.judging.executor_judge import ORDER
from barnabas.pipeline.ingest.judging.judgement import horizons_us
from barnabas.pipeline.ingest.judging.parsed_batch import (
    ROWS_ON_DRIVER_MAX,
    ParsedBatch,
    collected,
    counted,
    totals_of,
)
from barnabas.pipeline.ingest.masking import masked
from barnabas.pipeline.ingest.parsing import raw
from barnabas.pipeline.ingest.results import CommitListener, DuplicateListener
from barnabas.pipeline.ingest.write_mode import ReplayRange, WriteMode, WriteResult
from barnabas.pipeline.ingest.zone_writer import WriterState, ZoneWriter
from barnabas.pipeline.lake import commits
from barnabas.pipeline.lake.columns import DELETE, IGNORE, LATE, MALFORMED, OP, RESCUED, ROW
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.refined import zone as refined_zone
from barnabas.pipeline.spec.model import Drift, Merging, Pipeline, RuleKind, Source, Trusted
from barnabas.pipeline.spec.state_folder import state_folder

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

RESCUED_SAMPLES = 200
PLACE = ("batch", "topic", "partition", "offset")  # columns of raw: the order in which rows were read
# Delta's errors where maintenance has removed a version.
VERSION_GONE = re.compile(r"DELTA_VERSION_NOT_FOUND|DELTA_FILE_NOT_FOUND|FileNotFound|VERSION_NOT_CONTIGUOUS")
LOG = logging.getLogger(__name__)


class BatchParser:
    """The tables behind one source."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        source: Source,
        listener: CommitListener | None = None,
        epoch: int | None = None,
        duplicates: DuplicateListener | None = None,
    ) -> None:
        self._spark = spark
        self._pipeline = pipeline
        self._source = source
        self._lake = pipeline.lake_location
        self.staging = pipeline.staging_of(source.name)
        self.trusted = [
            (each, trusted) for each in self.staging for trusted in pipeline.trusted_of(each.name)
        ]
        self._follows_registry = bool(source.schema.registry) and not source.schema.version
        self._schema: StructType | None = None
        self._references: Mapping[str, int] | None = None
        self._is_large = False  # the batch that is parsed now
        self._writer_state = WriterState(
            {trusted.name: refined_zone.appended_by(pipeline, trusted.name) for _, trusted in self.trusted},
            commits.Appender(self._lake),
            listener,
            duplicates,
            lease_status(state_folder(pipeline)).epoch if epoch is None else epoch,
        )

    # -- tables ------------------------------------------------------------------------------------

    def open(self) -> None:
        """Find out the columns of the tables. A schema that is to be inferred waits for samples."""
        if not self.staging:
            return
        tables = {
            each.name: self._lake.read(self._spark, table).schema
            for each in self.staging
            if self._lake.exists(self._spark, table := TableName(Zone.STAGING, each.name))
        }
        if self._source.schema.registry:
            self._source = registry_versions.at_start(
                self._source, [there.names for there in tables.values()]
            )
            self._follow()
        found = schemas.declared(self._source)
        for name, there in tables.items():
            found = drift.together(found or StructType(), there, name, self._source.name)
        if found is not None and found.fields:
            self._adopt(found)

    def _follow(self) -> None:
        """Go on to a newer version of the registered schema, if the registry's level says that it may."""
        if not self._follows_registry:
            return
        newer = registry_versions.newer(self._source, [each.drift for each in self.staging])
        if newer is not None:
            self._source = newer
            if self._schema is not None:
                declared = schemas.declared(newer) or StructType()
                name = self.staging[0].name
                self._adopt(drift.together(declared, self._schema, name, newer.name))

    def _adopt(self, schema: StructType) -> None:
        """Use this schema from now on; add the columns that existing tables lack."""
        self._schema = schema
        for table, columns in self._tables(schema):
            if table.zone is not Zone.QUARANTINE and self._lake.exists(self._spark, table):
                commits.add_columns(self._spark, self._lake.path(table), columns)

    def make_tables(self) -> None:
        """Make tables that have no rows yet, so that they can be read."""
        for table, columns in self._tables(self._schema) if self._schema is not None else ():
            if not self._lake.exists(self._spark, table):
                properties = table_properties.properties_of(self._pipeline, table, columns)
                commits.ensure(self._spark, self._lake.path(table), columns, properties)

    def _tables(self, schema: StructType) -> Iterator[tuple[TableName, StructType]]:
        for each in self.staging:
            yield TableName(Zone.STAGING, each.name), zone.with_system(schema.fields)
        for _, trusted in self.trusted:
            yield TableName(Zone.TRUSTED, trusted.name), self.trusted_schema(trusted, schema)
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

    # -- parsing  -----------------------------------------------------------------------

    def reference_versions(self) -> dict[str, int]:
        """The newest versions of the tables that rules of these tables refer to."""
        found = [rule for _, trusted in self.trusted for rule in trusted.rules]
        return rules.reference_versions(self._spark, self._lake, found)

    def parse(
        self, rows: DataFrame, rows_max: int, references: Mapping[str, int] | None = None
    ) -> ParsedBatch:
        """Parse rows that have the columns of the raw zone and `late_before`, in one pass.

        There are at most `rows_max`; rows of a batch that is judged on the driver must be in the order in
        which they were read. `references` are the versions of the tables that rules refer to; the newest
        without them."""
        self._references = references
        self._is_large = rows_max > ROWS_ON_DRIVER_MAX
        rows = parsing.prefixed(rows).withColumn(ROW, F.monotonically_increasing_id())
        if not self.staging:
            return self._pass(rows.withColumn(MALFORMED, F.lit(False)), StructType(), [], widened=False)
        self._follow()
        schema, sampled = self._schema, None
        if schema is None:
            sampled = rows = rows.persist()
            schema = self._inferred(rows)
        found = self._parsed(rows, schema, widened=sampled is not None)
        rescued = found.totals.rescued if self._sees_drift else 0
        if rescued and any(each.drift is not Drift.RESCUE for each in self.staging):
            found = self._drifted(rows, found, schema)
        if sampled is not None:
            sampled.unpersist()
        return found

    @property
    def _sees_drift(self) -> bool:
        source = self._source
        is_json = parsing.effective_format(source).value == "json"
        return is_json and not source.changes and not source.schema.registry

    def _inferred(self, rows: DataFrame) -> StructType:
        values = [
            row[0] for row in rows.select(raw("value")).limit(schemas.samples_wanted(self._source)).collect()
        ]
        schema = schemas.from_ddl(
            schemas.inferred_ddl(self._source, [value and bytes(value) for value in values])
        )
        self._adopt(schema)
        return schema

    def _drifted(self, rows: DataFrame, found: ParsedBatch, schema: StructType) -> ParsedBatch:
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

    def _parsed(self, rows: DataFrame, schema: StructType, *, widened: bool) -> ParsedBatch:
        frame = parsing.parsed(rows, self._source, schema)
        frame = frame.withColumn(LATE, self._late(schema))
        for index, (_, trusted) in enumerate(self.trusted):
            frame = frame.withColumn(
                f"_broken{index}", rules.broken(trusted.rules, str(index), raw("ingested_at"))
            )
        return self._pass(frame, schema, self._fact_columns(), widened=widened)

    def _late(self, schema: StructType) -> Column:
        name = self._source.event_time
        if not name or name not in schema.names or self._source.lateness_s is None:
            return F.lit(False)
        return F.coalesce(F.col(f"`{name}`").cast("timestamp") < raw("late_before"), F.lit(False))

    def _fact_columns(self) -> list[Column]:
        found: list[Column] = [
            F.col(LATE).alias("late"),
            (F.col(OP) == IGNORE).alias("ignored"),
            (F.col(OP) == DELETE).alias("deletes"),
            F.col(RESCUED).isNotNull().alias("rescued"),
        ]
        if self._source.event_time:
            at = F.col(f"`{self._source.event_time}`").cast("timestamp")
            found.append(F.unix_micros(at).alias("event_time"))
        if horizons_us(self.staging, [trusted for _, trusted in self.trusted]):
            found.append(F.unix_micros(raw("ingested_at")).alias("at"))
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

    def _pass(
        self, frame: DataFrame, schema: StructType, wanted: list[Column], *, widened: bool
    ) -> ParsedBatch:
        frame = frame.persist()
        size = F.coalesce(F.length(raw("value")), F.lit(0)).alias("bytes")
        facts = [F.col(ROW), F.col(MALFORMED).alias("malformed"), size, *wanted]
        try:
            return self._with_facts(frame, schema, facts, widened=widened)
        except Exception as error:
            if not self._references or not VERSION_GONE.search(str(error)):
                frame.unpersist()
                raise
            LOG.warning("%s: %s; the newest versions are used", self._source.name, brief(error))
            self._references = None
            return self._with_facts(frame, schema, facts, widened=widened)

    def _with_facts(
        self, frame: DataFrame, schema: StructType, wanted: list[Column], *, widened: bool
    ) -> ParsedBatch:
        rows = self._with_references(frame, schema)
        if not self._is_large:
            row_facts = collected(rows.select(*wanted))
            return ParsedBatch(frame, totals_of(row_facts), schema, widened, row_facts)
        order = [raw(name).alias(fact) for fact, name in zip(ORDER, PLACE, strict=True)]
        facts = rows.select(*wanted, *order).persist()
        found = ParsedBatch(frame, counted(facts), schema, widened, facts=facts)
        found.keep(facts)
        return found

    def _with_references(self, rows: DataFrame, schema: StructType) -> DataFrame:
        for index, (_, trusted) in enumerate(self.trusted if schema.fields else ()):
            rows = rules.with_references(
                self._spark, self._lake, rows, trusted.rules, str(index), self._references
            )
        return rows

    # -- writing -----------------------------------------------------------------------------------

    def write(
        self,
        found: ParsedBatch,
        batch: int,
        merging: Merging,
        *,
        writer: str = "",
        is_staged: bool = False,
        replay_range: ReplayRange | None = None,
        only: str = "",
        recovers: bool = False,
    ) -> WriteResult:
        """Write a parsed batch to every table.

        `is_staged`: staging has the rows already, only the trusted tables are written. `writer` names a
        command that is no batch of the source. With a `replay_range` the rows replace those of the same
        part of raw. `only` names the trusted table that is written, if not all are. `recovers`: tables may
        have rows of the batch already."""
        if not self.staging:
            return WriteResult()
        mode = WriteMode(batch, merging, writer, replay_range, only, recovers)
        if not mode.adds or merging is not Merging.INSERT_NEW:
            self.make_tables()
        zone_writer = ZoneWriter(self._spark, self._pipeline, self._source, self._writer_state, found, mode)
        return zone_writer.write(self.staging, self.trusted, is_staged=is_staged)


def named_hashes(columns: list[Column], name: str) -> list[Column]:
    first, second, whole = key_hashes(columns)
    return [first.alias(f"{name}a"), second.alias(f"{name}b"), whole.alias(f"{name}n")]


def in_reading_order(rows: DataFrame, count: int) -> DataFrame:
    """Rows of raw for `parse`: in their order if they are judged on the driver. Executors need no order."""
    return rows.orderBy(*PLACE) if count <= ROWS_ON_DRIVER_MAX else rows
