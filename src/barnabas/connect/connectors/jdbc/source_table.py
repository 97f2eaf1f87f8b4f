"""One table or query of a JDBC source: it is read when it is due, batch by batch.

In: a dialect, settings, a position. Out: batches of rows with the positions that they reach. The
columns are read
with each query, so a table that changes is followed. Does not know: topics of Kafka, the worker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from barnabas.connect.config import Settings
from barnabas.connect.connectors.databases.catalogue import ColumnInfo, SqlType, TableId
from barnabas.connect.connectors.databases.dialect import Dialect, Row, escaped
from barnabas.connect.connectors.jdbc.column_mappings import position_columns
from barnabas.connect.connectors.jdbc.column_types import Mapping, TableShape, moment
from barnabas.connect.connectors.jdbc.queries import Criteria, Position, reached
from barnabas.connect.plugins import ConnectError, RetriableError

QUERY = "barnabas_query"  # the name of a query in FROM
NUMBERS = (
    SqlType.TINYINT,
    SqlType.SMALLINT,
    SqlType.INTEGER,
    SqlType.BIGINT,
    SqlType.NUMERIC,
    SqlType.DECIMAL,
)


class Found(NamedTuple):
    """Rows of one batch."""

    shape: TableShape
    rows: list[Row]
    position: Position


@dataclass(slots=True)
class SourceTable:
    """`table` is None for a query. `due_s` is when it is read next."""

    dialect: Dialect
    settings: Settings
    table: TableId | None
    topic: str
    partition: dict[str, Any]
    position: Position
    due_s: float = 0.0
    _batches: Iterator[Found] | None = field(default=None)

    def next(self, connection: Any) -> Found | None:
        """The next batch of the running query, or the first of a new one; None: there are no more rows."""
        if self._batches is None:
            self._batches = self._query(connection)
        found = next(self._batches, None)
        if found is None:
            self._batches = None
        else:
            self.position = found.position
        return found

    def reset(self) -> None:
        """Forget a query that is not finished; the next one begins behind the rows that were returned."""
        self._batches = None

    def _query(self, connection: Any) -> Iterator[Found]:
        dialect, settings = self.dialect, self.settings
        zone = ZoneInfo(settings.text("db.timezone"))
        columns = self._columns(connection)
        criteria, times, number = self._criteria(columns)
        until = None
        if criteria.times:
            until = dialect.now(connection) - timedelta(
                milliseconds=settings.integer("timestamp.delay.interval.ms")
            )
        typed = self._described(connection) if times and self.table is None else columns
        condition, values = criteria.where(self._start(until), until, binder(dialect, typed, times, zone))
        statement = self._statement(condition, has_values=bool(values))
        size = settings.integer("batch.max.rows")
        described, rows = dialect.stream(connection, statement, values, size)
        if columns:
            columns = self._read_columns(columns, described)
        mapping = Mapping(numeric_mapping(settings), settings.text("timestamp.granularity"), zone)
        keyed = settings.flag("barnabas.key.from.table")
        shape = TableShape.of(
            self.table.name if self.table else None, columns or described, mapping, keyed=keyed
        )
        yield from self._batched(shape, rows, times, number)
        connection.rollback()

    def _batched(
        self, shape: TableShape, rows: Iterator[list[Row]], times: list[str], number: str
    ) -> Iterator[Found]:
        """Each batch waits for the next one, whose first time says which times are complete."""
        names = [each.name.lower() for each in shape.columns]
        try:
            places = [names.index(each.lower()) for each in times]
            place = names.index(number.lower()) if number else -1
        except ValueError:
            raise ConnectError(
                f"{self.topic}: the result has no column {number or times}: it has {names}"
            ) from None

        def time_of(row: Row) -> datetime:
            found = next((each for each in places if row[each] is not None), None)
            if found is None:
                raise ConnectError(f"{self.topic}: a row has no time in {', '.join(times)}")
            try:
                return moment(row[found], shape.mapping.zone_of(shape.columns[found]))
            except ValueError:
                name = shape.columns[found].name
                raise ConnectError(
                    f"{self.topic}: a row has {row[found]} in {name}, which is no time to go on from:"
                    " take a query that leaves such rows out, or another column"
                ) from None

        position = self.position
        waiting = next(rows, None)
        while waiting is not None:
            following = next(rows, None)
            seen = [time_of(row) for row in waiting] if places else []
            after = time_of(following[0]) if places and following else None
            numbers = [int(row[place]) for row in waiting] if place >= 0 else []
            position = reached(position, seen, numbers, after)
            yield Found(shape, waiting, position)
            waiting = following

    def _statement(self, condition: str, *, has_values: bool) -> str:
        """The whole statement. A query with a condition is a subselect, so it may have its own WHERE."""
        if self.table is not None:
            statement = f"SELECT * FROM {self.dialect.table_name(self.table)}"
        else:
            statement = f"SELECT * FROM ({self._text()}) {QUERY}" if condition else self._text()
        suffix = self.settings.text("query.suffix")
        suffix = f" {suffix}" if suffix else ""
        if has_values:
            return f"{escaped(statement)}{condition}{escaped(suffix)}"
        return f"{statement}{condition.replace('%%', '%')}{suffix}"

    def _described(self, connection: Any) -> list[ColumnInfo]:
        """The columns of a query, which has no catalogue."""
        statement = f"SELECT * FROM ({self._text()}) {QUERY} WHERE 1 = 0"
        columns, rows = self.dialect.stream(connection, statement, (), 1)
        next(rows, None)
        return columns

    def _text(self) -> str:
        return (self.settings.text("query") or self.settings.text("query.masked")).strip().rstrip(";")

    def _start(self, until: datetime | None) -> Position:
        initial = self.settings["timestamp.initial"]
        if until is None or initial is None or self.position.time is not None:
            return self.position
        return Position(until) if initial == -1 else Position.of({"timestamp": initial})

    def _columns(self, connection: Any) -> list[ColumnInfo]:
        """Columns of the catalogue; none for a query."""
        if self.table is None:
            return []
        found = self.dialect.columns(connection, self.table)
        if not found:
            raise RetriableError(f"the table {self.table} is not there any more, or may not be read")
        return found

    def _read_columns(self, columns: list[ColumnInfo], described: list[ColumnInfo]) -> list[ColumnInfo]:
        """The columns of the catalogue that the query gives, in its order. The table may have changed between
        both questions."""
        by_name = {each.name: each for each in columns}
        new = [each.name for each in described if each.name not in by_name]
        if new:
            raise RetriableError(
                f"the table {self.table} got the columns {', '.join(new)} while it was asked"
            )
        return [by_name[each.name] for each in described]

    def _criteria(self, columns: list[ColumnInfo]) -> tuple[Criteria, list[str], str]:
        settings = self.settings
        times, number = position_columns(settings, self.table)
        if "incrementing" in settings.text("mode") and not number:
            number = growing_column(columns, self.table)
        by_name = {each.name.lower(): each for each in columns}
        for name in [*times, *([number] if number else [])] if columns else []:
            info = by_name.get(name.lower())
            if info is None:
                raise ConnectError(
                    f"the table {self.table} has no column {name}: it has"
                    f" {', '.join(each.name for each in columns)}"
                )
            is_loose = info.nullable and (name == number or len(times) == 1)
            if is_loose and settings.flag("validate.non.null"):
                raise ConnectError(
                    f"the column {name} of {self.table} may be null, so rows could be missed:"
                    " declare it NOT NULL, or"
                    " set validate.non.null=false"
                )
        actual = {name: by_name[name.lower()].name if columns else name for name in [*times, number] if name}
        quoted = {each: escaped(self.dialect.quoted(name)) for each, name in actual.items()}
        named = Criteria(tuple(quoted[each] for each in times), quoted[number] if number else "")
        return named, times, number


def growing_column(columns: list[ColumnInfo], table: TableId | None) -> str:
    """The one column that the database counts up."""
    found = [each.name for each in columns if each.auto_increment and each.type in NUMBERS]
    if len(found) != 1:
        raise ConnectError(
            f"the table {table} has {len(found)} columns that the database counts up: name one by"
            " incrementing.column.name, or take mode timestamp or bulk; a table without any such column is"
            " followed by change capture (io.debezium.connector.*)"
        )
    return found[0]


def stored_partitions(table: TableId) -> list[dict[str, Any]]:
    """The source partitions under which Confluent's source has stored the offset of a table, newest first."""
    names = dict.fromkeys([str(table), ".".join(table.parts[-2:])])
    found: list[dict[str, Any]] = [{"protocol": "1", "table": each} for each in names]
    return [*found, {"table": table.name}]


def topic_of(settings: Settings, table: TableId) -> str:
    pattern = settings.text("barnabas.topic.format")
    if not pattern:
        return settings.text("topic.prefix") + table.name
    for name, value in (("catalog", table.catalog), ("schema", table.schema), ("table", table.name)):
        pattern = pattern.replace(f"${{{name}}}", value)
    return settings.text("topic.prefix") + pattern


def numeric_mapping(settings: Settings) -> str:
    return settings.text("numeric.mapping").lower() or (
        "precision_only" if settings.flag("numeric.precision.mapping") else "none"
    )


def binder(dialect: Dialect, columns: list[ColumnInfo], times: list[str], zone: tzinfo) -> Any:
    """Times as the columns compare them."""
    wanted = {each.lower() for each in times}
    natives = {each.native for each in columns if each.name.lower() in wanted}
    native = natives.pop() if len(natives) == 1 else ""
    return lambda value: dialect.stored(value, native, zone)
