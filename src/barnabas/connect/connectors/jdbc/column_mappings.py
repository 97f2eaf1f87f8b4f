"""The columns that tell what is new in a table: one name for all tables, or a mapping by their names.

In: settings, a table. Out: names of its time columns and of its growing column. A mapping is a list of
`expression:column` or `expression:[column|column]`; exactly one expression must match a table's name. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from barnabas.connect.config import Settings
from barnabas.connect.connectors.databases.catalogue import TableId
from barnabas.connect.plugins import ConnectError

TIMES_BY_TABLE, NUMBER_BY_TABLE = "timestamp.columns.mapping", "incrementing.column.mapping"
NAMES = {TIMES_BY_TABLE: "timestamp.column.name", NUMBER_BY_TABLE: "incrementing.column.name"}
ENTRY = re.compile(r"(?P<pattern>.+):(?:\[(?P<several>[^\[\]:]+)\]|(?P<one>[^\[\]:|]+))")


def position_columns(settings: Settings, table: TableId | None) -> tuple[list[str], str]:
    """The time columns and the growing column that a mode needs; "" where the settings name none."""
    mode = settings.text("mode")
    times = columns_of(settings, table, TIMES_BY_TABLE) if "timestamp" in mode else []
    numbers = columns_of(settings, table, NUMBER_BY_TABLE) if "incrementing" in mode else []
    return times, numbers[0] if numbers else ""


def columns_of(settings: Settings, table: TableId | None, name: str) -> list[str]:
    entries = settings.entries(name)
    if not entries or table is None:
        if name == TIMES_BY_TABLE:
            return settings.entries(NAMES[name])
        return [number] if (number := settings.text(NAMES[name])) else []
    names = [".".join(table.parts[start:]) for start in range(len(table.parts))]
    found = [
        columns for pattern, columns in map(parsed, entries) if any(pattern.fullmatch(each) for each in names)
    ]
    if len(found) != 1:
        matches = "no expression matches" if not found else f"{len(found)} expressions match"
        raise ConnectError(f"{name}: {matches} the table {table}; exactly one must")
    return found[0]


def parsed(entry: str) -> tuple[re.Pattern[str], list[str]]:
    """An expression and its columns. ValueError if it is none."""
    found = ENTRY.fullmatch(entry.strip())
    if found is None:
        raise ValueError("write expression:column or expression:[column|column]")
    columns = [each.strip() for each in (found["several"] or found["one"]).split("|")]
    if not all(columns):
        raise ValueError("a column has no name")
    try:
        return re.compile(found["pattern"]), columns
    except re.error as error:
        raise ValueError(f"the expression {found['pattern']!r} is wrong: {error}") from None


def mapping_errors(config: Mapping[str, str], *, has_query: bool) -> Iterator[tuple[str, str]]:
    """Errors of the mappings, by the setting."""
    for name, for_all in NAMES.items():
        text = config.get(name) or ""
        if not text.strip():
            continue
        if has_query:
            yield name, f"a query has no tables: set {for_all} in place of {name}"
        if config.get(for_all):
            yield name, f"{name} and {for_all} are exclusive: set one of them"
        for entry in filter(None, (each.strip() for each in text.split(","))):
            try:
                _, columns = parsed(entry)
            except ValueError as error:
                yield name, f"{entry!r}: {error}"
                continue
            if name == NUMBER_BY_TABLE and len(columns) > 1:
                yield name, f"{entry!r}: a table has one growing column"
