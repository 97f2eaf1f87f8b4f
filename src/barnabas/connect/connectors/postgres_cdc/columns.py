"""Columns and keys of PostgreSQL's tables, as the catalogue has them now and as the log had them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from barnabas.connect.connectors.postgres_cdc.pgoutput import Relation
from barnabas.connect.connectors.postgres_cdc.types import PgColumn

COLUMNS = """
SELECT a.attname, a.atttypid, a.atttypmod, a.attnotnull,
       CASE WHEN a.attgenerated = '' THEN pg_get_expr(d.adbin, d.adrelid) END
FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = to_regclass(format('%%I.%%I', %s::text, %s::text)) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
# The primary key; without one, the unique index of plain columns whose name comes first.
KEYS = """
SELECT (SELECT array_agg(a.attname ORDER BY part.place)
        FROM unnest(i.indkey::int[]) WITH ORDINALITY part (n, place)
        JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = part.n
        WHERE part.place <= i.indnkeyatts)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass(format('%%I.%%I', %s::text, %s::text)) AND i.indisunique AND i.indexprs IS NULL
ORDER BY i.indisprimary DESC, c.relname LIMIT 1
"""
# Types, where domains are replaced by what they are made of.
TYPES = """
WITH RECURSIVE chain AS (
  SELECT oid AS asked, oid, typname, typtype, typbasetype, typelem, typcategory, typtypmod, -1 AS modifier
  FROM pg_type WHERE oid = ANY(%s)
  UNION ALL
  SELECT c.asked, t.oid, t.typname, t.typtype, t.typbasetype, t.typelem, t.typcategory, t.typtypmod,
         CASE WHEN c.typtypmod >= 0 THEN c.typtypmod ELSE c.modifier END
  FROM chain c JOIN pg_type t ON t.oid = c.typbasetype WHERE c.typtype = 'd'
)
SELECT c.asked, c.typname, c.modifier, e.typname, own.typname,
       (SELECT array_agg(l.enumlabel ORDER BY l.enumsortorder) FROM pg_enum l
        WHERE l.enumtypid = coalesce(e.oid, c.oid))
FROM chain c JOIN pg_type own ON own.oid = c.asked
LEFT JOIN pg_type e ON e.oid = c.typelem AND c.typcategory = 'A' WHERE c.typtype <> 'd'
"""


def columns_of(connection: Any, schema: str, table: str) -> tuple[list[PgColumn], list[str]]:
    """The columns of a table now, and those of its key in order."""
    rows = connection.execute(COLUMNS, (schema, table)).fetchall()
    types = types_of(connection, (row[1] for row in rows))
    columns = [
        column_of(types, name, oid, modifier, nullable=not required, default=default)
        for name, oid, modifier, required, default in rows
    ]
    return columns, keys_of(connection, schema, table)


def columns_of_relation(connection: Any, relation: Relation) -> tuple[list[PgColumn], list[str]]:
    """The columns of a table when the log was written. The log has names and types; whether they may be null,
    defaults and the key are those of the catalogue now."""
    now, keys = columns_of(connection, relation.schema, relation.table)
    known = {each.name: each for each in now}
    types = types_of(connection, (each.type_oid for each in relation.columns))
    columns = []
    for each in relation.columns:
        other = known.get(each.name)
        columns.append(
            column_of(
                types,
                each.name,
                each.type_oid,
                each.modifier,
                nullable=other is None or other.nullable,
                default=None if other is None else other.default,
            )
        )
    names = {each.name for each in relation.columns}
    return columns, [each for each in keys if each in names]


def keys_of(connection: Any, schema: str, table: str) -> list[str]:
    found = connection.execute(KEYS, (schema, table)).fetchone()
    return list(found[0]) if found is not None else []


def types_of(connection: Any, oids: Iterable[int]) -> dict[int, Sequence[Any]]:
    rows = connection.execute(TYPES, (sorted(set(oids)),)).fetchall()
    return {row[0]: row[1:] for row in rows}


def column_of(
    types: dict[int, Sequence[Any]],
    name: str,
    oid: int,
    modifier: int,
    *,
    nullable: bool,
    default: str | None,
) -> PgColumn:
    kind, of_domain, item, own, labels = types.get(oid, ("unknown", -1, None, "unknown", None))
    found = PgColumn(
        name, kind, modifier if modifier >= 0 else of_domain, nullable, item, tuple(labels or ())
    )
    return replace(found, default=default, own_type=own)
