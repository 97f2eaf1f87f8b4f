"""Records of the topic `topic.prefix`: each statement that changed tables, with their new forms. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.connectors.mysql_cdc.ddl import TableChange
from barnabas.connect.connectors.mysql_cdc.history import table_changes
from barnabas.connect.data import (
    INT32,
    INT64,
    OPTIONAL_BOOLEAN,
    OPTIONAL_INT32,
    OPTIONAL_STRING,
    STRING,
    Column,
    Headers,
    Records,
    Schema,
    array,
    struct,
)

COLUMN = struct(
    {
        "name": STRING, "jdbcType": INT32, "nativeType": OPTIONAL_INT32, "typeName": STRING,
        "typeExpression": OPTIONAL_STRING, "charsetName": OPTIONAL_STRING, "length": OPTIONAL_INT32,
        "scale": OPTIONAL_INT32, "position": INT32, "optional": OPTIONAL_BOOLEAN,
        "autoIncremented": OPTIONAL_BOOLEAN, "generated": OPTIONAL_BOOLEAN, "comment": OPTIONAL_STRING,
        "defaultValueExpression": OPTIONAL_STRING, "enumValues": array(STRING, optional=True),
    },
    name="io.debezium.connector.schema.Column", version=1,
)  # fmt: skip
TABLE = struct(
    {
        "defaultCharsetName": OPTIONAL_STRING, "primaryKeyColumnNames": array(STRING, optional=True),
        "columns": array(COLUMN), "comment": OPTIONAL_STRING,
    },
    name="io.debezium.connector.schema.Table", version=1, optional=True,
)  # fmt: skip
CHANGE = struct(
    {"type": STRING, "id": STRING, "table": TABLE}, name="io.debezium.connector.schema.Change", version=1
)


def schema_change(
    connector: str,
    topic: str,
    source: Mapping[str, Any],
    source_kind: Schema,
    ddl: str,
    changes: Sequence[TableChange],
    now_ms: int,
    position: tuple[dict[str, Any], dict[str, Any]],
    headers: Headers,
) -> Records:
    value = struct(
        {
            "source": source_kind, "ts_ms": INT64, "databaseName": OPTIONAL_STRING,
            "schemaName": OPTIONAL_STRING, "ddl": OPTIONAL_STRING, "tableChanges": array(CHANGE),
        },
        name=f"io.debezium.connector.{connector}.SchemaChangeValue", version=1,
    )  # fmt: skip
    key = struct(name=f"io.debezium.connector.{connector}.SchemaChangeKey", version=1, databaseName=STRING)
    database = source["db"]
    row = {
        "source": dict(source), "ts_ms": now_ms, "databaseName": database, "schemaName": None, "ddl": ddl,
        "tableChanges": [filled(each) for each in table_changes(with_renames(changes))],
    }  # fmt: skip
    return Records.of(
        topic,
        Column.of([row], value),
        Column.of([{"databaseName": database}], key),
        headers=[headers] if headers else None,
        positions=[position],
    )


def with_renames(changes: Sequence[TableChange]) -> Sequence[TableChange]:
    """A table that was renamed is told as one change, with its new name."""
    if [each.kind for each in changes] == ["DROP", "CREATE"]:
        return [changes[1]._replace(kind="ALTER")]
    return changes


def filled(change: dict[str, Any]) -> dict[str, Any]:
    table = change["table"]
    if table is not None:
        empty = dict.fromkeys(COLUMN.field_names)
        columns = [{**empty, **{a: b for a, b in each.items() if a in empty}} for each in table["columns"]]
        for each in columns:
            each["enumValues"] = each["enumValues"] or None
            if each["typeName"] in ("ENUM", "SET") and each["length"] is None:
                count = len(each["enumValues"] or ())
                each["length"] = 1 if each["typeName"] == "ENUM" else max(2 * count - 1, 1)
        table = {
            "defaultCharsetName": table["defaultCharsetName"],
            "primaryKeyColumnNames": table["primaryKeyColumnNames"],
            "columns": columns,
            "comment": None,
        }
    return {"type": change["type"], "id": change["id"], "table": table}
