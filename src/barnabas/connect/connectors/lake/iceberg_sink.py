"""The Iceberg sink: batches of records become commits of Iceberg tables, each exactly once.

Executors write data files, the driver commits them with the number of the batch. Upserts replace the files
that hold rows of the batch's keys. There is one task: executors share the rows. Does not know: catalogs.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from barnabas.connect.config import ConfigDef, ConfigError, Settings
from barnabas.connect.connectors.lake.iceberg_check import IcebergCheck, TableColumns
from barnabas.connect.connectors.lake.iceberg_files import FILE_COLUMN, FileWriter
from barnabas.connect.connectors.lake.iceberg_rewrites import (
    REPLACED_DDL,
    SCAN_DDL,
    FileRewriter,
    stream_of,
)
from barnabas.connect.connectors.lake.iceberg_settings import (
    INTERVAL,
    TableRule,
    catalog_properties,
    definitions,
    is_upsert,
    named_in,
    rule_of,
    rules_of,
    table_properties,
)
from barnabas.connect.connectors.lake.lake_failures import lake_failures
from barnabas.connect.connectors.lake.lake_rows import (
    DELETES,
    PLACE,
    check_names,
    last_of_each,
    value_columns,
)
from barnabas.connect.plugins import (
    SINK,
    Batch,
    ConnectError,
    Connector,
    RetriableError,
    SinkContext,
    SparkSink,
)
from barnabas.connect.plugins.spark import Ranges, RecordCheck

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from barnabas.connect.connectors.lake.iceberg_tables import Lake

log = logging.getLogger("barnabas.connect")

PIECES_MAX = 1000  # of a rewrite
TABLES_MAX = 1000  # that records of one batch may name
BATCH_INTERVAL = "barnabas.spark.batch.interval.ms"


class IcebergSink(SparkSink):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        self._settings = context.settings
        self._rules = rules_of(self._settings)
        self._route = self._settings.text("iceberg.tables.route-field")
        self._upserts = is_upsert(self._settings)
        self._any_case = self._settings.flag("iceberg.tables.schema-case-insensitive")
        self._found: Lake | None = None
        self._known: dict[str, TableColumns] = {}  # by name of the table
        self._checked: dict[str, TableColumns] | None = None  # for the last check
        self._last: tuple[int, Ranges] = (-1, {})

    @property
    def _lake(self) -> Lake:
        from barnabas.connect.connectors.lake.iceberg_tables import Lake

        if self._found is None:
            app = f"connect-{self.context.connector}"
            try:
                self._found = Lake(
                    self._settings.text("iceberg.catalog"), catalog_properties(self._settings), app
                )
            except (OSError, ValueError, ImportError) as error:
                raise ConnectError(f"the catalog cannot be opened: {error}") from error
        return self._found

    def open(self, spark: SparkSession, topics: Sequence[str]) -> None:
        """Find the last batch that the tables hold."""
        self._last = (-1, {})
        with lake_failures("the tables cannot be opened"):
            self._open()

    def _open(self) -> None:
        names = {*self._lake.names(), *named_in(self._settings)} if not self._rules else set()
        rules = self._rules or [rule_of(self._settings, name) for name in sorted(names)]
        self._known = {}
        for rule in rules:
            table = self._lake.table(rule.name)
            self._note(rule, table)
            if table is not None:
                found = self._lake.last_batch(table, rule.branch)
                if found[0] > self._last[0]:
                    self._last = found

    def _note(self, rule: TableRule, table: Any) -> TableColumns:
        """Remember the columns of a table for the checks of records."""
        from barnabas.connect.connectors.lake.iceberg_tables import arrow_of

        keys = rule.keys
        if not keys and table is not None:
            keys = tuple(table.schema().identifier_field_names())
        columns = None if table is None else arrow_of(table)
        found = self._known[rule.name] = TableColumns(rule.name, columns, tuple(sorted(keys)), rule.route)
        return found

    def last_batch(self) -> tuple[int, Ranges] | None:
        return self._last

    def stop(self) -> None:
        if getattr(self, "_found", None) is not None:
            assert self._found is not None
            self._found.close()

    def record_check(self, spark: SparkSession) -> RecordCheck:
        settings = self._settings
        creates = settings.flag("iceberg.tables.auto-create-enabled")
        if not self._rules and not creates:  # somebody else makes the tables
            with lake_failures("the tables cannot be listed"):
                for name in self._lake.names():
                    if name not in self._known:
                        self._note(rule_of(settings, name), self._lake.table(name))
        self._checked = dict(self._known)
        return IcebergCheck(
            self._checked,
            path_of(self._route),
            not self._rules,
            creates,
            settings.flag("iceberg.tables.evolve-schema-enabled"),
            self._any_case,
            self._upserts,
            path_of(settings.text("iceberg.tables.cdc-field")),
            tuple(sorted(settings.entries("iceberg.tables.default-id-columns"))),
        )

    # -- writing -------------------------------------------------------------------------------------------

    def write(self, frame: DataFrame, batch: Batch) -> None:
        for rule, rows in list(self._routed(frame)):
            with lake_failures(f"{rule.name} cannot be written"):
                self._write(rule, rows, batch)

    def _routed(self, frame: DataFrame) -> Iterator[tuple[TableRule, DataFrame]]:
        """Tables and the records that go there."""
        from pyspark.sql import functions as sql

        if not self._route:
            yield from ((rule, frame) for rule in self._rules)
            return
        column = nested(frame, self._route)
        if column is None:
            return  # as those whose field is null
        column = column.cast("string")
        if self._rules:
            yield from ((rule, frame.filter(column.rlike(f"^(?:{rule.route})$"))) for rule in self._rules)
            return
        named = frame.select(sql.lower(column).alias("name")).filter("name IS NOT NULL").distinct()
        names = [row[0] for row in named.limit(TABLES_MAX + 1).collect()]
        if len(names) > TABLES_MAX:
            raise ConnectError(
                f"{self._route} names more than {TABLES_MAX} tables in one batch: is it the right field?"
            )
        for name in sorted(names):
            if "." not in name.strip("."):
                raise ConnectError(f"{self._route} is {name!r}: the name of a table is namespace.table")
            yield rule_of(self._settings, name), frame.filter(sql.lower(column) == name)

    def _write(self, rule: TableRule, frame: DataFrame, batch: Batch) -> None:
        from barnabas.connect.connectors.lake.iceberg_tables import arrow_of

        table = self._lake.table(rule.name)
        if table is not None and self._is_there(rule, batch, *self._lake.last_part(table, rule.branch)):
            return
        if self._checked is not None and self._note(rule, table) != self._checked.get(
            rule.name, TableColumns(rule.name, None, tuple(sorted(rule.keys)), rule.route)
        ):
            raise RetriableError(
                f"the table {rule.name} is new or has other columns: records are checked again"
            )
        if batch.value_schema is None:
            self._delete(rule, frame, table, batch)
            return
        columns = value_columns(frame)
        columns.pop(self._settings.text("iceberg.tables.cdc-field"), None)
        check_names(columns)
        rows = self._rows(frame, columns, table, rule)
        wanted = storable_schema(rows.select(*[f"`{name}`" for name in columns]))
        if table is None:
            if not self._settings.flag("iceberg.tables.auto-create-enabled"):
                raise ConnectError(
                    f"there is no table {rule.name}: create it, or set iceberg.tables.auto-create-enabled"
                )
            table = self._lake.created(rule, wanted, table_properties(self._settings))
        if self._settings.flag("iceberg.tables.evolve-schema-enabled"):
            table = self._lake.evolved(table, wanted, any_case=self._any_case)
        self._note(rule, table)
        known = {name.lower() if self._any_case else name for name in arrow_of(table).names}
        chosen = [name for name in columns if (name.lower() if self._any_case else name) in known]
        if not chosen:
            raise ConnectError(f"the table {rule.name} has none of the fields {', '.join(columns)}")
        replaced: list[Any] = []
        if self._upserts:
            names = [f"`{name}`" for name in self._keys(table, rule)]
            replaced = self._replaced(rows.select(*names), table, rule)
            rows = rows.filter(f"NOT `{DELETES}`")
        writer = FileWriter(
            table.metadata.model_dump_json(), self._lake.properties, table.location(), rule.name,
            self._any_case,
        )  # fmt: skip
        made = rows.select(*[f"`{name}`" for name in chosen]).mapInArrow(writer, f"{FILE_COLUMN} binary")
        added = [pickle.loads(row[0]) for row in made.collect()]
        self._commit(rule, table, batch, added, replaced)

    def _commit(
        self, rule: TableRule, table: Any, batch: Batch, added: list[Any], replaced: list[Any]
    ) -> None:
        if added or replaced:
            self._lake.commit(table, rule.branch, batch.number, batch.ranges, added, replaced, batch.topic)

    def _delete(self, rule: TableRule, frame: DataFrame, table: Any, batch: Batch) -> None:
        """Delete the rows of the keys of a batch of tombstones."""
        from pyspark.sql import functions as sql

        if table is None or not self._upserts:
            return
        keys = self._keys(table, rule)
        fields = [each.name for each in getattr(frame.schema["key"].dataType, "fields", ())]
        if set(keys) <= set(fields):
            rows = frame.select(*[sql.col(f"key.`{name}`").alias(name) for name in keys]).distinct()
            self._commit(rule, table, batch, [], self._replaced(rows, table, rule))

    def _replaced(self, keys: DataFrame, table: Any, rule: TableRule) -> list[Any]:
        """Files that hold rows of these keys, each with files of its other rows, which executors wrote."""
        fit = self._lake.fitted_keys(table, keys.toArrow(), any_case=self._any_case)
        scans = self._lake.scans(table, rule.branch, fit)
        if not scans:
            return []
        rewriter = FileRewriter(
            table.metadata.model_dump_json(), self._lake.properties, table.location(), rule.name,
            stream_of(fit), self._any_case,
        )  # fmt: skip
        files = keys.sparkSession.createDataFrame([(bytearray(each),) for each in scans], SCAN_DDL)
        rows = files.repartition(min(len(scans), PIECES_MAX)).mapInArrow(rewriter, REPLACED_DDL).collect()
        return [(pickle.loads(row["old"]), pickle.loads(row["new"])) for row in rows]

    def _is_there(self, rule: TableRule, batch: Batch, number: int, topic: str, ranges: Ranges) -> bool:
        """Whether the table holds the topic's rows of the batch. RetriableError if another task wrote on:
        then what is there is looked at anew."""
        if number < batch.number:
            return False
        if number == batch.number and dict(ranges) == dict(batch.ranges):
            if topic and topic < batch.topic:  # topics of a batch are written in this order
                return False
            log.info("%s has batch %d of %s already", rule.name, number, batch.topic)
            return True
        raise RetriableError(f"the table {rule.name} holds batch {number}, which another task wrote")

    def _rows(self, frame: DataFrame, columns: Mapping[str, Any], table: Any, rule: TableRule) -> DataFrame:
        """Rows of the table; for upserts the last one of each key, and whether it deletes."""
        from pyspark.sql import functions as sql

        if not self._upserts:
            given = frame.filter("value IS NOT NULL")
            return given.select(*[column.alias(name) for name, column in columns.items()])
        keys = self._keys(table, rule)
        fields = [each.name for each in getattr(frame.schema["key"].dataType, "fields", ())]
        chosen = dict(columns)
        for name in keys:
            if name not in columns:
                raise ConnectError(f"id-columns names {name}, and records have {', '.join(columns)}")
            if name in fields:
                chosen[name] = with_key(frame, name, columns[name])
        has_keys = set(keys) <= set(fields)
        given = frame if has_keys else frame.filter("value IS NOT NULL")
        deletes = sql.col("value").isNull()
        if cdc := self._settings.text("iceberg.tables.cdc-field"):
            column = nested(frame, cdc)
            if column is not None:
                deletes = deletes | sql.coalesce(sql.upper(column).startswith("D"), sql.lit(False))
        rows = given.select(
            *[column.alias(name) for name, column in chosen.items()],
            deletes.alias(DELETES),
            sql.col("`offset`").alias(PLACE),
        )
        return last_of_each(rows, keys)

    def _keys(self, table: Any, rule: TableRule) -> tuple[str, ...]:
        keys = rule.keys or (tuple(table.schema().identifier_field_names()) if table is not None else ())
        if not keys:
            raise ConnectError(
                f"iceberg.table.{rule.name}.id-columns is needed for upserts: the columns of the key"
            )
        return tuple(sorted(keys))


def with_key(frame: DataFrame, name: str, column: Column) -> Column:
    """The field of the value, or that of the key where it is null."""
    from pyspark.sql import functions as sql
    from pyspark.sql.types import NumericType

    key = sql.col(f"key.`{name}`")
    mine = frame.select(column.alias("mine"), key.alias("other")).schema
    kinds = [each.dataType for each in mine]
    if not all(isinstance(each, NumericType) for each in kinds):
        key = key.cast(kinds[0])
    return sql.coalesce(column, key)


def path_of(text: str) -> tuple[str, ...]:
    return tuple(text.split(".")) if text else ()


def nested(frame: DataFrame, path: str) -> Column | None:
    """The field of the value at a path; None if values have none."""
    from pyspark.sql import functions as sql

    column, kind = sql.col("value"), frame.schema["value"].dataType
    for name in path.split("."):
        fields = {each.name: each.dataType for each in getattr(kind, "fields", ())}
        if name not in fields:
            return None
        column, kind = column.getField(name), fields[name]
    return column


def storable_schema(frame: DataFrame) -> Any:
    """The schema of a new table for these rows."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    from barnabas.connect.connectors.lake.iceberg_types import storable

    schema: Any = to_arrow_schema(frame.schema, timezone="UTC")
    return pa.schema([pa.field(each.name, storable(each.type)) for each in schema])


class IcebergSinkConnector(Connector):
    KIND = SINK
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("org.apache.iceberg.connect.IcebergSinkConnector",)
    CONFIG: ClassVar[ConfigDef] = definitions()
    task = IcebergSink

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        try:
            settings = self.CONFIG.parse(config)
        except ConfigError:
            return {}  # reported by name already
        errors: dict[str, list[str]] = {}
        for name, check in (("iceberg.catalog", catalog_properties), ("iceberg.tables", checked)):
            try:
                check(settings)
            except (ConnectError, ConfigError) as error:
                errors.setdefault(name, []).append(str(error))
        return errors

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """One task, however many are allowed: executors share the rows, and one writer numbers batches."""
        config = dict(self.context.config)
        if INTERVAL in config:
            config.setdefault(BATCH_INTERVAL, config[INTERVAL])
        return [config]


def checked(settings: Settings) -> None:
    for rule in rules_of(settings):
        if is_upsert(settings) and not rule.keys and settings.flag("iceberg.tables.auto-create-enabled"):
            raise ConnectError(
                f"iceberg.table.{rule.name}.id-columns is needed for upserts into a table that is created"
            )
