"""The JDBC source: a connector that watches the tables, tasks that read them."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.connect.config import Settings
from barnabas.connect.connectors.databases.catalogue import TableId, parts_of
from barnabas.connect.connectors.jdbc.common_settings import dialect_from
from barnabas.connect.connectors.jdbc.queries import Position
from barnabas.connect.connectors.jdbc.range_source import BULK, DONE, KEY, RangeSource
from barnabas.connect.connectors.jdbc.source_settings import CONFIG, query_of, runs_on_spark, source_errors
from barnabas.connect.connectors.jdbc.source_table import SourceTable, stored_partitions, topic_of
from barnabas.connect.data import Records
from barnabas.connect.plugins import (
    SOURCE,
    ConnectError,
    Connector,
    ConnectorContext,
    RetriableError,
    SourceContext,
    SourceTask,
    TaskClass,
)

log = logging.getLogger(__name__)
QUERY_PARTITION = {"query": "query"}
OFFSET_FIELDS = ("incrementing", "timestamp", "timestamp_nanos", BULK, KEY, DONE)


class JdbcSourceTask(SourceTask):
    """Reads its tables in turn, each when its pause is over."""

    def start(self, context: SourceContext) -> None:
        self.context = context
        self._dialect = dialect_from(context.settings)
        self._connection: Any = None
        self._sources: list[SourceTable] | None = None
        self._failures = 0

    def poll(self) -> Records | None:
        try:
            return self._poll()
        except RetriableError:
            self._close()
            raise
        except self._dialect.errors as error:
            self._close()
            self._failures += 1
            limit = self.context.settings.integer("query.retry.attempts")
            text = f"{self._dialect.address.shown}: {str(error).strip()}"
            if not self._dialect.is_away(error) and 0 <= limit < self._failures:
                raise ConnectError(f"the query failed {self._failures} times: {text}") from error
            raise RetriableError(text) from error

    def _poll(self) -> Records | None:
        if self._connection is None:
            self._connection = self._connected()
        if self._sources is None:
            self._sources = self._opened()
        due = min(self._sources, key=lambda each: each.due_s, default=None)
        wait_s = self.context.poll_seconds if due is None else due.due_s - time.monotonic()
        if due is None or wait_s > 0:
            self.context.stopping.wait(min(wait_s, self.context.poll_seconds))
            return None
        found = due.next(self._connection)
        self._failures = 0
        if found is None:
            due.due_s = time.monotonic() + self.context.settings.integer("poll.interval.ms") / 1000
            return None
        values = found.shape.values(found.rows)
        positions = [(due.partition, found.position.offset)] if found.position.offset else []
        return Records.of(due.topic, values, found.shape.keys(values), positions=positions)

    def _connected(self) -> Any:
        found = self._dialect.connect()
        level = self.context.settings.text("transaction.isolation.mode").upper()
        if level != "DEFAULT":
            self._dialect.isolate(found, level.replace("_", " "))
        return found

    def _opened(self) -> list[SourceTable]:
        settings = self.context.settings
        prefix = settings.text("topic.prefix")
        if query_of({name: settings.text(name) for name in ("query", "query.masked")}):
            [offset] = self.context.offsets.read([QUERY_PARTITION])
            return [SourceTable(self._dialect, settings, None, prefix, QUERY_PARTITION, Position.of(offset))]
        found = []
        for name in settings.entries("tables"):
            table = self._dialect.find(self._connection, parts_of(name))
            if table is None:
                raise RetriableError(f"the table {name} is not there")
            partition, position = self._stored(table)
            topic = topic_of(settings, table)
            found.append(SourceTable(self._dialect, settings, table, topic, partition, position))
        return found

    def _stored(self, table: TableId) -> tuple[dict[str, Any], Position]:
        """The offset of a table under any of the names that Confluent's source has given it."""
        partitions = stored_partitions(table)
        for partition, offset in zip(partitions, self.context.offsets.read(partitions), strict=True):
            if offset is not None:
                return partition, Position.of(offset)
        return partitions[0], Position()

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        for each in self._sources or ():
            each.reset()  # cursors first: SQLite keeps its lock until the last one is closed
        if connection is not None:
            try:
                connection.close()
            except self._dialect.errors as error:
                log.debug("closing a connection: %s", error)

    def stop(self) -> None:
        self._close()


class JdbcSourceConnector(Connector):
    KIND = SOURCE
    CONFIG = CONFIG
    JAVA_NAMES = (
        "io.confluent.connect.jdbc.JdbcSourceConnector",
        "io.aiven.connect.jdbc.JdbcSourceConnector",
    )
    task = JdbcSourceTask

    def task_class(self, settings: Settings) -> TaskClass:
        """A Spark job where the settings ask for one: key ranges are read side by side."""
        return RangeSource if runs_on_spark(settings.raw) else JdbcSourceTask

    def start(self, settings: Settings, context: ConnectorContext) -> None:
        super().start(settings, context)
        self._dialect = dialect_from(settings)
        self._has_query = bool(query_of({each: settings.text(each) for each in ("query", "query.masked")}))
        self._tables: list[str] = []
        if not self._has_query:
            self._tables = self._connected()
            if not self._tables:
                log.warning(
                    "%s: no table is found, so there are no tasks: look at table.whitelist, schema.pattern,"
                    " table.types and the rights of the user; the next look is in %d ms",
                    context.connector, settings.integer("table.poll.interval.ms"),
                )  # fmt: skip
            threading.Thread(target=self._watch, name=f"{context.connector}-tables", daemon=True).start()

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return source_errors(config)

    def exactly_once_support(self, config: Mapping[str, str]) -> bool | None:
        """Bulk and timestamp send rows again after a restart. With a number no row comes twice, but writers
        may commit a smaller number after a larger one was read: that row is missed. A pass of bulk by a Spark
        job continues where it was, so each of its rows comes once."""
        if config.get("mode") == "bulk" and runs_on_spark(config):
            return True
        return None if config.get("mode") in ("incrementing", "timestamp+incrementing") else False

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        for partition, offset in offsets:
            if not isinstance(partition, dict) or not {"table", "query"} & partition.keys():
                raise ConnectError(
                    f'a partition is {{"protocol": "1", "table": …}} or {QUERY_PARTITION}, not {partition}'
                )
            for name, value in (offset or {}).items():
                if name not in OFFSET_FIELDS or not isinstance(value, int):
                    raise ConnectError(f"an offset has whole numbers {', '.join(OFFSET_FIELDS)}: {offset}")
        return True

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        config = dict(self.context.config)
        if self._has_query:
            return [config]
        groups = min(max_tasks, len(self._tables))
        return [{**config, "tables": ",".join(self._tables[index::groups])} for index in range(groups)]

    def stop(self) -> None:
        self.context.stopping.set()

    # -- tables ------------------------------------------------------------------------------------

    def _connected(self) -> list[str]:
        """The tables now; a database that is away is tried again."""
        attempts = self.settings.integer("connection.attempts")
        for attempt in range(1, attempts + 1):
            try:
                return self._look()
            except self._dialect.errors as error:
                text = f"{self._dialect.address.shown}: {str(error).strip()}"
                if attempt == attempts or not self._dialect.is_away(error):
                    raise ConnectError(f"tables cannot be listed: {text}") from error
                log.warning("attempt %d of %d: %s", attempt, attempts, text)
                self.context.stopping.wait(self.settings.integer("connection.backoff.ms") / 1000)
        return []

    def _look(self) -> list[str]:
        connection = self._dialect.connect()
        try:
            catalog, schema = self.settings["catalog.pattern"], self.settings["schema.pattern"]
            found = self._dialect.tables(connection, self.settings.entries("table.types"), catalog, schema)
        finally:
            connection.close()
        return [each.entry for each in found if is_wanted(each, self.settings)]

    def _watch(self) -> None:
        """Look for new and dropped tables; a change asks for other tasks."""
        while not self.context.stopping.wait(self.settings.integer("table.poll.interval.ms") / 1000):
            try:
                found = self._look()
            except Exception as error:
                log.warning("%s: tables cannot be listed: %s", self.context.connector, error)
                continue
            if found != self._tables:
                self._tables = found
                self.context.reconfigure()


def is_wanted(table: TableId, settings: Settings) -> bool:
    """Lists of names take the table's name alone or with what comes before it; others are patterns."""
    names = {".".join(table.parts[start:]) for start in range(len(table.parts))}
    if listed := settings.entries("table.whitelist"):
        return bool(names & set(listed))
    if names & set(settings.entries("table.blacklist")):
        return False
    if patterns := settings.entries("table.include.list"):
        return any(re.fullmatch(each, name) for each in patterns for name in names)
    return not any(
        re.fullmatch(each, name) for each in settings.entries("table.exclude.list") for name in names
    )
