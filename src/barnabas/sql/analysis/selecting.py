"""SELECT … FROM: sources, joins, WHERE, table functions, groups, PARTITION BY and the list of columns.

In: the tree of a query. Out: `Selection`: a stream or table of the plan whose key and value are those of the
result. Does not know: whether the result goes to a topic or to the caller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from barnabas.plans import expressions as e
from barnabas.sql.analysis.aggregation import check_query, grouped
from barnabas.sql.analysis.context import Context
from barnabas.sql.analysis.joins import joined
from barnabas.sql.analysis.projection import Divided, Selected, check_reserved, divided, expanded
from barnabas.sql.analysis.serdes import ROW_BYTES, RowSerde
from barnabas.sql.analysis.stages import KeyPart, Stage, carried, filtered, read
from barnabas.sql.errors import SqlError
from barnabas.sql.expressions.nodes import ExplodedRows, Guarded, KeyColumn, NewKey
from barnabas.sql.expressions.resolving import Resolver, is_table_function
from barnabas.sql.expressions.scopes import Scope, Visible, calls_in, names_in
from barnabas.sql.expressions.typed import Typed
from barnabas.sql.metastore.metastore import DataSource
from barnabas.sql.metastore.schemas import Column, Format
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.printing import expression_text
from barnabas.sql.syntax.statements import Query, Role
from barnabas.sql.types.sql_types import NULL
from barnabas.streams.dsl.builder import StreamsBuilder
from barnabas.streams.dsl.streams import KStream

EXPLODED = "KSQL_SYNTH_"


@dataclass(frozen=True)
class Selection:
    """`stage.flow` has the stage's key, and values with the names of `parts.value`. `columns` are all columns
    of the list in their order."""

    stage: Stage
    columns: tuple[Selected, ...]
    parts: Divided


def sources_of(query: Query, context: Context) -> list[DataSource]:
    relations = [query.source, *(join.right for join in query.joins)]
    return [context.metastore.source(each.name, each.at) for each in relations]


def select(
    query: Query,
    context: Context,
    builder: StreamsBuilder,
    query_id: str,
    sink: str | None,
    key_format: Format | None = None,
) -> Selection:
    """`sink` is the name of what a persistent query makes; None for the rows of a caller. `key_format` is
    that of new keys, where the statement asks for one."""
    resolver = Resolver(Scope(()), context.metastore.types)
    before = _sources(query, context, builder, query_id, resolver)
    resolver = replace(resolver, scope=before.scope)
    if query.where is not None:
        condition = replace(resolver, clause="WHERE").condition(query.where)
        before = filtered(before, condition, f"{query_id}.WhereFilter", expression_text(query.where))
    check_query(before, query)
    if query.group_by:
        found = grouped(before, query, resolver, context, query_id, key_format, must_fit=sink is not None)
        stage, resolver = found.stage, found.resolver
    else:
        stage, resolver = _exploded(query, before, resolver, query_id)
        before = replace(before, scope=stage.scope)
    columns = expanded(query, stage, before, resolver, shows_windows=sink is None)
    key: e.Expression | None = None
    if query.partition_by:
        stage, key = _partitioned(query, stage, resolver, columns, query_id, key_format)
    if sink is None:
        parts = Divided((), tuple(columns))
    else:
        check_reserved(columns)
        parts = divided(columns, stage, sink, query.at)
    return Selection(_projected(stage, parts, key, query_id), tuple(columns), parts)


def _sources(
    query: Query, context: Context, builder: StreamsBuilder, query_id: str, resolver: Resolver
) -> Stage:
    relations = [query.source, *(join.right for join in query.joins)]
    sources = sources_of(query, context)
    stages = [
        read(source, relation.alias or relation.name, builder, context, query_id)
        for source, relation in zip(sources, relations, strict=True)
    ]
    if not query.joins:
        return stages[0]
    wanted = _wanted(query)
    stages = [carried(stage, wanted) for stage in stages]
    stage = stages[0]
    for number, (join, right) in enumerate(zip(query.joins, stages[1:], strict=True)):
        name = f"{query_id}.Join" if len(query.joins) == 1 else f"{query_id}.Join{number + 1}"
        stage = joined(stage, right, join, resolver, name)
    return stage


def _wanted(query: Query) -> set[str] | None:
    """Names of the columns that a join must carry; None for all of them."""
    expressions: list[tree.Expression] = [item.expression for item in query.items]
    if any(isinstance(each, tree.Star) for each in expressions):
        return None
    expressions += [*query.group_by, *query.partition_by, *(join.on for join in query.joins)]
    expressions += [each for each in (query.where, query.having) if each is not None]
    return {name.name for each in expressions for name in names_in(each)}


# ------------------------------------------------------------------------------------------ table functions


def _exploded(query: Query, stage: Stage, resolver: Resolver, query_id: str) -> tuple[Stage, Resolver]:
    """The stage after its table functions, and the resolver that knows their columns."""
    found = [
        call for item in query.items for call in calls_in(item.expression) if is_table_function(call.function)
    ]
    if not found:
        return stage, resolver
    if not isinstance(stage.flow, KStream):
        raise SqlError("Table source is not supported with table functions", found[0].at)
    known: list[tuple[tree.Expression, Typed]] = []
    functions: list[tuple[str, e.Expression]] = []
    for call in found:
        canonical = resolver.scope.canonical(call)
        if canonical in [each for each, _ in known]:
            continue
        if any(is_table_function(each.function) for part in call.arguments for each in calls_in(part)):
            raise SqlError(f"Table functions cannot be nested: {expression_text(call)}", call.at)
        rows = resolver.call(call)
        name = f"{EXPLODED}{len(known)}"
        node = Guarded(rows.node, f"Error computing table function {expression_text(call)}", query_id)
        functions.append((name, node))
        known.append((canonical, Typed(e.Column(name), rows.kind)))
    columns = [each.node for each in stage.scope.columns if isinstance(each.node, e.Column)]
    rows_node = ExplodedRows(tuple(functions), tuple((column.name, column) for column in columns))
    flow = stage.flow.flat_map_values(rows_node, value=ROW_BYTES, with_key=True)
    scope = resolver.scope

    def special(expression: tree.Expression) -> Typed | None:
        if not isinstance(expression, tree.Call):
            return None
        canonical = scope.canonical(expression)
        return next((typed for each, typed in known if each == canonical), None)

    return stage.after(flow, "TABLE_FUNCTION", f"{query_id}.FlatMap"), replace(resolver, special=special)


# ------------------------------------------------------------------------------------------- PARTITION BY


def _partitioned(
    query: Query,
    stage: Stage,
    resolver: Resolver,
    columns: list[Selected],
    query_id: str,
    wanted: Format | None,
) -> tuple[Stage, e.Expression | None]:
    """The stage with its new key, and the expression that makes it; None where the key stays."""
    if not isinstance(stage.flow, KStream):
        raise SqlError("PARTITION BY is not supported for tables: only a STREAM can be partitioned", query.at)
    if stage.window is not None:
        raise SqlError(
            "PARTITION BY is not supported for windowed sources: their keys have windows", query.at
        )
    form = wanted or stage.key_format
    if len(query.partition_by) == 1 and _is_null(query.partition_by[0]):
        none = Format("NONE", {}, is_wrapped=False)
        return replace(stage, key=(), key_format=none), e.Literal_(None)
    inner = replace(resolver, clause="PARTITION BY", special=None)
    parts: list[KeyPart] = []
    nodes: list[e.Expression] = []
    for index, expression in enumerate(query.partition_by):
        typed, canonical = inner.resolve(expression), resolver.scope.canonical(expression)
        if typed.kind == NULL:
            raise SqlError("Cannot PARTITION BY multiple columns including NULL", expression.at)
        name = _key_name(expression, canonical, columns, index)
        parts.append(KeyPart(name, typed.kind, (canonical,)))
        text = expression_text(expression)
        message = f"Error computing new key from expression {text}"
        nodes.append(Guarded(typed.node, message, f"{query_id}.PartitionBy"))
    is_same = len(parts) == len(stage.key) and all(
        new.same[0] in old.same for new, old in zip(parts, stage.key, strict=True)
    )
    if is_same:
        return stage, None
    if form.name == "NONE":
        form = replace(form, name="KAFKA" if len(parts) == 1 else "JSON")
    changed = replace(stage, key=tuple(parts), key_format=form, what_key="partitioning expression")
    return changed, NewKey(tuple(nodes))


def _is_null(expression: tree.Expression) -> bool:
    return isinstance(expression, tree.Literal) and expression.value is None


def _key_name(
    expression: tree.Expression, canonical: tree.Expression, columns: list[Selected], index: int
) -> str:
    for each in columns:
        if each.canonical == canonical:
            return each.name
    return expression.name if isinstance(expression, tree.Name | tree.Field) else f"KSQL_COL_{index}"


# --------------------------------------------------------------------------------------------- the row


def _projected(stage: Stage, parts: Divided, key: e.Expression | None, query_id: str) -> Stage:
    """The stage with the result's values, under the names of the result."""
    logger = f"{query_id}.Project"
    fields: list[tuple[str, e.Expression]] = []
    for index, each in enumerate(parts.value):
        message = f"Error computing expression {each.text} for column {each.name} with index {index}"
        node = each.typed.node
        is_plain = isinstance(node, e.Column | e.Literal_ | e.Meta | KeyColumn)
        fields.append((each.name, node if is_plain else Guarded(node, message, logger)))
    row = e.Struct(tuple(fields))
    keys = parts.key or None
    named = tuple(
        replace(part, name=keys[index].name) if keys is not None else part
        for index, part in enumerate(stage.key)
    )
    flow: Any
    if key is not None:
        columns = tuple(Column(part.name, part.kind, Role.KEY) for part in named)
        serde = RowSerde(stage.key_format, columns, True)
        assert isinstance(stage.flow, KStream)
        flow = stage.flow.map((key, row), key=serde, value=ROW_BYTES)
    else:
        flow = stage.flow.map_values(row, value=ROW_BYTES, with_key=True)
    visible = tuple(Visible(each.name, each.typed.kind, e.Column(each.name)) for each in parts.value)
    return stage.after(flow, "PROJECT", logger, scope=Scope(visible), key=named)
