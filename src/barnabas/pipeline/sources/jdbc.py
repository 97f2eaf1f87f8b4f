"""A table of a database over JDBC: queries, and rows that several connections read side by side.

In: the source, conditions in SQL. Out: frames, single values. Connections share the rows by ranges of a
column of whole numbers: `split_by`, the growing column, or the primary key. Without one, or for few rows, one
connection reads all. Does not know: modes, positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.engine.errors import NeedsDecision
from barnabas.engine.secrets import reveal, revealed
from barnabas.pipeline.spec.model import TableSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DRIVERS = {
    "jdbc:postgresql:": "org.postgresql.Driver",
    "jdbc:sqlite:": "org.sqlite.JDBC",
    "jdbc:mysql:": "com.mysql.cj.jdbc.Driver",
}
# Without it MySQL's driver holds all rows of a query in memory, whatever the fetch size is.
CONNECTION_OPTIONS = {"jdbc:mysql:": {"useCursorFetch": "true"}}
PRIMARY_KEYS = {
    "jdbc:postgresql:": "SELECT a.attname AS name FROM pg_index i JOIN pg_attribute a"
    " ON a.attrelid = i.indrelid AND a.attnum = ANY(i.indkey)"
    " WHERE i.indrelid = to_regclass({table}) AND i.indisprimary",
    "jdbc:sqlite:": "SELECT name FROM pragma_table_info({table}) WHERE pk > 0",
    "jdbc:mysql:": "SELECT column_name AS name FROM information_schema.key_column_usage"
    " WHERE constraint_name = 'PRIMARY' AND table_schema = coalesce({database}, database())"
    " AND table_name = {table}",
}
FETCH_ROWS = 10_000
NUMBERS_PER_CONNECTION = 50_000  # a smaller range is not worth a connection of its own
WHOLE_NUMBERS = ("byte", "short", "integer", "long")


class Split(NamedTuple):
    """Ranges of a column, one for each connection."""

    column: str
    low: int
    high: int
    connections: int


class JdbcTable:
    def __init__(self, spark: SparkSession, source: TableSource) -> None:
        self._spark = spark
        self._source = source
        self._custom: str | None = None
        self._split_column: str | None = None  # empty: there is none

    # -- queries -----------------------------------------------------------------------------------

    def query(self, query: str, **options: str) -> DataFrame:
        return self._load({"query": query, **options})

    def _load(self, options: dict[str, str]) -> DataFrame:
        url = reveal(self._source.url)
        prefix = next((each for each in DRIVERS if url.startswith(each)), None)
        if prefix is None:
            raise NeedsDecision(
                f"source {self._source.name}: there is no driver for {url.partition('//')[0]}"
            )
        given = {
            "url": url,
            "driver": DRIVERS[prefix],
            "fetchsize": str(FETCH_ROWS),
            **CONNECTION_OPTIONS.get(prefix, {}),
            **options,
        }
        for name, value in (("user", self._source.user), ("password", self._source.password)):
            if value:
                given[name] = reveal(value)
        return self._spark.read.format("jdbc").options(**given, **revealed(self._source.settings)).load()

    def one(self, query: str, types: str) -> Any:
        """One value. The type is given, because SQLite's driver knows types of expressions only if there
        is a row."""
        row = self.query(query, customSchema=types).first()
        return None if row is None else row[0]

    def count(self, what: str) -> int:
        return int(self.one(f"SELECT count(*) AS n FROM {what}", "n BIGINT") or 0)

    def quoted(self, name: str) -> str:
        mark = "`" if self._is("jdbc:mysql:") else '"'
        return f"{mark}{name.replace(mark, mark * 2)}{mark}"

    def text(self, expression: str) -> str:
        kind = "CHAR" if self._is("jdbc:mysql:") else "TEXT"
        return f"CAST({expression} AS {kind})"

    def _is(self, prefix: str) -> bool:
        return reveal(self._source.url).startswith(prefix)

    # -- rows --------------------------------------------------------------------------------------

    def rows(self, where: str, split: Split | None = None) -> DataFrame:
        """The rows of a condition; all rows if it is empty."""
        query = f"SELECT * FROM {self._source.table}" + (f" WHERE {where}" if where else "")
        if self._custom is None:
            self._custom = self._custom_types(query)
        options = {"customSchema": self._custom} if self._custom else {}
        if split is None:
            return self.query(query, **options)
        return self._load(
            {
                "dbtable": f"({query}) barnabas",
                # Spark quotes it for the database; rows without a value are in the first range.
                "partitionColumn": split.column,
                "lowerBound": str(split.low),
                "upperBound": str(split.high + 1),
                "numPartitions": str(split.connections),
                **options,
            }
        )

    def split(self, where: str = "") -> Split | None:
        """How connections share the rows of a condition; None if one reads them all."""
        if self._source.connections == 1 or not (name := self._column()):
            return None
        column = self.quoted(name)
        condition = f" WHERE {where}" if where else ""
        bounds = f"SELECT min({column}) AS low, max({column}) AS high FROM {self._source.table}{condition}"
        found = self.query(bounds, customSchema="low BIGINT, high BIGINT").first()
        if found is None or found[0] is None:
            return None
        low, high = int(found[0]), int(found[1])
        connections = min(self._source.connections, (high - low) // NUMBERS_PER_CONNECTION + 1)
        return Split(name, low, high, connections) if connections > 1 else None

    def _column(self) -> str:
        """The column whose ranges connections share; empty if there is none of whole numbers."""
        if self._split_column is None:
            named = self._source.split_by or self._source.incrementing or self._primary_key()
            kinds = {each.name: each.dataType.typeName() for each in self.rows("").schema.fields}
            if self._source.split_by and kinds.get(named) not in WHOLE_NUMBERS:
                found = f"of type {kinds[named]}" if named in kinds else "not there"
                raise NeedsDecision(
                    f"source {self._source.name}: split_by: the column {named} is {found}:"
                    " name a column of whole numbers, or set connections to 1"
                )
            self._split_column = named if kinds.get(named) in WHOLE_NUMBERS else ""
        return self._split_column

    def _primary_key(self) -> str:
        """The column of the primary key; empty if there is none, or if it has several columns."""
        prefix = next(each for each in PRIMARY_KEYS if self._is(each))
        database, _, table = self._source.table.rpartition(".")
        given = {"table": self._source.table, "database": ""}
        if prefix == "jdbc:mysql:":
            given = {"table": table.strip("`"), "database": database.strip("`")}
        literals = {name: literal(value) if value else "NULL" for name, value in given.items()}
        found = self.query(PRIMARY_KEYS[prefix].format(**literals), customSchema="name STRING").collect()
        return str(found[0][0]) if len(found) == 1 else ""

    def _custom_types(self, query: str) -> str:
        """SQLite stores times as text of any form and integers of 64 bits, whatever the column declares."""
        if not self._source.address.startswith("jdbc:sqlite:"):
            return ""
        kinds = {"timestamp": "STRING", "date": "STRING", "integer": "BIGINT"}
        fields = [(each.name, each.dataType.typeName()) for each in self.query(query).schema.fields]
        return ", ".join(f"`{name}` {kinds[kind]}" for name, kind in fields if kind in kinds)


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
