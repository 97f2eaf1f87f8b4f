"""The table that keeps the offsets of a sink's topics, written in the transaction of the rows.

In a transaction `locked` comes first: it locks the rows of the partitions, so of two tasks that believe to
own a partition the second one sees what the first has written, and leaves those records out. Does not know:
records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.connectors.databases.catalogue import TableId
from barnabas.connect.connectors.databases.dialect import Dialect
from barnabas.connect.plugins import RetriableError

KEYS = ("connector", "topic", "part")


@dataclass(frozen=True, slots=True)
class StoredOffsets:
    """The rows of one connector."""

    dialect: Dialect
    table: str
    connector: str

    def create(self, connection: Any) -> None:
        text = self.dialect.KEY_TEXT if self.dialect.KEY_TEXT != "TEXT" else "VARCHAR(249)"
        self.dialect.execute(
            connection,
            f"CREATE TABLE IF NOT EXISTS {self.dialect.quoted(self.table)} (connector {text} NOT NULL,"
            f" topic {text} NOT NULL, part INTEGER NOT NULL, next_offset BIGINT NOT NULL,"
            f" PRIMARY KEY ({', '.join(KEYS)}))",
        )

    def read(self, connection: Any) -> dict[TopicPartition, int]:
        name = self.dialect.quoted(self.table)
        query = f"SELECT topic, part, next_offset FROM {name} WHERE connector = %s"
        found = self.dialect.fetch(connection, query, (self.connector,))
        return {TopicPartition(topic, part): offset for topic, part, offset in found}

    def locked(self, connection: Any, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The next offsets of partitions. Their rows are locked until the transaction ends."""
        name, found = self.dialect.quoted(self.table), {}
        where = " AND ".join(f"{self.dialect.quoted(each)} = %s" for each in KEYS)
        query = f"SELECT next_offset FROM {name} WHERE {where}{self.dialect.LOCKS}"
        for place in sorted(places):
            key = (self.connector, place.topic, place.partition)
            rows = self.dialect.fetch(connection, query, key)
            found[place] = int(rows[0][0]) if rows else self._begun(connection, key)
        return found

    def _begun(self, connection: Any, key: Sequence[Any]) -> int:
        """A row for a partition that has none. Another task may have made it in this moment."""
        statement = self.dialect.insert(TableId("", "", self.table), (*KEYS, "next_offset"), {})
        try:
            self.dialect.execute(connection, statement, (*key, 0))
        except self.dialect.errors as error:
            if not self.dialect.is_data_error(error):
                raise
            raise RetriableError(f"another task has begun to write {key[1]}-{key[2]}") from error
        return 0

    def store(self, connection: Any, offsets: Mapping[TopicPartition, int]) -> None:
        statement = self.dialect.upsert(TableId("", "", self.table), KEYS, ("next_offset",), {})
        rows = [(self.connector, each.topic, each.partition, end) for each, end in sorted(offsets.items())]
        if rows:
            self.dialect.execute_many(connection, statement, rows)

    def forget(self, connection: Any, places: Iterable[TopicPartition]) -> None:
        statement = self.dialect.delete(TableId("", "", self.table), KEYS, {})
        for each in places:
            self.dialect.execute(connection, statement, (self.connector, each.topic, each.partition))
