"""A captured table: its schemas, the readers of its columns, and the source struct of its events."""

from __future__ import annotations

import re
from typing import Any

from barnabas import __version__
from barnabas.connect.config import Settings
from barnabas.connect.connectors.debezium.envelope import SNAPSHOT, Apply, TableSchemas
from barnabas.connect.connectors.debezium.filters import topic_name
from barnabas.connect.connectors.debezium.told_columns import Telling, TypeOfColumn
from barnabas.connect.connectors.mysql_cdc.row_values import ABSENT
from barnabas.connect.connectors.mysql_cdc.server import Wanted
from barnabas.connect.connectors.mysql_cdc.tables import ColumnDef, TableDef
from barnabas.connect.connectors.mysql_cdc.types import Modes, Read, typed
from barnabas.connect.data import (
    INT32,
    INT64,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    Field,
    Headers,
    Schema,
    struct,
)
from barnabas.connect.plugins import ConnectError


def source_schema(connector: str) -> Schema:
    return struct(
        {
            "version": STRING, "connector": STRING, "name": STRING, "ts_ms": INT64, "snapshot": SNAPSHOT,
            "db": STRING, "sequence": OPTIONAL_STRING, "ts_us": OPTIONAL_INT64, "ts_ns": OPTIONAL_INT64,
            "table": OPTIONAL_STRING, "server_id": INT64, "gtid": OPTIONAL_STRING, "file": STRING,
            "pos": INT64, "row": INT32, "thread": OPTIONAL_INT64, "query": OPTIONAL_STRING,
        },
        name=f"io.debezium.connector.{connector}.Source",
        version=1,
    )  # fmt: skip


class Table:
    """A table as it is at one place of the log."""

    def __init__(
        self,
        definition: TableDef,
        settings: Settings,
        wanted: Wanted,
        source: Schema,
        telling: Telling,
        headers: Headers,
    ) -> None:
        self.definition = definition
        modes = Modes.of(settings)
        database, name = definition.database, definition.name
        self.places: list[int] = []
        self.readers: list[Read] = []
        fields: list[Field] = []
        told: list[tuple[Schema, Apply | None]] = []
        for place, column in enumerate(definition.columns):
            if wanted.column(database, name, column.name):
                schema, read = typed(column, modes)
                fields.append(Field(column.name, schema))
                self.places.append(place)
                self.readers.append(read)
                source_type = TypeOfColumn(column.type_name, length_of(column), column.scale)
                told.append(telling.value(f"{database}.{name}", column.name, schema, source_type))
        names = {one.name for one in fields}
        keys = own_keys(settings, f"{database}.{name}") or list(definition.keys)
        topic = topic_name(
            settings.text("topic.prefix"), database, name, delimiter=settings.text("topic.delimiter")
        )
        self.schemas = TableSchemas(
            topic,
            tuple(fields),
            tuple(each for each in keys if each in names),
            source,
            settings.flag("tombstones.on.delete"),
            headers,
            tuple(told),
            telling.schema_name,
            telling.field_name,
            settings.flag("skip.messages.without.change"),
        )

    def row(self, values: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        """Values of all columns as those of the captured ones."""
        if values is None:
            return None
        found = []
        for place, read, one in zip(self.places, self.readers, self.schemas.fields, strict=True):
            value = values[place]
            if value is ABSENT:
                if not one.schema.optional:
                    raise ConnectError(
                        f"{self.definition.id}: the log does not have the column {one.name}: set"
                        " binlog_row_image=FULL at the server"
                    )
                value = None
            try:
                found.append(None if value is None else read(value))
            except (ValueError, ArithmeticError, TypeError, IndexError) as error:
                raise ConnectError(
                    f"{self.definition.id}: the column {one.name} has {value!r}: {error}"
                ) from error
        return tuple(found)


def length_of(column: ColumnDef) -> int | None:
    """The length of a column as schemas tell it: of a set that of all its letters."""
    if column.type in ("ENUM", "SET"):
        return 1 if column.type == "ENUM" else max(2 * len(column.labels) - 1, 1)
    return column.length


def own_keys(settings: Settings, table: str) -> list[str]:
    for part in settings.text("message.key.columns").split(";"):
        name, _, columns = part.strip().partition(":")
        if name and re.fullmatch(name, table, re.IGNORECASE):
            return [each.strip() for each in columns.split(",")]
    return []


def source_of(connector: str, settings: Settings, **given: Any) -> dict[str, Any]:
    """Values of the source struct. `time_us` is when the database changed the row."""
    time_us = given.pop("time_us")
    return {
        "version": __version__, "connector": connector, "name": settings.text("topic.prefix"),
        "ts_ms": time_us // 1000, "ts_us": time_us, "ts_ns": time_us * 1000, "sequence": None,
        "gtid": None, "thread": None, "query": None, "row": 0, **given,
    }  # fmt: skip
