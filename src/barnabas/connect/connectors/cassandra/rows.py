"""Statements of Cassandra for records: a prepared INSERT and DELETE for each table, and values bound to them.

Each statement has its own timestamp, so the order in which statements were made decides, not the one in
which they arrive (decision 0079). Does not know: sessions of tasks, retries.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from cassandra import ConsistencyLevel
from cassandra.query import UNSET_VALUE, BoundStatement, PreparedStatement

from barnabas.connect.connectors.cassandra.cql_types import MICROSECONDS, converted
from barnabas.connect.connectors.cassandra.mapping import TIMESTAMP, TTL, Source, quoted
from barnabas.connect.connectors.cassandra.tables import TableRule
from barnabas.connect.data import DataError, Record

TTL_S_MAX = 20 * 365 * 86_400  # what Cassandra allows


class Clock:
    """Microseconds that only grow: the timestamps of this task's statements."""

    def __init__(self) -> None:
        self._last = 0

    def next(self) -> int:
        self._last = max(self._last + 1, time.time_ns() // 1000)
        return self._last


class TableRows:
    """Statements for one table."""

    def __init__(
        self, session: Any, rule: TableRule, keys: Sequence[str], clock: Clock, *, from_records: bool
    ):
        self._rule = rule
        self._clock = clock
        self._from_records = from_records
        self._keys = set(keys)
        mapping = rule.mapping
        if missing := [each for each in keys if each not in mapping.columns and not rule.query]:
            raise DataError(f"the mapping of {rule.name} misses {', '.join(missing)} of the primary key")
        self._others = [name for name in mapping.bound if name not in self._keys]
        self.groups = not rule.query  # whether statements may share a batch
        self.insert = self._prepared(session, rule.query or self._insert_text())
        self._delete: PreparedStatement | None = None
        if rule.deletes:
            where = " AND ".join(f"{quoted(each)} = ?" for each in keys)
            text = f"DELETE FROM {rule.name} USING TIMESTAMP ? WHERE {where}"
            self._delete = self._prepared(session, text)
            self._delete_names = [TIMESTAMP, *keys]

    @property
    def name(self) -> str:
        return self._rule.name

    def _prepared(self, session: Any, text: str) -> PreparedStatement:
        found = session.prepare(text)
        found.consistency_level = ConsistencyLevel.name_to_value[self._rule.consistency]
        return found

    def _insert_text(self) -> str:
        columns = self._rule.mapping.columns
        values = [source.root if source.is_function else "?" for source in columns.values()]
        self._insert_names = [*self._rule.mapping.bound, TTL, TIMESTAMP]
        names = ", ".join(quoted(each) for each in columns)
        into = f"INSERT INTO {self._rule.name} ({names}) VALUES ({', '.join(values)})"
        return f"{into} USING TTL ? AND TIMESTAMP ?"

    def bound(self, record: Record) -> BoundStatement:
        """The statement of a record: a deletion if all columns outside of the key are null. DataError if the
        record does not fit the table."""
        values = self._values(record)
        if self._rule.query:
            return self._with_names(values)
        is_gone = bool(self._others) and all(values[name] is None for name in self._others)
        return self._deletion(record, values) if is_gone and self._delete else self._insertion(record, values)

    def bound_whole(self, record: Record) -> BoundStatement:
        """The same where only a record without a value deletes."""
        values = self._values(record)
        if record.value is not None:
            return self._insertion(record, values)
        if self._delete is None:
            raise DataError("the record has no value, and cassandra.deletes.enabled=false")
        return self._deletion(record, values)

    def _values(self, record: Record) -> dict[str, Any]:
        mapping = self._rule.mapping
        values = {name: mapping.columns[name].of(record) for name in mapping.bound}
        for name in () if self._rule.query else self._keys & values.keys():
            if values[name] is None:
                raise DataError(f"the column {name} of the primary key of {self.name} would be null")
        return values

    def _insertion(self, record: Record, values: dict[str, Any]) -> BoundStatement:
        more = {TTL: self._ttl(record), TIMESTAMP: self._timestamp(record)}
        return self._bind(self.insert, self._insert_names, values | more)

    def _deletion(self, record: Record, values: dict[str, Any]) -> BoundStatement:
        assert self._delete is not None
        return self._bind(self._delete, self._delete_names, values | {TIMESTAMP: self._timestamp(record)})

    def _with_names(self, values: dict[str, Any]) -> BoundStatement:
        """A query of the user: its parameters are the names of the mapping."""
        names = [each.name for each in self.insert.column_metadata]
        if missing := [each for each in names if each not in values]:
            raise DataError(
                f"the query of {self._rule.name} has the parameter {missing[0]}, the mapping has not"
            )
        return self._bind(self.insert, names, values)

    def _bind(
        self, statement: PreparedStatement, names: Sequence[str], values: dict[str, Any]
    ) -> BoundStatement:
        found = []
        for name, column in zip(names, statement.column_metadata, strict=True):
            value = values[name]
            if value is None:
                is_unset = self._rule.null_to_unset or name == TTL
                found.append(UNSET_VALUE if is_unset else None)
                continue
            try:
                found.append(converted(value, column.type, self._rule.codec))
            except DataError as error:
                raise DataError(f"column {name} of {self._rule.name}: {error}") from error
        try:
            return statement.bind(found)
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise DataError(f"the record does not fit {self._rule.name}: {error}") from error

    def _ttl(self, record: Record) -> int | None:
        source = self._rule.mapping.ttl
        if source is None:
            return self._rule.ttl_s if self._rule.ttl_s > 0 else None
        given = self._number(source, record, TTL)
        if given is None:
            return None
        seconds = int(given * MICROSECONDS[self._rule.ttl_unit] // 1_000_000)
        if not 0 <= seconds <= TTL_S_MAX:
            raise DataError(f"{TTL} is {seconds} seconds: 0 to {TTL_S_MAX} are possible")
        return seconds

    def _timestamp(self, record: Record) -> int:
        source = self._rule.mapping.timestamp
        given = None if source is None else self._number(source, record, TIMESTAMP)
        if given is not None:
            return int(given * MICROSECONDS[self._rule.timestamp_unit])
        if self._from_records and record.timestamp is not None:
            return record.timestamp * 1000 + (record.offset or 0) % 1000
        return self._clock.next()

    def _number(self, source: Source, record: Record, name: str) -> int | None:
        value = source.of(record)
        if value is None:
            return None
        if hasattr(value, "timestamp"):
            return int(value.timestamp() * 1_000_000 / MICROSECONDS[self._rule.timestamp_unit])
        try:
            return int(value.decode() if isinstance(value, bytes) else value)
        except (TypeError, ValueError, UnicodeDecodeError) as error:
            raise DataError(f"{name} is {value!r:.60}, and must be a whole number") from error
