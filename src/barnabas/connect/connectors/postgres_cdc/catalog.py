"""Tables, slots and publications of a PostgreSQL database, through an ordinary connection."""

from __future__ import annotations

import logging
import time
from typing import Any

from barnabas.connect.config import Settings
from barnabas.connect.connectors.debezium.filters import Lists
from barnabas.connect.connectors.postgres_cdc.replication import lsn_of
from barnabas.connect.plugins import ConnectError

log = logging.getLogger(__name__)
DROPS_MAX, DROP_PAUSE_S = 50, 0.1
PAGE_BYTES, PAGE_HEADERS = 8192, (24, 40)  # of the log; the first page of a file has the longer header
# Texts of values do not depend on the settings of the database or the user.
STYLE = (
    "-c DateStyle=ISO -c IntervalStyle=postgres -c TimeZone=UTC -c extra_float_digits=1 -c bytea_output=hex"
)
TABLES = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema'
  AND n.nspname NOT LIKE 'pg\\_%' ORDER BY 1, 2
"""


class Wanted:
    """The schemas, tables and columns that the lists of a connector choose."""

    def __init__(self, settings: Settings) -> None:
        self._schemas, self._tables, self._columns = (
            Lists.of(settings, each) for each in ("schema", "table", "column")
        )

    def table(self, schema: str, name: str) -> bool:
        return self._schemas.wants(schema) and self._tables.wants(f"{schema}.{name}")

    def column(self, schema: str, table: str, name: str) -> bool:
        return self._columns.wants(f"{schema}.{table}.{name}")


def conninfo(settings: Settings) -> str:
    from psycopg.conninfo import make_conninfo

    files = {each: settings.text(f"database.{each}") or None for each in ("sslcert", "sslkey", "sslrootcert")}
    return make_conninfo(
        "",
        host=settings.text("database.hostname"),
        port=settings.integer("database.port"),
        dbname=settings.text("database.dbname"),
        user=settings.text("database.user"),
        password=settings.text("database.password") or None,
        sslmode=settings.text("database.sslmode"),
        connect_timeout=20,
        application_name="barnabas-connect",
        options=STYLE,
        **files,
    )


def text_connection(info: str, *, autocommit: bool = False) -> Any:
    """A connection whose values are the texts that the log has too: a cast to text may write others."""
    import psycopg
    from psycopg.types.string import TextLoader

    connection = psycopg.connect(info, autocommit=autocommit)
    for each in connection.adapters.types:
        connection.adapters.register_loader(each.oid, TextLoader)
        if each.array_oid:
            connection.adapters.register_loader(each.array_oid, TextLoader)
    return connection


def tables_of(connection: Any, wanted: Wanted) -> list[tuple[str, str]]:
    return [(schema, name) for schema, name in connection.execute(TABLES) if wanted.table(schema, name)]


def ensure_publication(connection: Any, settings: Settings, wanted: Wanted) -> None:
    from psycopg import sql

    name, mode = settings.text("publication.name"), settings.text("publication.autocreate.mode").lower()
    exists = connection.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", (name,)).fetchone()
    if exists and mode != "filtered":
        return
    if mode == "disabled":
        raise ConnectError(
            f"the publication {name} is missing and publication.autocreate.mode is disabled:"
            f" CREATE PUBLICATION {name} FOR TABLE …, or let the connector create it"
        )
    made = sql.SQL("CREATE PUBLICATION {}").format(sql.Identifier(name))
    if mode == "all_tables":
        made += sql.SQL(" FOR ALL TABLES")
    elif mode == "filtered":
        found = tables_of(connection, wanted)
        if not found:
            raise ConnectError("publication.autocreate.mode=filtered: the lists of tables choose none")
        schema, _, signals = settings.text("signal.data.collection").rpartition(".")
        if signals and (schema or "public", signals) not in found:
            found.append((schema or "public", signals))
        if exists:
            complete(connection, name, found)
            return
        made += sql.SQL(" FOR TABLE ") + sql.SQL(", ").join(sql.Identifier(*each) for each in found)
    connection.execute(made + sql.SQL(publication_options(settings)))


def publication_options(settings: Settings) -> str:
    """WITH (…) of a new publication: the server leaves out what nobody reads."""
    options = []
    if settings.flag("publish.via.partition.root"):
        options.append("publish_via_partition_root = true")
    skipped = settings.entries("skipped.operations")
    if settings.raw.get("skipped.operations") and skipped != ["none"]:
        kinds = {"c": "insert", "u": "update", "d": "delete", "t": "truncate"}
        published = [name for letter, name in kinds.items() if letter not in skipped]
        options.append(f"publish = '{', '.join(published)}'")
    return f" WITH ({', '.join(options)})" if options else ""


def complete(connection: Any, name: str, tables: list[tuple[str, str]]) -> None:
    """Add tables to a publication that were created or chosen after it."""
    from psycopg import sql

    query = "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s"
    there = {(schema, table) for schema, table in connection.execute(query, (name,))}
    missing = [each for each in tables if each not in there]
    if missing:
        names = sql.SQL(", ").join(sql.Identifier(*each) for each in missing)
        connection.execute(sql.SQL("ALTER PUBLICATION {} ADD TABLE {}").format(sql.Identifier(name), names))


def ensure_identities(connection: Any, settings: Settings) -> None:
    """Set the replica identities of `replica.identity.autoset.values`."""
    from psycopg import sql

    for part in settings.text("replica.identity.autoset.values").split(","):
        table, _, identity = part.strip().partition(":")
        if not table:
            continue
        kind = identity.strip().upper()
        if kind not in ("FULL", "DEFAULT", "NOTHING"):
            raise ConnectError(
                f"replica.identity.autoset.values has {part!r}: schema.table:FULL, DEFAULT or NOTHING"
            )
        schema, _, name = table.rpartition(".")
        statement = sql.SQL("ALTER TABLE {} REPLICA IDENTITY " + kind)
        connection.execute(statement.format(sql.Identifier(schema or "public", name)))


def ensure_slot(connection: Any, name: str, *, replaces_lost: bool) -> tuple[int, bool]:
    """The position of the slot, and whether it was created just now. `replaces_lost`: also if it was there,
    but the server has removed log that it needs."""
    level = connection.execute("SHOW wal_level").fetchone()[0]
    if level != "logical":
        raise ConnectError(f"the server has wal_level={level}: set wal_level=logical and restart it")
    query = (
        "SELECT confirmed_flush_lsn::text, plugin, wal_status FROM pg_replication_slots WHERE slot_name = %s"
    )
    found = connection.execute(query, (name,)).fetchone()
    is_lost = found is not None and found[2] == "lost"
    if is_lost and replaces_lost:
        log.warning("the server has removed log that the slot %s needs: the slot is made anew", name)
        drop_slot(connection, name)
    elif found is not None:
        if found[1] != "pgoutput":
            raise ConnectError(
                f"the slot {name} has the plugin {found[1]}: name another slot, or drop this one"
            )
        if is_lost:
            raise ConnectError(
                f"the server has removed log that the slot {name} needs: take snapshot.mode=when_needed, or"
                " drop the slot and take a new snapshot"
            )
        return lsn_of(found[0]), False
    made = connection.execute(
        "SELECT lsn::text FROM pg_create_logical_replication_slot(%s, 'pgoutput')", (name,)
    )
    return lsn_of(made.fetchone()[0]), True


def drop_slot(connection: Any, name: str) -> None:
    """Drop a slot, if there is one. The server needs a moment to see that its reader has gone."""
    import psycopg

    query = "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s"
    for _ in range(DROPS_MAX):
        try:
            connection.execute(query, (name,))
            return
        except psycopg.errors.ObjectInUse as error:
            used = error
        time.sleep(DROP_PAUSE_S)
    raise ConnectError(f"the slot {name} cannot be dropped: {used}")


def end_of_log(connection: Any) -> int:
    """A place behind all transactions that a query sees now. At the begin of a page it is before the header:
    the server's own place is there until something is written."""
    is_replica = connection.execute("SELECT pg_is_in_recovery()").fetchone()[0]
    function = "pg_last_wal_replay_lsn" if is_replica else "pg_current_wal_insert_lsn"
    found = lsn_of(connection.execute(f"SELECT {function}()::text").fetchone()[0])
    return found - found % PAGE_BYTES if found % PAGE_BYTES in PAGE_HEADERS else found
