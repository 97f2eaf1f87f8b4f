"""Tables as the schema history knows them, and their form as JSON in Debezium's `tableChanges`. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

JDBC_TYPES = {  # numbers of java.sql.Types, as Debezium writes them
    "BIT": -7, "TINYINT": 5, "SMALLINT": 5, "MEDIUMINT": 4, "INT": 4, "BIGINT": -5, "FLOAT": 6, "DOUBLE": 8,
    "DECIMAL": 3, "DATE": 91, "TIME": 92, "DATETIME": 93, "TIMESTAMP": 2014, "YEAR": 4, "CHAR": 1,
    "VARCHAR": 12, "TINYTEXT": 12, "TEXT": 12, "MEDIUMTEXT": 12, "LONGTEXT": 12, "BINARY": -2,
    "VARBINARY": -3, "TINYBLOB": 2004, "BLOB": 2004, "MEDIUMBLOB": 2004, "LONGBLOB": 2004, "ENUM": 1,
    "SET": 1, "JSON": 1111,
}  # fmt: skip
SYNONYMS = {
    "INTEGER": "INT", "INT1": "TINYINT", "INT2": "SMALLINT", "INT3": "MEDIUMINT", "INT4": "INT",
    "INT8": "BIGINT", "MIDDLEINT": "MEDIUMINT", "BOOL": "TINYINT", "BOOLEAN": "TINYINT", "DEC": "DECIMAL",
    "NUMERIC": "DECIMAL", "FIXED": "DECIMAL", "REAL": "DOUBLE", "DOUBLE PRECISION": "DOUBLE",
    "FLOAT4": "FLOAT", "FLOAT8": "DOUBLE", "CHARACTER": "CHAR", "NCHAR": "CHAR", "NVARCHAR": "VARCHAR",
    "CHARACTER VARYING": "VARCHAR", "CHAR VARYING": "VARCHAR", "VARCHARACTER": "VARCHAR",
    "LONG": "MEDIUMTEXT", "LONG VARCHAR": "MEDIUMTEXT", "LONG VARBINARY": "MEDIUMBLOB", "CHAR BYTE": "BINARY",
    "GEOMETRYCOLLECTION": "GEOMCOLLECTION",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """A column. `type` is in capitals, without its length; `labels` are those of an enum or a set."""

    name: str
    type: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    nullable: bool = True
    charset: str | None = None
    labels: tuple[str, ...] = ()
    auto_increment: bool = False
    generated: bool = False
    default: str | None = None  # a literal
    has_default: bool = False

    @property
    def type_name(self) -> str:
        return f"{self.type} UNSIGNED" if self.unsigned else self.type

    def as_json(self, position: int) -> dict[str, Any]:
        found: dict[str, Any] = {
            "name": self.name,
            "jdbcType": JDBC_TYPES.get(self.type, 1111),
            "typeName": self.type_name,
            "typeExpression": self.type_name,
            "charsetName": self.charset,
            "position": position,
            "optional": self.nullable,
            "autoIncremented": self.auto_increment,
            "generated": self.auto_increment or self.generated,
            "comment": None,
            "hasDefaultValue": self.has_default,
            "enumValues": [f"'{each}'" for each in self.labels],
        }
        if self.length is not None:
            found["length"] = self.length
        if self.scale is not None:
            found["scale"] = self.scale
        if self.default is not None:
            found["defaultValueExpression"] = self.default
        return found

    @staticmethod
    def of_json(value: dict[str, Any]) -> ColumnDef:
        words = str(value["typeName"]).upper().split()
        kind = " ".join(each for each in words if each not in ("UNSIGNED", "ZEROFILL", "SIGNED"))
        labels = [str(each) for each in value.get("enumValues") or ()]
        return ColumnDef(
            value["name"],
            SYNONYMS.get(kind, kind),
            value.get("length"),
            value.get("scale"),
            "UNSIGNED" in words or "ZEROFILL" in words,
            bool(value.get("optional", True)),
            value.get("charsetName"),
            tuple(each[1:-1].replace("''", "'") if each.startswith("'") else each for each in labels),
            bool(value.get("autoIncremented")),
            bool(value.get("generated")) and not value.get("autoIncremented"),
            value.get("defaultValueExpression"),
            bool(value.get("hasDefaultValue")),
        )


@dataclass(frozen=True, slots=True)
class TableDef:
    """A table at one moment."""

    database: str
    name: str
    columns: tuple[ColumnDef, ...]
    keys: tuple[str, ...] = ()
    charset: str | None = None

    @property
    def id(self) -> str:
        return f"{self.database}.{self.name}"

    def with_columns(self, columns: list[ColumnDef]) -> TableDef:
        """A copy with other columns; key columns are never nullable."""
        keys = {each.lower() for each in self.keys}
        made = [replace(each, nullable=False) if each.name.lower() in keys else each for each in columns]
        return replace(self, columns=tuple(made))

    def keyed_by_unique(self, names: Sequence[str]) -> TableDef:
        """Without a primary key, the first unique index of columns that are not nullable is the key."""
        found = {each.name.lower(): each for each in self.columns}
        columns = [found.get(each.lower()) for each in names]
        if self.keys or not columns or any(each is None or each.nullable for each in columns):
            return self
        return replace(self, keys=tuple(each.name for each in columns if each is not None))

    def as_json(self) -> dict[str, Any]:
        return {
            "defaultCharsetName": self.charset,
            "primaryKeyColumnNames": list(self.keys),
            "columns": [each.as_json(place) for place, each in enumerate(self.columns, 1)],
            "attributes": [],
        }

    @staticmethod
    def of_json(database: str, name: str, value: dict[str, Any]) -> TableDef:
        columns = sorted(value.get("columns") or (), key=lambda each: int(each.get("position", 0)))
        return TableDef(
            database,
            name,
            tuple(ColumnDef.of_json(each) for each in columns),
            tuple(value.get("primaryKeyColumnNames") or ()),
            value.get("defaultCharsetName"),
        )


def change_json(kind: str, database: str, name: str, table: TableDef | None) -> dict[str, Any]:
    """One entry of `tableChanges`; kind is CREATE, ALTER or DROP."""
    return {
        "type": kind,
        "id": f'"{database}"."{name}"',
        "table": None if table is None else table.as_json(),
        "comment": None,
    }


def id_of_json(text: str) -> tuple[str, str]:
    """Database and table of an id such as `"shop"."orders"`."""
    names = [each.strip('"').replace('""', '"') for each in text.replace('"."', '"\x00"').split("\x00")]
    return (names[0], names[1]) if len(names) == 2 else ("", names[0])
