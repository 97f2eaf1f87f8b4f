"""Definitions of columns in statements: types with lengths, attributes, defaults. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from barnabas.connect.connectors.mysql_cdc.ddl_tokens import Cursor
from barnabas.connect.connectors.mysql_cdc.tables import SYNONYMS, ColumnDef

TWO_WORDS = {
    ("DOUBLE", "PRECISION"), ("CHARACTER", "VARYING"), ("CHAR", "VARYING"), ("LONG", "VARCHAR"),
    ("LONG", "VARBINARY"), ("CHAR", "BYTE"), ("NATIONAL", "CHAR"), ("NATIONAL", "VARCHAR"),
    ("NATIONAL", "CHARACTER"), ("NCHAR", "VARCHAR"), ("NCHAR", "VARYING"),
    ("NATIONAL CHARACTER", "VARYING"),
}  # fmt: skip
TEXTS = ("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT", "ENUM", "SET")
AS_BYTES = {
    "CHAR": "BINARY", "VARCHAR": "VARBINARY", "TINYTEXT": "TINYBLOB", "TEXT": "BLOB",
    "MEDIUMTEXT": "MEDIUMBLOB", "LONGTEXT": "LONGBLOB",
}  # fmt: skip
NATIONAL = {
    "NATIONAL CHAR": "CHAR", "NATIONAL CHARACTER": "CHAR", "NATIONAL VARCHAR": "VARCHAR",
    "NCHAR VARCHAR": "VARCHAR", "NCHAR VARYING": "VARCHAR",
}  # fmt: skip
SERIAL = "SERIAL"


@dataclass(slots=True)
class Parsed:
    """A column with what its definition says about keys and its place."""

    column: ColumnDef
    is_key: bool = False
    is_unique: bool = False
    is_first: bool = False
    after: str | None = None


def collation_charset(collation: str) -> str:
    """The character set of a collation: the part before the first underscore; MariaDB's `uca1400` names
    belong to utf8mb4."""
    return "utf8mb4" if collation.lower().startswith("uca1400") else collation.split("_")[0]


def column_of(cursor: Cursor, name: str, charset: str | None) -> Parsed:
    """Read a definition behind its name. `charset` is the table's."""
    column = typed(cursor, name)
    found = Parsed(column)
    own_charset = attributes(cursor, found)
    column = found.column
    if column.type in TEXTS:
        used = own_charset or charset
        if used == "binary" and column.type in AS_BYTES:
            column = replace(column, type=AS_BYTES[column.type], charset=None)
        else:
            column = replace(column, charset=used)
    if found.is_key:
        column = replace(column, nullable=False)
    if column.nullable and not column.has_default and not column.generated:
        column = replace(column, has_default=True)  # the default is NULL
    found.column = column
    return found


def typed(cursor: Cursor, name: str) -> ColumnDef:
    kind = cursor.next().value.upper()
    while (kind, cursor.peek().upper) in TWO_WORDS:
        kind = f"{kind} {cursor.next().upper}"
    if kind == SERIAL:
        return ColumnDef(name, "BIGINT", unsigned=True, nullable=False, auto_increment=True)
    is_boolean = kind in ("BOOL", "BOOLEAN")
    kind = SYNONYMS.get(kind, NATIONAL.get(kind, "VARCHAR" if kind == "NATIONAL CHARACTER VARYING" else kind))
    length: int | None = 1 if is_boolean else None
    scale = None
    labels: tuple[str, ...] = ()
    if cursor.peek().upper == "(":
        if kind in ("ENUM", "SET"):
            labels = texts(cursor)
        else:
            length, scale = sizes(cursor)
    if kind == "DECIMAL":
        length, scale = length if length is not None else 10, scale or 0
    if kind == "BIT" and length is None:
        length = 1
    if kind in ("CHAR", "BINARY") and length is None:
        length = 1
    return ColumnDef(name, kind, length, scale, labels=labels)


def sizes(cursor: Cursor) -> tuple[int | None, int | None]:
    cursor.expect("(")
    numbers = []
    while not cursor.accept(")"):
        token = cursor.next()
        if token.kind == "end":
            raise cursor.error("a bracket is not closed")
        if token.kind == "number":
            numbers.append(int(token.value))
    return (numbers[0] if numbers else None), (numbers[1] if len(numbers) > 1 else None)


def texts(cursor: Cursor) -> tuple[str, ...]:
    cursor.expect("(")
    found = []
    while not cursor.accept(")"):
        token = cursor.next()
        if token.kind == "end":
            raise cursor.error("a bracket is not closed")
        if token.kind == "text":
            found.append(token.value.rstrip(" "))
    return tuple(found)


def attributes(cursor: Cursor, found: Parsed) -> str | None:
    """Read what follows the type. Out: a character set of its own."""
    charset = None
    while cursor.peek().kind != "end" and cursor.peek().upper not in (",", ")", ";"):
        column = found.column
        if cursor.accept_any("UNSIGNED", "ZEROFILL"):
            found.column = replace(column, unsigned=True)
        elif cursor.accept("NOT", "NULL"):
            found.column = replace(column, nullable=False)
        elif cursor.accept("NULL"):
            found.column = replace(column, nullable=True)
        elif cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
            charset = cursor.name().lower()
        elif cursor.accept("COLLATE"):
            charset = charset or collation_charset(cursor.name().lower())
        elif cursor.accept("ASCII"):
            charset = "latin1"
        elif cursor.accept("UNICODE"):
            charset = "ucs2"
        elif cursor.accept("DEFAULT"):
            found.column = defaulted(cursor, column)
        elif cursor.accept("ON", "UPDATE"):
            cursor.next()
            cursor.skip_brackets()
        elif cursor.accept("AUTO_INCREMENT"):
            found.column = replace(column, auto_increment=True)
        elif cursor.accept("PRIMARY", "KEY") or cursor.accept("PRIMARY") or cursor.accept("KEY"):
            found.is_key = True
        elif cursor.accept("UNIQUE", "KEY") or cursor.accept("UNIQUE"):
            found.is_unique = True
        elif cursor.accept("GENERATED", "ALWAYS", "AS") or cursor.accept("AS"):
            cursor.skip_brackets()
            found.column = replace(column, generated=True)
        elif cursor.accept_any("COMMENT", "COLUMN_FORMAT", "STORAGE", "ENGINE_ATTRIBUTE"):
            cursor.accept("=")
            cursor.next()
        elif cursor.accept("FIRST"):
            found.is_first = True
        elif cursor.accept("AFTER"):
            found.after = cursor.name()
        elif cursor.peek().upper == "(":
            cursor.skip_brackets()  # CHECK ( … ), REFERENCES t ( … )
        else:
            cursor.next()
    return charset


def defaulted(cursor: Cursor, column: ColumnDef) -> ColumnDef:
    """Read a default. Expressions have no literal; NULL is none."""
    sign = "-" if cursor.accept("-") else ""
    cursor.accept("+")
    if cursor.peek().upper == "(":
        cursor.skip_brackets()
        return replace(column, has_default=False, default=None)
    token = cursor.next()
    if token.kind in ("text", "number"):
        return replace(column, default=sign + token.value, has_default=True)
    cursor.skip_brackets()
    if token.upper in ("TRUE", "FALSE"):
        return replace(column, default="1" if token.upper == "TRUE" else "0", has_default=True)
    if token.upper == "NULL":
        return replace(column, default=None, has_default=True)
    if token.upper in ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"):
        return replace(column, default="CURRENT_TIMESTAMP", has_default=True)
    if token.upper.startswith(("B", "X")) and token.kind == "word":
        return replace(column, default=None, has_default=False)
    return column
