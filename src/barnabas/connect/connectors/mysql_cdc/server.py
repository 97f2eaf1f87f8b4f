"""The server through an ordinary connection: its kind, its log, its tables, consistent snapshots."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from barnabas.connect.config import Settings
from barnabas.connect.connectors.debezium.filters import Lists
from barnabas.connect.connectors.debezium.runs import bytes_max, row_batches
from barnabas.connect.connectors.mysql_cdc.ddl import Tables
from barnabas.connect.connectors.mysql_cdc.dump import SILENCE_S_MAX
from barnabas.connect.connectors.mysql_cdc.position import Place
from barnabas.connect.connectors.mysql_cdc.tables import ColumnDef
from barnabas.connect.plugins import ConnectError

SYSTEM = ("mysql", "information_schema", "performance_schema", "sys")
DENIED = (1044, 1045, 1142, 1227)
CONNECT_TIMEOUT_S = 20


class Wanted:
    """The databases, tables and columns that the lists of a connector choose."""

    def __init__(self, settings: Settings) -> None:
        self._databases, self._tables, self._columns = (
            Lists.of(settings, each) for each in ("database", "table", "column")
        )

    def table(self, database: str, name: str) -> bool:
        if database.lower() in SYSTEM:
            return False
        return self._databases.wants(database) and self._tables.wants(f"{database}.{name}")

    def column(self, database: str, table: str, name: str) -> bool:
        return self._columns.wants(f"{database}.{table}.{name}")


class Server:
    """One connection; statements see times in UTC."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.connection = self.connect()
        version = self.one("SELECT version()")[0]
        self.is_mariadb = "mariadb" in str(version).lower()
        self.lower_names = int(self.one("SELECT @@lower_case_table_names")[0]) > 0

    def connect(self, *, timeout_s: int = SILENCE_S_MAX) -> Any:
        import pymysql

        settings = self._settings
        mode = settings.text("database.ssl.mode").lower()
        ssl: dict[str, Any] = {}
        if mode in ("required", "require", "verify_ca", "verify_identity"):
            ssl = {"ssl": {"ca": settings.text("database.ssl.ca") or None}}
            if mode == "verify_identity":
                ssl["ssl_verify_identity"] = True
        found = pymysql.connect(
            host=settings.text("database.hostname"),
            port=settings.integer("database.port"),
            user=settings.text("database.user"),
            password=settings.text("database.password"),
            charset="utf8mb4",
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=timeout_s,
            autocommit=True,
            init_command="SET time_zone = '+00:00'",
            **ssl,
        )
        found.decoders = {}  # values come as texts and bytes, as the log has them
        return found

    def one(self, query: str, *values: Any) -> tuple[Any, ...]:
        found = self.all(query, *values)
        if not found:
            raise ConnectError(f"the server gives no answer to {query}")
        return found[0]

    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.connection.cursor() as cursor:
            cursor.execute(query, values or None)
            return list(cursor.fetchall())

    def execute(self, statement: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement)

    def close(self) -> None:
        self.connection._force_close()

    # -- log ---------------------------------------------------------------------------------------

    def check(self) -> None:
        """ConnectError if the server cannot be followed."""
        if str(self.one("SELECT @@log_bin")[0]) not in ("1", "ON"):
            raise ConnectError("the server writes no binary log: start it with log_bin and server_id")
        form = str(self.one("SELECT @@global.binlog_format")[0])
        if form.upper() != "ROW":
            raise ConnectError(f"the server has binlog_format={form}: set binlog_format=ROW")

    def place(self) -> Place:
        """The end of the log now."""
        import pymysql

        try:
            row = self.one("SHOW MASTER STATUS")
        except pymysql.err.ProgrammingError:
            row = self.one("SHOW BINARY LOG STATUS")
        return Place(str(row[0]), int(row[1]), gtids=self.gtids())

    def gtids(self) -> str:
        """All GTIDs so far; empty if the server has none."""
        if self.is_mariadb:
            return str(self.one("SELECT @@global.gtid_binlog_pos")[0])
        if str(self.one("SELECT @@global.gtid_mode")[0]).upper() != "ON":
            return ""
        return str(self.one("SELECT @@global.gtid_executed")[0]).replace("\n", "").replace(" ", "")

    def has_log(self, file: str) -> bool:
        return any(str(row[0]) == file for row in self.all("SHOW BINARY LOGS"))

    # -- tables ------------------------------------------------------------------------------------

    def table_names(self, wanted: Wanted) -> list[tuple[str, str]]:
        query = (
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
            " ORDER BY 1, 2"
        )
        return [(str(a), str(b)) for a, b in self.all(query) if wanted.table(str(a), str(b))]

    def prepare(self, tables: Tables) -> None:
        """Learn the character sets of the server and its databases."""
        tables.lower = self.lower_names
        tables.charset = str(self.one("SELECT @@character_set_server")[0])
        query = "SELECT schema_name, default_character_set_name FROM information_schema.schemata"
        tables.charsets.update({str(name): str(charset) for name, charset in self.all(query)})

    def statement_of(self, database: str, name: str) -> str:
        return text_of(self.one(f"SHOW CREATE TABLE {quoted(database)}.{quoted(name)}")[1])

    # -- snapshots ---------------------------------------------------------------------------------

    def begin_snapshot(self, names: list[tuple[str, str]], locking: str) -> tuple[Place, str]:
        """A transaction that sees everything before the returned place and nothing behind it.

        Out: the place, and which lock is held: `global`, `tables` or none. `release` ends a global one when
        the definitions of tables are read. MariaDB tells the place of a consistent snapshot, so it needs no
        lock if none is wanted.
        """
        import pymysql

        self.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        begin = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
        if locking == "none":
            self.execute(begin)
            return self._snapshot_place(), ""
        try:
            self.execute("FLUSH TABLES WITH READ LOCK")
        except pymysql.err.MySQLError as error:
            if not error.args or error.args[0] not in DENIED:
                raise
            if names:
                locks = ", ".join(f"{quoted(a)}.{quoted(b)} READ" for a, b in names)
                self.execute(f"LOCK TABLES {locks}")
            return self.place(), "tables"
        self.execute(begin)
        return self.place(), "global"

    def release(self, lock: str) -> None:
        if lock == "global":
            self.execute("UNLOCK TABLES")

    def _snapshot_place(self) -> Place:
        if not self.is_mariadb:
            return self.place()
        found = {str(a): str(b) for a, b in self.all("SHOW STATUS LIKE 'binlog_snapshot%'")}
        file, pos = found.get("Binlog_snapshot_file", ""), int(found.get("Binlog_snapshot_position") or 0)
        gtids = str(self.one("SELECT binlog_gtid_pos(%s, %s)", file, pos)[0] or "")
        return Place(file, pos, gtids=gtids)

    def look(
        self, query: str, values: Sequence[Any], streamed: Place
    ) -> tuple[list[tuple[Any, ...]], tuple[str, int]] | None:
        """Rows, and a place of the log behind all that they have. None if they do not have all that was
        streamed. MariaDB tells the place of a consistent snapshot, MySQL which GTIDs queries see."""
        if self.is_mariadb:
            self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")
            try:
                place = self._snapshot_place()
                return (self.all(query, *values), place.order) if place.order >= streamed.order else None
            finally:
                self.execute("ROLLBACK")
        if not streamed.gtids:
            raise ConnectError("read.only needs GTIDs at a MySQL: set gtid_mode=ON, or read.only=false")
        seen = self.one("SELECT GTID_SUBSET(%s, @@global.gtid_executed)", streamed.gtids)[0]
        return (self.all(query, *values), self.place().order) if int(seen) else None

    def end_snapshot(self) -> None:
        self.execute("COMMIT")
        self.execute("UNLOCK TABLES")

    def rows(self, statement: str, size: int) -> Iterator[Sequence[Sequence[Any]]]:
        """Rows as they come from the server."""
        from pymysql.cursors import SSCursor

        cursor = self.connection.cursor(SSCursor)
        cursor.execute(statement)
        try:
            yield from row_batches(cursor.fetchmany, size, bytes_max(self._settings))
        except GeneratorExit:
            self.close()  # the driver would read all rows that are left
            cursor.connection = None
            if cursor._result is not None:
                cursor._result.unbuffered_active = False
            raise
        cursor.close()


def server_id(settings: Settings, connector: str) -> int:
    """The number of this reader as a replica: its setting, or one made from names."""
    if settings["database.server.id"] is not None:
        return settings.integer("database.server.id")
    digest = hashlib.sha256(f"{connector} {settings.text('topic.prefix')}".encode()).digest()
    return 5400 + int.from_bytes(digest[:4], "big") % 2**31


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def selected(column: ColumnDef) -> str:
    """A column in a SELECT. The driver reads vectors as texts, so they are asked for as bytes."""
    name = quoted(column.name)
    return f"CAST({name} AS BINARY)" if column.type == "VECTOR" else name


def text_of(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
