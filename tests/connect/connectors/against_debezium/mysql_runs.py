"""One case at a running MySQL or MariaDB: both connectors, or ours alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pymysql

from barnabas.connect.connectors.mysql_cdc.connector import MariaDbConnector, MySqlConnector
from barnabas.connect.data import Records
from barnabas.testing import mysql
from connect.connectors.against_debezium.postgres_cases import END, Case
from connect.connectors.contexts import Offsets, started_source

CLASSES = {"mysql": MySqlConnector, "mariadb": MariaDbConnector}


class Run:
    """The database of one case, and the settings of a connector that reads it."""

    def __init__(self, server: mysql.MySqlServer, case: Case, kind: str) -> None:
        self.server, self.case, self.kind = server, case, kind
        self.prefix = case.name
        self.database = f"db_{self.prefix}"
        server.execute_as_root(f"DROP DATABASE IF EXISTS {self.database}")  # of a case with a Debezium
        server.execute_as_root(f"CREATE DATABASE {self.database} CHARACTER SET utf8mb4")
        server.execute_as_root(f"GRANT ALL ON {self.database}.* TO {server.user}@'%'")
        self.execute(f"CREATE TABLE {END} (id int PRIMARY KEY)")
        for statement in case.setup:
            self.execute(statement)

    def connect(self) -> Any:
        server = self.server
        return pymysql.connect(
            host="127.0.0.1", port=server.port, user=server.user, password=server.password,
            database=self.database, charset="utf8mb4", autocommit=True,
            init_command="SET time_zone = '+00:00'",
        )  # fmt: skip

    def execute(self, statement: str) -> None:
        with closing(self.connect()) as connection, connection.cursor() as cursor:
            for each in statement.split("; "):
                cursor.execute(each)

    def config(self, who: str) -> dict[str, str]:
        server = self.server
        name = "MySqlConnector" if self.kind == "mysql" else "MariaDbConnector"
        return {
            "connector.class": f"io.debezium.connector.{self.kind}.{name}",
            "topic.prefix": self.prefix,
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.server.id": str(6000 + abs(hash((self.prefix, who))) % 10000),
            "database.include.list": self.database,
            "include.schema.changes": "false",
            "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
            "poll.interval.ms": "50",
            **self.case.config,
        }

    def readers(self) -> set[str]:
        """Connections that read the log; the server notices late that one of them is gone."""
        query = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
        return set(self.server.execute_as_root(query).split())

    def play(self, between: Callable[[], None]) -> None:
        for statement in self.case.stream:
            self.execute(statement)
            between()
        self.execute(f"INSERT IGNORE INTO {END} VALUES (1)")


class Own:
    """Our connector, driven by hand."""

    def __init__(self, run: Run, who: str = "own") -> None:
        self.run = run
        self._connector = connector = CLASSES[run.kind]
        self._given = given = run.config(who)
        errors = connector().check(given)
        assert errors == {}, errors
        self.offsets = Offsets()
        self.batches: list[Records] = []
        self.restart()

    def restart(self) -> None:
        """Start at the stored offset."""
        self.task: Any = started_source(self._connector, self._given, self.offsets)
        self.task.context.poll_seconds = 0.05

    def poll(self) -> bool:
        found = self.task.poll()
        if found is None:
            return False
        self.batches.append(found)
        self.offsets.store(found)
        self.task.commit(found.positions)
        return True

    def until(self, condition: Callable[[], bool], seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"{self.run.prefix}: ours has {len(self.batches)} batches"
            self.poll()

    def rest(self) -> None:
        """Poll until nothing comes for a moment."""
        while self.poll():
            pass

    def has_end(self) -> bool:
        return any(END in str(each.topics[0]) for each in self.batches if len(each))

    def is_streaming(self) -> bool:
        return self.task._stream is not None

    def stop(self) -> None:
        self.task.stop()
