"""MySQL and MariaDB through PyMySQL."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, tzinfo
from ssl import CERT_NONE, SSLContext, create_default_context
from typing import Any

from barnabas.connect.connectors.databases.catalogue import ColumnInfo, SqlType, TableId
from barnabas.connect.connectors.databases.dialect import CONNECT_TIMEOUT_S, Dialect, Row

TYPES = {
    "tinyint": SqlType.TINYINT,
    "smallint": SqlType.SMALLINT,
    "mediumint": SqlType.INTEGER,
    "int": SqlType.INTEGER,
    "bigint": SqlType.BIGINT,
    "float": SqlType.REAL,
    "double": SqlType.DOUBLE,
    "decimal": SqlType.DECIMAL,
    "bit": SqlType.BINARY,
    "date": SqlType.DATE,
    "year": SqlType.INTEGER,
    "time": SqlType.TIME,
    "datetime": SqlType.TIMESTAMP,
    "timestamp": SqlType.TIMESTAMP_ZONED,
}
BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
GEOMETRIES = (
    "geometry",
    "point",
    "linestring",
    "polygon",
    "multipoint",
    "multilinestring",
    "multipolygon",
    "geometrycollection",
    "geomcollection",
)
TIMES = (SqlType.DATE, SqlType.TIMESTAMP, SqlType.TIMESTAMP_ZONED)
ZERO_DATE = "0000-00-00"
ENCRYPTED = ("REQUIRED", "TRUE", "TRUST", "VERIFY_CA", "VERIFY_IDENTITY", "VERIFY_FULL")
KINDS = {"TABLE": "BASE TABLE", "VIEW": "VIEW", "SYSTEM TABLE": "SYSTEM VIEW"}
SYSTEM = ("information_schema", "mysql", "performance_schema", "sys")
# Codes of the protocol, for columns of queries.
CODES = {
    0: "decimal",
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    16: "bit",
    246: "decimal",
}
BINARY_CHARSET = 63
# Connection lost, too many connections, lock wait timeout, deadlock, server shutdown, gone away.
AWAY = {1040, 1053, 1158, 1159, 1160, 1161, 1205, 1213, 1226, 2002, 2003, 2006, 2013, 2014, 2055, 4031}
# A value that the column does not take, a missing one, a CHECK constraint, a trigger's SIGNAL, no partition.
OF_ROWS = {1263, 1265, 1292, 1364, 1411, 1416, 1526, 1644, 1690, 3140, 3819, 4025, 4078}
COLUMNS = """
SELECT column_name, data_type, column_type, numeric_precision, numeric_scale, is_nullable,
column_default, extra,
       column_key, ordinal_position,
       (SELECT k.ordinal_position FROM information_schema.key_column_usage k WHERE k.constraint_name =
       'PRIMARY'
        AND k.table_schema = c.table_schema AND k.table_name = c.table_name AND k.column_name = c.column_name)
FROM information_schema.columns c WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""


class MySql(Dialect):
    NAME = "MySqlDatabaseDialect"
    MARK = "`"
    KEY_TEXT = "VARCHAR(256)"
    TYPES = {
        "int8": "TINYINT",
        "int16": "SMALLINT",
        "int32": "INT",
        "int64": "BIGINT",
        "float32": "FLOAT",
        "float64": "DOUBLE",
        "boolean": "TINYINT",
        "string": "TEXT",
        "bytes": "VARBINARY(1024)",
        "Decimal": "DECIMAL(65,{scale})",
        "Date": "DATE",
        "Time": "TIME(3)",
        "Timestamp": "DATETIME(3)",
    }

    def connect(self) -> Any:
        import pymysql

        return pymysql.connect(
            host=self.address.host,
            port=self.address.port,
            user=self.address.user or None,
            password=self.address.password,
            database=self.address.database or None,
            charset="utf8mb4",
            connect_timeout=CONNECT_TIMEOUT_S,
            init_command="SET time_zone = '+00:00'",  # TIMESTAMP columns are read and written in UTC
            conv=converters() if self._nulls_zero_dates else None,
            ssl=tls_of(self.address.options),
        )

    @property
    def _nulls_zero_dates(self) -> bool:
        word = self.address.options.get("zeroDateTimeBehavior", "")
        return word.replace("_", "").lower() == "converttonull"

    @property
    def errors(self) -> type[Exception]:
        import pymysql

        found: type[Exception] = pymysql.err.Error
        return found

    def is_away(self, error: BaseException) -> bool:
        import pymysql

        if isinstance(error, pymysql.err.InterfaceError):
            return True
        return isinstance(error, pymysql.err.MySQLError) and bool(error.args) and error.args[0] in AWAY

    def is_data_error(self, error: BaseException) -> bool:
        import pymysql

        if isinstance(error, pymysql.err.DataError | pymysql.err.IntegrityError):
            return True
        told = error.args[0] if isinstance(error, pymysql.err.MySQLError) and error.args else None
        return told in OF_ROWS or (isinstance(told, str) and "can not be used with MySQL" in told)  # NaN

    def stream(
        self, connection: Any, statement: str, values: Sequence[Any], rows: int
    ) -> tuple[list[ColumnInfo], Iterator[list[Row]]]:
        from pymysql.cursors import SSCursor

        cursor = connection.cursor(SSCursor)  # rows stay on the server until they are asked for
        cursor.execute(statement, tuple(values) if values else None)
        result = cursor._result
        return [self._with_zero_dates(described(each)) for each in result.fields], unbuffered(cursor, rows)

    def now(self, connection: Any) -> datetime:
        found: datetime = self.fetch(connection, "SELECT utc_timestamp(6)")[0][0]
        connection.rollback()
        return found.replace(tzinfo=UTC)

    def tables(
        self, connection: Any, types: Sequence[str], catalog: str | None, schema: str | None
    ) -> list[TableId]:
        kinds = [KINDS[each.upper()] for each in types if each.upper() in KINDS] or ["BASE TABLE"]
        where = "table_schema LIKE %s" if catalog else "table_schema = coalesce(database(), table_schema)"
        query = (
            f"SELECT table_schema, table_name FROM information_schema.tables WHERE {where}"
            " AND table_type IN %s AND table_schema NOT IN %s ORDER BY 1, 2"
        )
        found = self.fetch(connection, query, (*((catalog,) if catalog else ()), kinds, SYSTEM))
        connection.rollback()
        return [TableId(database, "", name) for database, name in found]

    def find(self, connection: Any, parts: Sequence[str]) -> TableId | None:
        database = parts[-2] if len(parts) > 1 else None
        query = (
            "SELECT table_schema, table_name FROM information_schema.tables"
            " WHERE table_schema = coalesce(%s, database()) AND table_name = %s"
        )
        found = self.fetch(connection, query, (database, parts[-1]))
        connection.rollback()
        return TableId(found[0][0], "", found[0][1]) if found else None

    def columns(self, connection: Any, table: TableId) -> list[ColumnInfo]:
        rows = self.fetch(connection, COLUMNS, (table.catalog, table.name))
        return [self._with_zero_dates(of_catalogue(row)) for row in rows]

    def _with_zero_dates(self, column: ColumnInfo) -> ColumnInfo:
        """Columns of dates may be null, whatever they declare, if zero dates are read as null."""
        return replace(column, nullable=True) if self._nulls_zero_dates and column.type in TIMES else column

    def folded(self, name: str) -> str:
        return name.lower()

    def stored(self, value: datetime, native: str, zone: tzinfo) -> datetime:
        """TIMESTAMP is in UTC, as the session is; DATETIME is local."""
        return super().stored(value, native, UTC if native == "timestamp" else zone)

    def refusal_of_upserts(self, connection: Any, table: TableId, columns: Iterable[str]) -> str:
        """Without a unique index over columns of the rows, each upsert would insert one more row."""
        query = (
            "SELECT index_name, lower(column_name) FROM information_schema.statistics"
            " WHERE table_schema = %s AND table_name = %s AND non_unique = 0"
        )
        indexes: dict[str, set[str]] = {}
        for index, column in self.fetch(connection, query, (table.catalog, table.name)):
            indexes.setdefault(index, set()).add(column)
        given = {each.lower() for each in columns}
        if any(each <= given for each in indexes.values()):
            return ""
        return (
            f"the table {table} has no primary key or unique index over columns of the rows, so upserts would"
            " insert each row again: add one, or set insert.mode=insert"
        )

    def upsert(
        self, table: TableId, keys: Sequence[str], others: Sequence[str], casts: Mapping[str, str]
    ) -> str:
        changed = others or keys[:1]
        sets = ", ".join(f"{self._name(each)} = VALUES({self._name(each)})" for each in changed)
        return f"{self.insert(table, [*keys, *others], casts)} ON DUPLICATE KEY UPDATE {sets}"


def unbuffered(cursor: Any, rows: int) -> Iterator[list[Row]]:
    """Rows of a cursor on the server. One that is left early is dropped with its connection: the driver would
    read all rows that are left."""
    is_done = False
    try:
        while found := cursor.fetchmany(rows):
            yield list(found)
        is_done = True
    finally:
        if is_done:
            cursor.close()
        else:
            if cursor._result is not None:
                cursor._result.unbuffered_active = False
            cursor.connection = None


def tls_of(options: Mapping[str, str]) -> SSLContext | None:
    """TLS as `sslMode` (of both drivers for Java) or `useSSL` asks for it; None: where the server has it."""
    given = {name.lower(): text for name, text in options.items()}
    mode = (given.get("sslmode") or given.get("usessl") or "").replace("-", "_").upper()
    if mode not in ENCRYPTED:
        return None
    authority = given.get("serversslcert") or given.get("sslca")
    found = create_default_context(cafile=authority)
    found.check_hostname = mode in ("VERIFY_IDENTITY", "VERIFY_FULL")
    if not authority and not mode.startswith("VERIFY"):
        found.verify_mode = CERT_NONE
    return found


def converters() -> dict[Any, Any]:
    """The driver's conversions, with null for zero dates."""
    from pymysql import converters as known

    def or_null(convert: Callable[[str], Any]) -> Callable[[str], Any]:
        return lambda text: None if text.startswith(ZERO_DATE) else convert(text)

    dates = {code: or_null(known.decoders[code]) for code in (7, 10, 12)}  # TIMESTAMP, DATE, DATETIME
    return {**known.conversions, **dates}


def kind_of(native: str, is_one_bit: bool) -> SqlType:
    if is_one_bit:
        return SqlType.TINYINT
    return TYPES.get(native, SqlType.BINARY if native in (*BYTES, *GEOMETRIES) else SqlType.TEXT)


def of_catalogue(row: Row) -> ColumnInfo:
    name, native, full, precision, scale, nullable, default, extra, _, _, position = row
    kind = kind_of(native, full == "bit(1)")
    return ColumnInfo(
        name,
        kind,
        native,
        int(precision or 0),
        None if scale is None else int(scale),
        nullable=nullable == "YES",
        has_default=default is not None and default != "NULL",
        auto_increment="auto_increment" in extra,
        unsigned="unsigned" in full,
        key_position=int(position or 0),
    )


def described(field: Any) -> ColumnInfo:
    native = CODES.get(field.type_code, "blob" if field.charsetnr == BINARY_CHARSET else "text")
    if field.type_code == 245:  # JSON
        native = "json"
    kind = kind_of(native, native == "bit" and field.length == 1)
    return ColumnInfo(
        field.name,
        kind,
        native,
        field.length,
        field.scale,
        nullable=not field.flags & 1,
        unsigned=bool(field.flags & 32),
    )
