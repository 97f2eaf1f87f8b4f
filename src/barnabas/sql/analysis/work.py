"""The work of an engine for a statement, as values: `Prepared.work` is a `QueryWork` or None.

| statement | `kind` | set |
| --- | --- | --- |
| CREATE … AS, INSERT INTO … SELECT | PERSISTENT | `plan`, `sink`, `sources` |
| CREATE SOURCE TABLE | SOURCE_TABLE | `sources`: its topic is read for pull queries |
| SELECT … EMIT | PUSH | `plan`, `result`, `sources` |
| SELECT on a stream without EMIT | STREAM_PULL | the same |
| SELECT on a table without EMIT | PULL | `pull`, `result`, `sources` |
| INSERT … VALUES | INSERT | `insert` |
| all others | | no work |

The plan of a PUSH writes its rows to the topic `RESULT_TOPIC`, which does not exist: an engine catches them
there, key and value as `ROW_BYTES`, and `result_row` makes rows of them. Formats in a plan are named only:
`serdes.bind` gives them code. Does not know: bytes, brokers, Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from barnabas.plans.expressions import Expression
from barnabas.plans.plan import Plan
from barnabas.plans.windows import Windowed
from barnabas.sql.execution.port import Row
from barnabas.sql.metastore.schemas import Format, Schema, TimestampColumn, WindowedKeys

RESULT_TOPIC = "__result_rows"


class WorkKind(StrEnum):
    PERSISTENT = "PERSISTENT"
    SOURCE_TABLE = "SOURCE_TABLE"
    PUSH = "PUSH"
    STREAM_PULL = "STREAM_PULL"
    PULL = "PULL"
    INSERT = "INSERT"


@dataclass(frozen=True, slots=True)
class TopicRows:
    """A topic whose records are rows: of a source that is read, or of a sink that is written.

    `schema` has key, value and header columns. A sink's `timestamp` is set already by the plan."""

    name: str
    is_table: bool
    topic: str
    schema: Schema
    key_format: Format
    value_format: Format
    window: WindowedKeys | None = None
    timestamp: TimestampColumn | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """One end of a range. `value` is of the key column's type, or milliseconds for window bounds."""

    value: Any
    is_inclusive: bool


@dataclass(frozen=True, slots=True)
class Range:
    """Values between two ends; None: open."""

    low: Bound | None = None
    high: Bound | None = None


@dataclass(frozen=True, slots=True)
class PullRead:
    """The rows of a table that a pull query reads: those under `keys` (tuples as in a plan) or with the first
    key column in `key_range`; without both it scans. Windows whose start and end lie in the ranges. Reading
    ends after `limit` rows that match.

    Each row found goes through `where` and `columns` (`analysis/pulls.py` has `puller`, which does both):
    the lookup only narrows down, `where` has the whole condition."""

    table: TopicRows
    columns: tuple[tuple[str, Expression], ...]
    where: Expression | None = None
    keys: tuple[tuple[Any, ...], ...] | None = None
    key_range: Range | None = None
    window_start: Range = Range()
    window_end: Range = Range()
    limit: int | None = None

    @property
    def is_scan(self) -> bool:
        return self.keys is None and self.key_range is None


@dataclass(frozen=True, slots=True)
class InsertRow:
    """The record of INSERT … VALUES. `value` None writes a tombstone (a bare single null)."""

    target: TopicRows
    key: tuple[Any, ...] | None
    value: Mapping[str, Any] | None
    timestamp_ms: int


# The place of a result's column in the key of a tombstone: an index, "start", "end", or None.
KeyPlace = int | str | None


@dataclass(frozen=True, slots=True)
class Result:
    """Rows that go to the caller. `key_places` has an entry for each column of `schema`."""

    schema: Schema
    is_table: bool
    key_places: tuple[KeyPlace, ...] = ()
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class QueryWork:
    """`application_id` is the consumer group and the prefix of internal topics. `partitions` is how many
    partitions the plan's source topics have, by topic (topics of sinks that were just created included).
    `execution_plan` and `topology` are texts for EXPLAIN."""

    kind: WorkKind
    query_id: str | None = None
    application_id: str = ""
    sources: tuple[TopicRows, ...] = ()
    plan: Plan | None = None
    sink: TopicRows | None = None
    result: Result | None = None
    pull: PullRead | None = None
    insert: InsertRow | None = None
    partitions: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    execution_plan: str = ""
    topology: str = ""

    @property
    def is_stateless(self) -> bool:
        """Whether the plan is one sub-topology without stores: it can run where its rows are wanted."""
        return self.plan is not None and not self.plan.stores and len(self.plan.subtopologies) == 1


def result_row(result: Result, key: Any, value: Mapping[str, Any] | None) -> Row:
    """A row for the caller from the key and value that the plan wrote to `RESULT_TOPIC`."""
    if value is not None:
        return Row([value[column.name] for column in result.schema])
    return Row([_of_key(place, key) for place in result.key_places], is_tombstone=True)


def _of_key(place: KeyPlace, key: Any) -> Any:
    if isinstance(key, Windowed):
        if place == "start":
            return key.start
        if place == "end":
            return key.end
        key = key.key
    return key[place] if isinstance(place, int) and key is not None else None
