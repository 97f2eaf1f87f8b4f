"""Makes captured tables of columns: schemas, readers, keys, and what the settings change of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from barnabas.connect.config import Settings
from barnabas.connect.connectors.debezium.context_headers import context_headers
from barnabas.connect.connectors.debezium.envelope import Apply, TableSchemas
from barnabas.connect.connectors.debezium.filters import topic_name
from barnabas.connect.connectors.debezium.told_columns import Telling
from barnabas.connect.connectors.postgres_cdc.capture import SOURCE, Table, unchanged
from barnabas.connect.connectors.postgres_cdc.catalog import Wanted
from barnabas.connect.connectors.postgres_cdc.defaults import with_default
from barnabas.connect.connectors.postgres_cdc.source_types import type_of_column
from barnabas.connect.connectors.postgres_cdc.types import Modes, PgColumn, Read, typed
from barnabas.connect.data import Field, Schema


class Capturing:
    """The settings of one connector that say how tables become events."""

    def __init__(self, settings: Settings, wanted: Wanted, task: int) -> None:
        self._settings = settings
        self._wanted = wanted
        self._modes = Modes.of(settings)
        self._telling = Telling(settings)
        self._headers = context_headers(settings, "postgresql", task)
        self._marker = settings.text("unavailable.value.placeholder")

    def table(
        self, schema: str, name: str, columns: Sequence[PgColumn], keys: Sequence[str], *, is_streamed: bool
    ) -> Table:
        fields: list[Field] = []
        readers: dict[str, Read] = {}
        told: list[tuple[Schema, Apply | None]] = []
        marks: dict[str, Any] = {}
        for each in columns:
            kind = typed(each, self._modes) if self._wanted.column(schema, name, each.name) else None
            if kind is None:
                continue
            shape = with_default(*kind, each)
            fields.append(Field(each.name, shape))
            readers[each.name] = kind[1]
            source = type_of_column(each, is_streamed=is_streamed)
            told.append(self._telling.value(f"{schema}.{name}", each.name, shape, source))
            marks[each.name] = unchanged(shape, self._marker, each.type)
        settings = self._settings
        schemas = TableSchemas(
            topic_name(
                settings.text("topic.prefix"), schema, name, delimiter=settings.text("topic.delimiter")
            ),
            tuple(fields),
            tuple(each for each in self._own_keys(f"{schema}.{name}") or keys if each in readers),
            SOURCE,
            settings.flag("tombstones.on.delete"),
            self._headers,
            tuple(told),
            self._telling.schema_name,
            self._telling.field_name,
            settings.flag("skip.messages.without.change"),
        )
        return Table(schema, name, schemas, readers, marks)

    def _own_keys(self, table: str) -> list[str]:
        for part in self._settings.text("message.key.columns").split(";"):
            name, _, columns = part.strip().partition(":")
            if name and re.fullmatch(name, table, re.IGNORECASE):
                return [each.strip() for each in columns.split(",")]
        return []
