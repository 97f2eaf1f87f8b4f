"""ALTER TABLE: columns added, dropped, changed, moved and renamed; keys; the table renamed. Pure."""

from __future__ import annotations

from dataclasses import replace

from barnabas.connect.connectors.mysql_cdc.ddl_columns import Parsed, column_of
from barnabas.connect.connectors.mysql_cdc.ddl_tokens import Cursor
from barnabas.connect.connectors.mysql_cdc.tables import ColumnDef, TableDef

NOT_COLUMNS = (
    "INDEX", "KEY", "FULLTEXT", "SPATIAL", "UNIQUE", "FOREIGN", "CHECK", "CONSTRAINT", "PARTITION", "PERIOD",
    "SYSTEM", "VECTOR",
)  # fmt: skip


def altered(cursor: Cursor, table: TableDef) -> TableDef:
    """The table after the parts of ALTER TABLE, in their order."""
    while cursor.peek().kind != "end":
        place = cursor.place
        table = part(cursor, table)
        while cursor.peek().kind != "end" and not cursor.accept(","):
            if cursor.peek().upper == "(":
                cursor.skip_brackets()
            else:
                cursor.next()
        if cursor.place == place:
            cursor.next()
    return table


def part(cursor: Cursor, table: TableDef) -> TableDef:
    if cursor.accept("ADD"):
        return added(cursor, table)
    if cursor.accept("DROP"):
        return dropped(cursor, table)
    if cursor.accept("MODIFY"):
        cursor.accept("COLUMN")
        cursor.accept("IF", "EXISTS")
        name = cursor.name()
        return changed(table, name, column_of(cursor, name, table.charset))
    if cursor.accept("CHANGE"):
        cursor.accept("COLUMN")
        cursor.accept("IF", "EXISTS")
        old = cursor.name()
        return changed(table, old, column_of(cursor, cursor.name(), table.charset))
    if cursor.accept("ALTER"):
        return defaults_altered(cursor, table)
    if cursor.accept("RENAME"):
        return renamed(cursor, table)
    if cursor.accept("CONVERT", "TO", "CHARACTER", "SET") or cursor.accept("CONVERT", "TO", "CHARSET"):
        charset = cursor.name().lower()
        columns = [replace(each, charset=charset if each.charset else None) for each in table.columns]
        return replace(table, charset=charset, columns=tuple(columns))
    cursor.accept("DEFAULT")
    if cursor.accept("CHARACTER", "SET") or cursor.accept("CHARSET"):
        cursor.accept("=")
        return replace(table, charset=cursor.name().lower())
    return table


def added(cursor: Cursor, table: TableDef) -> TableDef:
    if cursor.accept("CONSTRAINT") and cursor.peek().upper not in ("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        cursor.name()
    if cursor.accept("PRIMARY", "KEY"):
        return keyed(table, key_names(cursor))
    if cursor.accept("UNIQUE"):
        return table.keyed_by_unique(index_names(cursor))
    if cursor.peek().kind == "word" and cursor.peek().upper in NOT_COLUMNS:
        cursor.skip_part()
        return table
    cursor.accept("COLUMN")
    is_careful = cursor.accept("IF", "NOT", "EXISTS")
    if not cursor.accept("("):
        return inserted(table, column_of(cursor, cursor.name(), table.charset), is_careful=is_careful)
    while not cursor.accept(")"):
        if cursor.peek().kind == "word" and cursor.peek().upper in NOT_COLUMNS:
            cursor.skip_part()
        else:
            table = inserted(table, column_of(cursor, cursor.name(), table.charset), is_careful=is_careful)
        if not cursor.accept(",") and cursor.peek().upper != ")":
            raise cursor.error("a bracket is not closed")
    return table


def index_names(cursor: Cursor) -> list[str]:
    """The columns of an index; none if it has expressions."""
    while cursor.peek().upper != "(":
        if cursor.peek().kind == "end":
            return []
        cursor.next()
    if cursor.peek(1).upper != "(":
        return key_names(cursor)
    cursor.skip_brackets()
    return []


def key_names(cursor: Cursor) -> list[str]:
    while cursor.peek().upper != "(":
        if cursor.next().kind == "end":
            raise cursor.error("PRIMARY KEY has no columns")
    cursor.next()
    found = []
    while not cursor.accept(")"):
        if cursor.peek().kind == "end":
            raise cursor.error("a bracket is not closed")
        found.append(cursor.name())
        cursor.skip_part()
        cursor.accept(",")
    return found


def keyed(table: TableDef, names: list[str]) -> TableDef:
    actual = [column.name for each in names if (column := find(table, each)) is not None]
    return replace(table, keys=tuple(actual)).with_columns(list(table.columns))


def find(table: TableDef, name: str) -> ColumnDef | None:
    return next((each for each in table.columns if each.name.lower() == name.lower()), None)


def inserted(table: TableDef, parsed: Parsed, *, is_careful: bool = False) -> TableDef:
    if find(table, parsed.column.name) is not None and is_careful:
        return table
    columns = [each for each in table.columns if each.name.lower() != parsed.column.name.lower()]
    columns.insert(place_of(columns, parsed, len(columns)), parsed.column)
    keys = (parsed.column.name,) if parsed.is_key else table.keys
    return replace(table, keys=keys).with_columns(columns)


def place_of(columns: list[ColumnDef], parsed: Parsed, place: int) -> int:
    if parsed.is_first:
        return 0
    if parsed.after is not None:
        names = [each.name.lower() for each in columns]
        return names.index(parsed.after.lower()) + 1 if parsed.after.lower() in names else place
    return place


def changed(table: TableDef, old: str, parsed: Parsed) -> TableDef:
    """CHANGE and MODIFY: the column keeps its place unless another is given."""
    names = [each.name.lower() for each in table.columns]
    if old.lower() not in names:
        return table
    place = names.index(old.lower())
    columns = [each for each in table.columns if each.name.lower() != old.lower()]
    columns.insert(place_of(columns, parsed, place), parsed.column)
    keys = tuple(parsed.column.name if each.lower() == old.lower() else each for each in table.keys)
    return replace(table, keys=keys).with_columns(columns)


def dropped(cursor: Cursor, table: TableDef) -> TableDef:
    if cursor.accept("PRIMARY", "KEY"):
        return replace(table, keys=())
    if cursor.peek().kind == "word" and cursor.peek().upper in NOT_COLUMNS:
        cursor.skip_part()
        return table
    cursor.accept("COLUMN")
    cursor.accept("IF", "EXISTS")
    name = cursor.name().lower()
    columns = [each for each in table.columns if each.name.lower() != name]
    keys = tuple(each for each in table.keys if each.lower() != name)
    return replace(table, keys=keys, columns=tuple(columns))


def renamed(cursor: Cursor, table: TableDef) -> TableDef:
    if cursor.accept("COLUMN"):
        cursor.accept("IF", "EXISTS")
        old = cursor.name()
        cursor.expect("TO")
        new = cursor.name()
        columns = [
            replace(each, name=new) if each.name.lower() == old.lower() else each for each in table.columns
        ]
        keys = tuple(new if each.lower() == old.lower() else each for each in table.keys)
        return replace(table, keys=keys, columns=tuple(columns))
    if cursor.accept_any("INDEX", "KEY"):
        cursor.skip_part()
        return table
    cursor.accept_any("TO", "AS", "=")
    owner, name = cursor.table(table.database)
    return replace(table, database=owner, name=name)


def defaults_altered(cursor: Cursor, table: TableDef) -> TableDef:
    """ALTER COLUMN c SET DEFAULT … or DROP DEFAULT."""
    from barnabas.connect.connectors.mysql_cdc.ddl_columns import defaulted

    if cursor.peek().upper in ("INDEX", "CHECK", "CONSTRAINT"):
        return table
    cursor.accept("COLUMN")
    cursor.accept("IF", "EXISTS")
    name = cursor.name()
    column = find(table, name)
    if column is None:
        return table
    if cursor.accept("SET", "DEFAULT"):
        made = defaulted(cursor, column)
    elif cursor.accept("DROP", "DEFAULT"):
        made = replace(column, default=None, has_default=False)
    else:
        return table
    columns = [made if each is column else each for each in table.columns]
    return replace(table, columns=tuple(columns))
