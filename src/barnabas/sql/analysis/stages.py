"""A query while it is built: a stream or table of the plan, and the names that expressions may use there.

`Reader` begins with a source; joins, filters and aggregations give the next stage. Does not know: SELECT.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.plans import expressions as e
from barnabas.plans.windows import SessionWindows, TimeWindows
from barnabas.sql.analysis.context import Context
from barnabas.sql.analysis.explaining import Step
from barnabas.sql.analysis.serdes import ROW_BYTES, RowSerde
from barnabas.sql.analysis.times import RowTime
from barnabas.sql.analysis.work import TopicRows
from barnabas.sql.expressions.nodes import Guarded, Headers, KeyColumn
from barnabas.sql.expressions.scopes import Place, Scope, Visible
from barnabas.sql.metastore.metastore import DataSource
from barnabas.sql.metastore.schemas import (
    PSEUDO_COLUMNS,
    ROWTIME,
    WINDOWEND,
    WINDOWSTART,
    Column,
    Format,
    WindowedKeys,
)
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.statements import Role
from barnabas.sql.types.sql_types import BIGINT, SqlType
from barnabas.streams.dsl.builder import StreamsBuilder
from barnabas.streams.dsl.streams import KStream
from barnabas.streams.dsl.tables import KTable
from barnabas.streams.serdes.formats import WindowedSerde

PSEUDO_NODES: dict[str, e.Expression] = {
    "ROWTIME": e.Meta("timestamp"),
    "ROWPARTITION": e.Meta("partition"),
    "ROWOFFSET": e.Meta("offset"),
}


@dataclass(frozen=True, slots=True, eq=False)
class KeyPart:
    """A column of the current key. `same` are the expressions that have its value, in the order in which
    they are looked for in a projection; `name` is the column's if none is selected."""

    name: str
    kind: SqlType
    same: tuple[tree.Expression, ...]


@dataclass(frozen=True)
class Stage:
    """`what_key` names the key's origin in errors: a key column, the grouping expression."""

    flow: KStream | KTable
    scope: Scope
    key: tuple[KeyPart, ...]
    key_format: Format
    sources: tuple[DataSource, ...]
    aliases: tuple[str, ...]
    window: WindowedKeys | None = None
    partitions: int | None = None
    what_key: str = "key column"
    step: Step = field(default_factory=lambda: Step("SOURCE"))

    @property
    def is_table(self) -> bool:
        return isinstance(self.flow, KTable)

    @property
    def is_join(self) -> bool:
        return len(self.sources) > 1

    def after(self, flow: Any, name: str, logger: str = "", **changes: Any) -> Stage:
        """The next stage, with its step for EXPLAIN."""
        changed = replace(self, flow=flow, **changes)
        return replace(changed, step=Step(name, str(schema_text(changed)), logger, (self.step,)))


def schema_text(stage: Stage) -> str:
    keys = [f"`{part.name}` {part.kind} KEY" for part in stage.key]
    others = [
        f"`{each.name}` {each.kind}"
        for each in stage.scope.columns
        if each.place in (Place.VALUE, Place.HEADERS)
    ]
    return ", ".join([*keys, *others])


def dsl_windows(window: WindowedKeys) -> TimeWindows | SessionWindows:
    """The windows as far as bytes of keys need them."""
    if window.kind == "SESSION" or window.size_ms is None:
        return SessionWindows(1)
    return TimeWindows(window.size_ms, window.size_ms)


def key_serde(form: Format, columns: tuple[Column, ...], window: WindowedKeys | None) -> Any:
    serde = RowSerde(form, columns, True)
    return serde if window is None else WindowedSerde(serde, dsl_windows(window))


def rows_of(source: DataSource) -> TopicRows:
    return TopicRows(
        source.name,
        source.is_table,
        source.topic,
        source.schema,
        source.key_format,
        source.value_format,
        source.window,
        source.timestamp,
    )


def visible_columns(source: DataSource, alias: str) -> tuple[Visible, ...]:
    """All columns of a source that expressions may name: its own, pseudo columns, bounds of its windows."""
    found: list[Visible] = []
    keys = [column.name for column in source.schema.key]
    for column in source.schema:
        node: e.Expression
        if column.is_key:
            place, node = Place.KEY, KeyColumn(keys.index(column.name), column.name, column.kind)
        elif column.role == Role.HEADERS:
            place, node = Place.HEADERS, Headers(column.header)
        else:
            place, node = Place.VALUE, e.Column(column.name)
        found.append(Visible(column.name, column.kind, node, alias, place))
    if source.window is not None:
        found.append(Visible(WINDOWSTART, BIGINT, e.Meta("window_start"), alias, Place.WINDOW))
        found.append(Visible(WINDOWEND, BIGINT, e.Meta("window_end"), alias, Place.WINDOW))
    for name, kind in PSEUDO_COLUMNS.items():
        found.append(Visible(name, kind, PSEUDO_NODES[name], alias, Place.PSEUDO))
    return tuple(found)


def read(source: DataSource, alias: str, builder: StreamsBuilder, context: Context, query_id: str) -> Stage:
    """The stage of a source."""
    keys = key_serde(source.key_format, source.schema.key, source.window)
    values = RowSerde(source.value_format, source.schema.value, False)
    stamp = None
    if source.timestamp is not None:
        column = source.schema.find(source.timestamp.name)
        assert column is not None
        places = [each.name for each in source.schema.key]
        index = places.index(column.name) if column.name in places else None
        stamp = RowTime(column.name, column.kind, source.timestamp.pattern, index)
    flow: KStream | KTable
    if source.is_table:
        flow = builder.table(source.topic, key=keys, value=values, timestamp=stamp)
    else:
        flow = builder.stream(source.topic, key=keys, value=values, timestamp=stamp)
        flow = flow.filter(e.Unary("is not null", e.Whole("value")))
    parts = tuple(
        KeyPart(column.name, column.kind, (tree.Name(column.name, alias),)) for column in source.schema.key
    )
    stage = Stage(
        flow,
        Scope(visible_columns(source, alias)),
        parts,
        source.key_format,
        (source,),
        (alias,),
        source.window,
        context.partitions(source.topic),
    )
    step = Step("SOURCE", schema_text(stage), f"{query_id}.{'KsqlTopic'}.Source")
    return replace(stage, step=step)


def carried(stage: Stage, wanted: set[str] | None) -> Stage:
    """The stage with all columns that are wanted in the row itself, as ALIAS_NAME: as a join needs them.

    `wanted` None: all but ROWPARTITION and ROWOFFSET."""
    fields: list[tuple[str, e.Expression]] = []
    columns: list[Visible] = []
    for each in stage.scope.columns:
        is_pseudo = each.place == Place.PSEUDO and each.name != ROWTIME
        if (wanted is None and is_pseudo) or (wanted is not None and each.name not in wanted):
            continue
        name = f"{each.source}_{each.name}"
        fields.append((name, each.node))
        columns.append(replace(each, node=e.Column(name)))
    row = e.Struct(tuple(fields))
    flow = stage.flow.map_values(row, value=ROW_BYTES, with_key=True)
    return replace(stage, flow=flow, scope=Scope(tuple(columns)))


def filtered(stage: Stage, condition: e.Expression, logger: str, text: str) -> Stage:
    guarded = Guarded(condition, f"Error computing expression {text}", logger)
    flow: KStream | KTable
    if isinstance(stage.flow, KTable):
        flow = stage.flow.filter(guarded, is_quiet=True)
    else:
        flow = stage.flow.filter(guarded)
    return stage.after(flow, "FILTER", logger)
