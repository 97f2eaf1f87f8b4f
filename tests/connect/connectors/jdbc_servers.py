"""Databases for tests of connectors, and tasks that run without a worker."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from barnabas.connect.connectors.databases.address import read_address
from barnabas.connect.connectors.databases.dialect import Dialect
from barnabas.connect.connectors.databases.dialects import dialect_of
from barnabas.connect.connectors.jdbc.sink import JdbcSinkConnector, JdbcSinkTask
from barnabas.connect.connectors.jdbc.source import JdbcSourceConnector, JdbcSourceTask
from barnabas.connect.data import Records
from barnabas.connect.plugins import ConnectorContext, SinkContext, SourceContext
from barnabas.pipeline.demo import postgres
from barnabas.testing import mysql


@dataclass
class Database:
    """A running database; `sql` executes statements, `rows` answers a query."""

    url: str
    user: str
    password: str
    server: Any = None

    @property
    def dialect(self) -> Dialect:
        return dialect_of(read_address(self.url, self.user, self.password))

    def sql(self, *statements: str) -> None:
        with closing(self.dialect.connect()) as connection:
            for each in statements:
                self.dialect.execute(connection, each)
            connection.commit()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(self.dialect.connect()) as connection:
            return self.dialect.fetch(connection, query)

    @property
    def config(self) -> dict[str, str]:
        found = {"connection.url": self.url}
        return (
            {**found, "connection.user": self.user, "connection.password": self.password}
            if self.user
            else found
        )


@contextmanager
def running(kind: str, folder: Path) -> Iterator[Database]:
    if kind == "sqlite":
        yield Database(f"jdbc:sqlite:{folder / 'shop.db'}", "", "")
    elif kind == "postgresql":
        if reason := postgres.available():
            pytest.skip(reason)
        with postgres.Postgres(password="a secret") as server:
            yield Database(server.url, server.user, server.password, server)
    else:
        if reason := mysql.available():
            pytest.skip(reason)
        with mysql.MySqlServer() as maria:
            yield Database(maria.url, maria.user, maria.password, maria)


class Offsets:
    """The offsets topic, in memory."""

    def __init__(self) -> None:
        self.stored: dict[str, dict[str, Any]] = {}

    def read(self, partitions: Any) -> list[dict[str, Any] | None]:
        return [self.stored.get(json.dumps(each, sort_keys=True)) for each in partitions]

    def commit(self, records: Records) -> None:
        for partition, offset in records.positions:
            self.stored[json.dumps(partition, sort_keys=True)] = offset


class Source:
    """A source connector with its tasks, run by hand. A new one with the same offsets is a restart."""

    def __init__(self, config: Mapping[str, str], offsets: Offsets, tasks_max: int = 1) -> None:
        config = {"poll.interval.ms": "1", **config}
        self.connector = JdbcSourceConnector()
        assert self.connector.check(config) == {}
        self.connector.start(JdbcSourceConnector.CONFIG.parse(config), ConnectorContext("jdbc", config))
        self.configs = self.connector.task_configs(tasks_max)
        self.offsets = offsets
        self.tasks = []
        for number, each in enumerate(self.configs):
            task = JdbcSourceTask()
            settings = JdbcSourceConnector.CONFIG.parse(each)
            task.start(SourceContext("jdbc", number, settings, each, offsets=offsets, poll_seconds=0.05))
            self.tasks.append(task)

    def poll(self, polls: int = 40) -> list[Records]:
        """What the tasks give until they have nothing for a while."""
        found: list[Records] = []
        for task in self.tasks:
            idle = 0
            while idle < 4 and len(found) < polls:
                if (records := task.poll()) is None:
                    idle += 1
                    continue
                idle = 0
                found.append(records)
                self.offsets.commit(records)
        return found

    def values(self) -> list[Any]:
        return [each for records in self.poll() for each in records.values.pylist()]

    def stop(self) -> None:
        self.connector.stop()
        for task in self.tasks:
            task.stop()


class Sink:
    """A sink task, run by hand."""

    def __init__(self, config: Mapping[str, str]) -> None:
        assert JdbcSinkConnector().check(config) == {}
        self.errants: list[tuple[list[int], BaseException]] = []
        self.sought: dict[Any, int] = {}
        self.task = JdbcSinkTask()
        context = SinkContext("sink", 0, JdbcSinkConnector.CONFIG.parse(config), config)
        context.errant = lambda records, indices, error: self.errants.append((list(indices), error))
        context.seek = lambda offsets: self.sought.update(offsets)
        self.task.start(context)
