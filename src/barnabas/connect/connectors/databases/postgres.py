"""PostgreSQL through psycopg."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Any

from barnabas.connect.connectors.databases.catalogue import ColumnInfo, SqlType, TableId
from barnabas.connect.connectors.databases.dialect import CONNECT_TIMEOUT_S, Dialect, Row

TYPES = {
    "bool": SqlType.BOOLEAN,
    "int2": SqlType.SMALLINT,
    "int4": SqlType.INTEGER,
    "int8": SqlType.BIGINT,
    "oid": SqlType.BIGINT,
    "float4": SqlType.REAL,
    "float8": SqlType.DOUBLE,
    "numeric": SqlType.NUMERIC,
    "bytea": SqlType.BINARY,
    "date": SqlType.DATE,
    "time": SqlType.TIME,
    "timetz": SqlType.TIME,
    "timestamp": SqlType.TIMESTAMP,
    "timestamptz": SqlType.TIMESTAMP_ZONED,
}
SERVERS = {
    "primary": "primary",
    "master": "primary",
    "secondary": "standby",
    "slave": "standby",
    "prefersecondary": "prefer-standby",
    "preferslave": "prefer-standby",
}
LOADERS = ("date", "time", "timetz", "timestamp", "timestamptz")
RELATIONS = {"TABLE": "rp", "VIEW": "vm", "PARTITIONED TABLE": "p", "FOREIGN TABLE": "f", "SYSTEM TABLE": "r"}
OF_ROWS = ("P0", "44", "42804")  # errors of triggers, of views, of types: the other rows may fit
CAST_TYPES = (
    "uuid",
    "json",
    "jsonb",
    "xml",
    "inet",
    "cidr",
    "macaddr",
    "interval",
    "bit",
    "varbit",
    "citext",
)
COLUMNS = """
SELECT a.attname, t.typname, a.atttypmod, a.attnotnull, pg_get_expr(d.adbin, d.adrelid), a.attidentity,
       e.typname, t.typtype,
       coalesce((SELECT array_position(i.indkey::int[], a.attnum::int) FROM pg_index i
                 WHERE i.indrelid = a.attrelid AND i.indisprimary), -1)
FROM pg_attribute a
JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_type t ON t.oid = a.atttypid
LEFT JOIN pg_type e ON e.oid = t.typelem AND t.typcategory = 'A'
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE n.nspname = %s AND c.relname = %s AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
"""
TABLES = """
SELECT current_database(), n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = ANY(%s) AND n.nspname LIKE %s AND n.nspname <> 'information_schema' AND n.nspname NOT
LIKE 'pg\\_%%'
  AND NOT c.relispartition AND has_table_privilege(c.oid, 'SELECT')
ORDER BY 2, 3
"""


class Postgres(Dialect):
    NAME = "PostgreSqlDatabaseDialect"
    HAS_ARRAYS = True
    BYTES = "'\\x{}'"
    ISOLATE = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL "
    TYPES = {
        "int8": "SMALLINT",
        "int16": "SMALLINT",
        "int32": "INT",
        "int64": "BIGINT",
        "float32": "REAL",
        "float64": "DOUBLE PRECISION",
        "boolean": "BOOLEAN",
        "string": "TEXT",
        "bytes": "BYTEA",
        "Decimal": "DECIMAL",
        "Date": "DATE",
        "Time": "TIME",
        "Timestamp": "TIMESTAMP",
    }

    def connect(self) -> Any:
        import psycopg

        options = dict(self.address.options)
        given: dict[str, Any] = {"sslmode": options["sslmode"]} if "sslmode" in options else {}
        if options.get("ssl", "false").lower() in ("true", "") and not given:
            given["sslmode"] = "verify-full"  # as PostgreSQL's driver for Java understands it
        if (wanted := SERVERS.get(options.get("targetServerType", "any").lower())) is not None:
            given["target_session_attrs"] = wanted
        if schema := options.get("currentSchema"):
            given["options"] = f"-c search_path={schema}"
        for theirs, ours in (("sslrootcert", "sslrootcert"), ("sslcert", "sslcert"), ("sslkey", "sslkey")):
            if theirs in options:
                given[ours] = options[theirs]
        return psycopg.connect(
            host=",".join(host for host, _ in self.address.servers),
            port=",".join(str(port) for _, port in self.address.servers),
            dbname=self.address.database,
            user=self.address.user or None,
            password=self.address.password or None,
            connect_timeout=CONNECT_TIMEOUT_S,
            application_name=options.get("ApplicationName", "barnabas-connect"),
            **given,
        )

    @property
    def errors(self) -> type[Exception]:
        import psycopg

        return psycopg.Error

    def is_away(self, error: BaseException) -> bool:
        import psycopg

        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)

    def is_data_error(self, error: BaseException) -> bool:
        import psycopg

        if isinstance(error, psycopg.DataError | psycopg.IntegrityError):
            return True
        state = (error.sqlstate if isinstance(error, psycopg.Error) else None) or ""
        return state.startswith(OF_ROWS)

    def stream(
        self, connection: Any, statement: str, values: Sequence[Any], rows: int
    ) -> tuple[list[ColumnInfo], Iterator[list[Row]]]:
        cursor = connection.cursor(name="barnabas")  # on the server: rows come as they are asked for
        cursor.itersize = rows
        give_texts(cursor.adapters)
        cursor.execute(statement, values if values else None)
        return [self._described(each) for each in cursor.description], fetched(cursor, rows)

    def _described(self, column: Any) -> ColumnInfo:
        from psycopg import adapters

        info = adapters.types.get(column.type_code)
        name = info.name if info is not None else "text"
        is_array = info is not None and column.type_code == info.array_oid
        return column_info(
            column.name,
            f"_{name}" if is_array else name,
            name if is_array else None,
            column.precision,
            column.scale,
            column.internal_size,
        )

    def now(self, connection: Any) -> datetime:
        found: datetime = self.fetch(connection, "SELECT clock_timestamp()")[0][0]
        connection.rollback()
        return found.astimezone(UTC)

    def tables(
        self, connection: Any, types: Sequence[str], catalog: str | None, schema: str | None
    ) -> list[TableId]:
        kinds = sorted({kind for each in types for kind in RELATIONS.get(each.upper(), "")})
        found = self.fetch(connection, TABLES, (kinds, schema or "%"))
        connection.rollback()
        return [TableId(*row) for row in found]

    def find(self, connection: Any, parts: Sequence[str]) -> TableId | None:
        name = ".".join(map(self.quoted, parts[-2:]))
        query = (
            "SELECT current_database(), n.nspname, c.relname FROM pg_class c JOIN pg_namespace n"
            " ON n.oid = c.relnamespace WHERE c.oid = to_regclass(%s)"
        )
        found = self.fetch(connection, query, (name,))
        connection.rollback()
        return TableId(*found[0]) if found else None

    def table_name(self, table: TableId) -> str:
        return ".".join(self.quoted(each) for each in (table.schema, table.name) if each)

    def folded(self, name: str) -> str:
        return name if self.quotes else name.lower()

    def stored(self, value: datetime, native: str, zone: tzinfo) -> datetime:
        """`timestamptz` takes points in time: what it compares does not depend on the session's zone."""
        return value if native.endswith("timestamptz") else super().stored(value, native, zone)

    def columns(self, connection: Any, table: TableId) -> list[ColumnInfo]:
        found = self.fetch(connection, COLUMNS, (table.schema, table.name))
        return [of_catalogue(row) for row in found]

    def upsert(
        self, table: TableId, keys: Sequence[str], others: Sequence[str], casts: Mapping[str, str]
    ) -> str:
        names = ", ".join(map(self._name, keys))
        sets = ", ".join(f"{self._name(each)} = EXCLUDED.{self._name(each)}" for each in others)
        action = f"DO UPDATE SET {sets}" if others else "DO NOTHING"
        return f"{self.insert(table, [*keys, *others], casts)} ON CONFLICT ({names}) {action}"

    def casts(self, columns: Sequence[ColumnInfo]) -> dict[str, str]:
        return {each.name: f"::{each.native}" for each in columns if each.native in CAST_TYPES}


def give_texts(adapters: Any) -> None:
    """Read types without a counterpart, and times that Python does not have, as the server writes them."""
    from psycopg.types.string import TextLoader

    for info in adapters.types:
        if info.name in TYPES:
            if info.name in LOADERS:
                adapters.register_loader(info.oid, loader_of(info.oid))
        elif info.oid and info.name not in ("text", "varchar", "bpchar", "name", "unknown"):
            adapters.register_loader(info.oid, TextLoader)


@cache
def loader_of(oid: int) -> Any:
    """A loader of days and times: those that Python does not have (`infinity`, `44-03-15 BC`) stay texts."""
    from psycopg import DataError, adapters
    from psycopg.adapt import Loader
    from psycopg.pq import Format

    class Tolerant(Loader):
        def __init__(self, number: int, context: Any = None) -> None:
            super().__init__(number, context)
            self._load = adapters.get_loader(oid, Format.TEXT)(number, context).load  # type: ignore[misc]

        def load(self, data: Any) -> Any:
            try:
                return self._load(data)
            except DataError:
                return bytes(data).decode()

    return Tolerant


def fetched(cursor: Any, rows: int) -> Iterator[list[Row]]:
    try:
        while found := cursor.fetchmany(rows):
            yield found
    finally:
        with suppress(Exception):  # the connection may be closed already, and nothing is left to be saved
            cursor.close()


def column_info(
    name: str, native: str, item: str | None, precision: int | None, scale: int | None, size: int | None
) -> ColumnInfo:
    """A column by its type's name; types without a counterpart are texts."""
    if item is not None:
        return ColumnInfo(name, SqlType.ARRAY, native, item=TYPES.get(item, SqlType.TEXT), scale=scale)
    if native == "bit" and (size or 1) <= 1:
        return ColumnInfo(name, SqlType.TEXT, native)
    return ColumnInfo(name, TYPES.get(native, SqlType.TEXT), native, precision=precision or 0, scale=scale)


def of_catalogue(row: Row) -> ColumnInfo:
    name, native, modifier, not_null, default, identity, item, _, key = row
    is_numeric = "numeric" in (native, item) and modifier >= 4
    precision = ((modifier - 4) >> 16) & 0xFFFF if is_numeric else 0
    scale = (((modifier - 4) & 0x7FF) ^ 1024) - 1024 if is_numeric else None
    base = column_info(name, native, item, precision, scale, modifier if native == "bit" else None)
    return ColumnInfo(
        name,
        base.type,
        native,
        precision,
        scale,
        nullable=not not_null,
        has_default=default is not None or bool(identity),
        auto_increment=bool(identity) or str(default or "").startswith("nextval("),
        key_position=key + 1 if key >= 0 else 0,
        item=base.item,
    )
