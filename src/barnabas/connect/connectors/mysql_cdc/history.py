"""The schema history: statements that changed tables, with their places in the log, in Debezium's form.

Each record is JSON with `source`, `position`, `ts_ms`, `databaseName`, `ddl` and `tableChanges`. It is kept
in a topic, in a file, or in memory. Records are durable before offsets move behind their statements.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from barnabas.connect.config import Settings
from barnabas.connect.connectors.debezium.topic_log import TopicLog
from barnabas.connect.connectors.mysql_cdc.ddl import TableChange, Tables
from barnabas.connect.connectors.mysql_cdc.ddl_tokens import DdlError
from barnabas.connect.connectors.mysql_cdc.position import Place
from barnabas.connect.connectors.mysql_cdc.tables import TableDef, change_json, id_of_json
from barnabas.connect.plugins import ConnectError

PREFIX = "schema.history.internal."


class Store(Protocol):
    def read(self) -> list[dict[str, Any]]: ...
    def append(self, records: Sequence[dict[str, Any]]) -> None: ...
    def close(self) -> None: ...


class TopicStore:
    """Debezium's KafkaSchemaHistory: a topic with one partition that is never compacted."""

    def __init__(self, settings: Settings) -> None:
        given = {name: value or "" for name, value in settings.prefixed(PREFIX).items()}
        servers = given.get("kafka.bootstrap.servers")
        topic = given.get("kafka.topic")
        if not servers or not topic:
            raise ConnectError(
                f"the schema history needs {PREFIX}kafka.topic and {PREFIX}kafka.bootstrap.servers"
            )
        properties = {"bootstrap.servers": servers}
        for name, value in given.items():
            kind, _, rest = name.partition(".")
            if kind in ("producer", "consumer") and rest.startswith(("security.", "sasl.", "ssl.")):
                properties[rest] = value
        self._log = TopicLog(properties, topic)
        self._log.create({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"})

    def read(self) -> list[dict[str, Any]]:
        self._log.next_offset = 0
        return [parsed(value) for _, value in self._log.read() if value]

    def append(self, records: Sequence[dict[str, Any]]) -> None:
        self._log.append([(None, json.dumps(each, ensure_ascii=False).encode()) for each in records])

    def close(self) -> None:
        self._log.close()


class FileStore:
    """Debezium's FileSchemaHistory: a line for each record."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        return [parsed(line) for line in self._path.read_bytes().splitlines() if line.strip()]

    def append(self, records: Sequence[dict[str, Any]]) -> None:
        with self._path.open("ab") as file:
            file.write(b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in records))
            file.flush()
            os.fsync(file.fileno())

    def close(self) -> None:
        """Nothing is open."""


class MemoryStore:
    """Debezium's MemorySchemaHistory: for tests, and for snapshots at each start."""

    def __init__(self) -> None:
        self._records: list[dict[str, Any]] = []

    def read(self) -> list[dict[str, Any]]:
        return list(self._records)

    def append(self, records: Sequence[dict[str, Any]]) -> None:
        self._records += records

    def close(self) -> None:
        """Nothing is open."""


def parsed(value: bytes) -> dict[str, Any]:
    try:
        found = json.loads(value)
        if isinstance(found, dict):
            return found
    except ValueError:
        pass
    raise ConnectError(f"the schema history has a record that is no JSON object: {value[:100]!r}")


def store_of(settings: Settings) -> Store:
    kind = settings.text("schema.history.internal").rpartition(".")[2]
    if kind == "FileSchemaHistory":
        path = settings.raw.get(f"{PREFIX}file.filename")
        if not path:
            raise ConnectError(f"FileSchemaHistory needs {PREFIX}file.filename")
        return FileStore(Path(path))
    if kind == "MemorySchemaHistory":
        return MemoryStore()
    if kind == "KafkaSchemaHistory":
        return TopicStore(settings)
    known = "KafkaSchemaHistory, FileSchemaHistory or MemorySchemaHistory"
    raise ConnectError(f"{kind} is not known: schema.history.internal is {known}")


class History:
    """The history of one connector."""

    def __init__(self, store: Store, server: str) -> None:
        self._store = store
        self._server = server

    def write(
        self, place: Place, database: str, ddl: str, changes: Sequence[TableChange], *, snapshot: bool = False
    ) -> None:
        position = place.offset
        if snapshot:
            position["snapshot"] = True
        self._store.append(
            [
                {
                    "source": {"server": self._server},
                    "position": position,
                    "ts_ms": time.time_ns() // 1_000_000,
                    "databaseName": database,
                    "ddl": ddl,
                    "tableChanges": table_changes(changes),
                }
            ]
        )

    def recover(self, tables: Tables, place: Place) -> int:
        """Bring tables to what they were at a place. Out: how many records were applied."""
        count = 0
        for record in self._store.read():
            if (record.get("source") or {}).get("server") not in (None, self._server):
                continue
            position = Place.of({**(record.get("position") or {}), "snapshot": None})
            if position.order > place.order:
                continue
            count += 1
            apply(tables, record)
        return count

    def close(self) -> None:
        self._store.close()


def table_changes(changes: Sequence[TableChange]) -> list[dict[str, Any]]:
    return [
        change_json(each.kind, each.database, each.name, each.table)
        for each in changes
        if each.kind != "TRUNCATE"
    ]


def apply(tables: Tables, record: dict[str, Any]) -> None:
    """One record: its table changes; the statement itself where it has none."""
    changes = record.get("tableChanges")
    database, ddl = record.get("databaseName") or "", record.get("ddl") or ""
    if changes:
        for each in changes:
            owner, name = id_of_json(str(each.get("id", "")))
            if each.get("type") == "DROP" or not each.get("table"):
                tables.drop(owner, name)
            else:
                tables.put(TableDef.of_json(owner, name, each["table"]))
        if len(changes) == 1 and changes[0].get("type") == "ALTER" and "RENAME" in ddl.upper():
            tables.apply(ddl, database)
    elif ddl:
        try:
            tables.apply(ddl, database)
        except DdlError as error:
            raise ConnectError(f"the schema history has a statement that cannot be read: {error}") from error
