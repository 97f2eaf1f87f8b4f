"""One case at a running PostgreSQL: both connectors, or ours alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg

from barnabas.connect.connectors.postgres_cdc.connector import PostgresConnector
from barnabas.connect.data import Records
from barnabas.pipeline.demo import postgres
from connect.connectors.against_debezium.postgres_cases import END, Case
from connect.connectors.contexts import Offsets, started_source

CLASS = "io.debezium.connector.postgresql.PostgresConnector"


class Run:
    """The database of one case, and the settings of a connector that reads it."""

    def __init__(self, server: postgres.Postgres, case: Case) -> None:
        self.server, self.case = server, case
        self.prefix = case.name.replace(" ", "")
        self.database = f"db_{self.prefix}"
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            # The same case may have run with a Debezium beside it.
            connection.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = %s",
                (self.database,),
            )
            connection.execute(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {self.database}")
        self.execute(f"CREATE TABLE {END} (id int PRIMARY KEY)")
        for statement in case.setup:
            self.execute(statement)

    def connect(self) -> Any:
        dsn = self.server.dsn.removesuffix(self.server.database) + self.database
        return psycopg.connect(dsn, autocommit=True)

    def execute(self, statement: str) -> None:
        with self.connect() as connection:
            connection.execute(statement)

    def config(self, who: str) -> dict[str, str]:
        server = self.server
        return {
            "connector.class": CLASS,
            "topic.prefix": self.prefix,
            "database.hostname": "127.0.0.1",
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.dbname": self.database,
            "plugin.name": "pgoutput",
            "slot.name": f"{self.prefix}_{who}",
            "publication.name": f"{self.prefix}_{who}",
            "publication.autocreate.mode": "filtered",
            "poll.interval.ms": "50",
            **self.case.config,
        }

    def is_streaming(self, who: str) -> bool:
        with self.connect() as connection:
            query = "SELECT active FROM pg_replication_slots WHERE slot_name = %s"
            return bool(connection.execute(query, (f"{self.prefix}_{who}",)).fetchone() == (True,))

    def play(self, between: Callable[[], None]) -> None:
        """The statements of the case, and one more whose event says that all others have come."""
        for statement in self.case.stream:
            self.execute(statement)
            between()
        self.execute(f"INSERT INTO {END} VALUES (1) ON CONFLICT DO NOTHING")


class Own:
    """Our connector, driven by hand."""

    def __init__(self, run: Run, who: str = "own") -> None:
        self.run = run
        self._given = given = run.config(who)
        errors = PostgresConnector().check(given)
        assert errors == {}, errors
        self.offsets = Offsets()
        self.batches: list[Records] = []
        self.restart()

    def restart(self) -> None:
        """Start at the stored offset."""
        self.task: Any = started_source(PostgresConnector, self._given, self.offsets)
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

    def stop(self) -> None:
        self.task.stop()
