"""Iceberg tables of a catalog: creation, evolution, and commits that carry the number of a batch.

The summary of a snapshot has the connector, the batch and its ranges. A commit succeeds only on top of the
snapshot that was read, so no batch is there twice, whoever else writes. Does not know: Spark, records.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NoSuchNamespaceError,
    NoSuchTableError,
    TableAlreadyExistsError,
    ValidationError,
)
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, GreaterThanOrEqual, In, LessThanOrEqual
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table
from pyiceberg.transforms import parse_transform

from barnabas.connect.connectors.lake.batch_notes import note_of, noted_in, ranges_in
from barnabas.connect.connectors.lake.iceberg_settings import TableRule
from barnabas.connect.connectors.lake.iceberg_types import fitted_batch, needed
from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.connect.plugins.spark import Ranges

PROPERTY = "barnabas.connect"  # of a snapshot's summary
HISTORY_MAX = 1000
FIELD = re.compile(
    r"(?P<transform>\w+)\(\s*(?P<column>[^,)]+?)\s*(?:,\s*(?P<number>\d+)\s*)?\)|(?P<plain>[^()]+)"
)
VALUES_MAX = 200  # of a column that files are looked up by
RETRIES = "commit.retry.num-retries"


class Lake:
    """The tables that one connector writes."""

    def __init__(self, name: str, properties: Mapping[str, str], app: str) -> None:
        self.properties = dict(properties)
        self._app = app
        self._catalog: Catalog = load_catalog(name, **self.properties)

    def close(self) -> None:
        self._catalog.close()

    def names(self) -> list[str]:
        """All tables of the catalog."""
        found: list[str] = []
        for space in self._catalog.list_namespaces():
            found += [".".join(each) for each in self._catalog.list_tables(space)]
        return found

    def table(self, name: str) -> Table | None:
        try:
            return self._catalog.load_table(name)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def created(self, rule: TableRule, schema: pa.Schema, properties: Mapping[str, str]) -> Table:
        space = rule.name.rpartition(".")[0]
        try:
            self._catalog.create_namespace(space)
        except NamespaceAlreadyExistsError:
            pass
        try:
            with (
                self._catalog.create_table_transaction(
                    rule.name, schema=schema, properties=dict(properties)
                ) as made,
                made.update_spec() as spec,
            ):
                for column, transform in map(partition_field, rule.partition_by):
                    spec.add_field(column, parse_transform(transform))
        except TableAlreadyExistsError:
            pass
        except ValueError as error:
            raise ConnectError(f"the table {rule.name} cannot be created: {error}") from error
        return self._catalog.load_table(rule.name)

    def evolved(self, table: Table, schema: pa.Schema, *, any_case: bool) -> Table:
        """The table with all columns of the schema. Columns of types that do not fit stay as they are."""
        fields = needed(arrow_of(table), schema, any_case=any_case)
        if not fields:
            return table
        try:
            with table.update_schema(case_sensitive=not any_case) as update:
                update.union_by_name(pa.schema(fields))
        except CommitFailedException as error:
            raise RetriableError(f"{name_of(table)}: another writer committed first: {error}") from error
        except (ValueError, ValidationError) as error:
            raise ConnectError(
                f"{name_of(table)}: its columns cannot become those of the records: {error}"
            ) from error
        return self._catalog.load_table(name_of(table))

    # -- batches -------------------------------------------------------------------------------------------

    def last_batch(self, table: Table, branch: str) -> tuple[int, Ranges]:
        """The last batch of this connector in the table; -1: none."""
        number, _, ranges = self.last_part(table, branch)
        return number, ranges

    def last_part(self, table: Table, branch: str) -> tuple[int, str, Ranges]:
        """The last batch of this connector in the table, with the topic of the rows."""
        at = table.metadata.snapshot_by_name(branch)
        for _ in range(HISTORY_MAX):
            if at is None:
                break
            noted = at.summary.additional_properties.get(PROPERTY) if at.summary else None
            found = noted_in(noted)
            if found.get("app") == self._app:
                return int(found["batch"]), str(found.get("topic", "")), ranges_in(noted)
            parent = at.parent_snapshot_id
            at = None if parent is None else table.metadata.snapshot_by_id(parent)
        return -1, "", {}

    def commit(
        self, table: Table, branch: str, number: int, ranges: Ranges, added: Sequence[Any],
        replaced: Replaced, topic: str = "",
    ) -> None:  # fmt: skip
        """Add files, and replace others, in one snapshot with the number of the batch."""
        if branch != "main" and branch not in table.metadata.refs:
            raise ConnectError(f"the table {name_of(table)} has no branch {branch}: create it")
        noted = note_of(self._app, number, ranges, topic)
        # A commit that fails must not be put on top of another writer's: that may be this batch.
        own = {**table.metadata.properties, RETRIES: "0"}
        table.metadata = table.metadata.model_copy(update={"properties": own})
        try:
            with table.transaction() as transaction:
                update = transaction.update_snapshot({PROPERTY: noted}, branch)
                with update.overwrite() if replaced else update.fast_append() as snapshot:
                    for old, new in replaced:
                        snapshot.delete_data_file(old)
                        for each in new:
                            snapshot.append_data_file(each)
                    for each in added:
                        snapshot.append_data_file(each)
        except CommitFailedException as error:
            raise RetriableError(f"{name_of(table)}: another writer committed first: {error}") from error

    def scans(self, table: Table, branch: str, keys: pa.Table) -> list[bytes]:
        """Files that may hold rows of these keys, with the files of their deleted rows, to be pickled."""
        if table.metadata.snapshot_by_name(branch) is None or not keys.num_rows:
            return []
        scan = table.scan(row_filter=bounds(keys))
        scan = scan if branch == "main" else scan.use_ref(branch)
        return [pickle.dumps((each.file, each.delete_files)) for each in scan.plan_files()]

    def fitted_keys(self, table: Table, keys: pa.Table, *, any_case: bool) -> pa.Table:
        """Keys in the types of the table."""
        there = arrow_of(table)
        key_schema = pa.schema([there.field(name) for name in keys.column_names])
        fit = fitted_batch(keys, key_schema, name_of(table), any_case=any_case)
        if any(column.null_count for column in fit.columns):
            raise ConnectError(f"{name_of(table)}: {', '.join(keys.column_names)}: the key is null")
        return fit


Replaced = list[tuple[Any, list[Any]]]


def name_of(table: Table) -> str:
    return ".".join(table.name())


def arrow_of(table: Table) -> pa.Schema:
    return schema_to_pyarrow(table.schema(), include_field_ids=False)


def partition_field(text: str) -> tuple[str, str]:
    """`day(at)` as column and transform."""
    found = FIELD.fullmatch(text.strip())
    if found is None:
        raise ConnectError(f"partition-by: {text!r} must be a column, or such as day(at) and bucket(id, 16)")
    if found["plain"]:
        return found["plain"].strip(), "identity"
    word = found["transform"].lower()
    name = {"years": "year", "months": "month", "days": "day", "hours": "hour"}.get(word, word)
    return found["column"], f"{name}[{found['number']}]" if found["number"] else name


def bounds(keys: pa.Table) -> BooleanExpression:
    """A filter that leaves out files which cannot hold any of these keys."""
    import pyarrow.compute as pc

    found: BooleanExpression = AlwaysTrue()
    lower: Any = GreaterThanOrEqual
    upper: Any = LessThanOrEqual
    one_of: Any = In
    for name in keys.column_names:
        kind = keys.schema.field(name).type
        if pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind):
            values = keys.column(name).unique()
            if len(values) <= VALUES_MAX:
                found = And(found, one_of(name, values.to_pylist()))
            else:
                ends = pc.min_max(values).as_py()
                found = And(found, And(lower(name, ends["min"]), upper(name, ends["max"])))
    return found
