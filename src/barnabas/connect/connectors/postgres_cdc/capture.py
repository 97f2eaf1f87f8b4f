"""A captured table: its schemas, the readers of its columns, and the source struct of its events."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from barnabas.connect.connectors.debezium.envelope import SNAPSHOT, TableSchemas
from barnabas.connect.connectors.postgres_cdc import pgoutput
from barnabas.connect.connectors.postgres_cdc.types import Read
from barnabas.connect.data import INT64, OPTIONAL_INT64, OPTIONAL_STRING, STRING, Field, Type, struct
from barnabas.connect.plugins import ConnectError

SOURCE = struct(
    {
        "version": STRING, "connector": STRING, "name": STRING, "ts_ms": INT64, "snapshot": SNAPSHOT,
        "db": STRING,
        "sequence": OPTIONAL_STRING, "ts_us": OPTIONAL_INT64, "ts_ns": OPTIONAL_INT64, "schema": STRING,
        "table": STRING, "txId": OPTIONAL_INT64, "lsn": OPTIONAL_INT64, "xmin": OPTIONAL_INT64,
    },
    name="io.debezium.connector.postgresql.Source",
)  # fmt: skip
ZEROS: dict[Type, Any] = {
    Type.STRING: "",
    Type.BYTES: b"",
    Type.BOOLEAN: False,
    Type.ARRAY: [],
    Type.MAP: [],
    Type.STRUCT: {"scale": 0, "value": b""},
}


class Table:
    """A captured table: its schemas, and how texts of its columns are read."""

    def __init__(
        self, schema: str, name: str, schemas: TableSchemas, readers: dict[str, Read], marker: str
    ) -> None:
        self.schema, self.name, self.schemas, self.readers = schema, name, schemas, readers
        self._marker = marker

    def row(
        self, names: list[str], values: Any, old: Any = None, *, keys_only: bool = False
    ) -> tuple[Any, ...]:
        """Texts of all columns of the table as values of the captured ones."""
        given = dict(zip(names, values, strict=True))
        before = dict(zip(names, old, strict=True)) if old is not None else {}
        row = []
        for one in self.schemas.fields:
            text = given.get(one.name)
            if text is pgoutput.UNCHANGED:
                text = before.get(one.name, pgoutput.UNCHANGED)
            if text is pgoutput.UNCHANGED or text is None:
                is_missing = text is pgoutput.UNCHANGED or (keys_only and one.name not in self.schemas.keys)
                row.append(self._absent(one, is_toast=text is pgoutput.UNCHANGED) if is_missing else None)
                continue
            try:
                row.append(self.readers[one.name](text))
            except (ValueError, ArithmeticError) as error:
                raise ConnectError(
                    f"{self.schema}.{self.name}: the column {one.name} has {text!r}: {error}"
                ) from error
        return tuple(row)

    def _absent(self, one: Field, *, is_toast: bool) -> Any:
        """The placeholder of a value that the log does not have."""
        if is_toast and one.schema.type is Type.STRING:
            return self._marker
        if is_toast and one.schema.type is Type.BYTES and one.schema.logical is None:
            return self._marker.encode()
        if one.schema.optional:
            return None
        if (one.schema.name or "").endswith("data.Decimal"):
            return Decimal(0)
        return ZEROS.get(one.schema.type, 0)
