"""SELECT for a caller: push queries, reads of a stream to its end, pull queries.

Does not know: how rows reach the caller.
"""

from __future__ import annotations

from typing import Any

from barnabas.plans.description import describe
from barnabas.sql.analysis.context import Context
from barnabas.sql.analysis.explaining import execution_plan
from barnabas.sql.analysis.pulls import pull
from barnabas.sql.analysis.selecting import Selection, select
from barnabas.sql.analysis.serdes import ROW_BYTES
from barnabas.sql.analysis.stages import rows_of
from barnabas.sql.analysis.work import RESULT_TOPIC, KeyPlace, QueryWork, Result, WorkKind
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import Prepared, SelectKind
from barnabas.sql.expressions.scopes import names_in
from barnabas.sql.metastore.schemas import WINDOWEND, WINDOWSTART, Column, Schema
from barnabas.sql.syntax import tree
from barnabas.sql.syntax.statements import Query, Role
from barnabas.streams.dsl.builder import StreamsBuilder
from barnabas.streams.dsl.tables import KTable


def query(statement: Query, context: Context) -> Prepared:
    source = context.metastore.source(statement.source.name, statement.source.at)
    if statement.emit is None:
        if source.is_table:
            return pull(statement, context)
        check_stream_pull(statement)
        return push(statement, context, SelectKind.STREAM_PULL)
    return push(statement, context, SelectKind.PUSH)


def check_stream_pull(statement: Query) -> None:
    is_grouped = bool(statement.group_by or statement.joins or statement.partition_by or statement.window)
    if is_grouped:
        raise SqlError(
            "Pull queries on streams don't support JOIN, GROUP BY, PARTITION BY or WINDOW clauses. Add EMIT "
            "CHANGES for a push query.",
            statement.at,
        )
    for item in statement.items:
        for name in names_in(item.expression):
            if name.name in ("ROWPARTITION", "ROWOFFSET"):
                raise SqlError(f"{name.name} is not available in pull queries.", name.at)


def push(statement: Query, context: Context, kind: SelectKind) -> Prepared:
    """Rows as they come. The query's id is its number; a caller makes it unlike others' ids."""
    query_id = f"transient_{statement.source.name}_{context.number}"
    application_id = context.application_id(query_id)
    builder = StreamsBuilder(application_id)
    selection = select(statement, context, builder, query_id, None)
    flow: Any = selection.stage.flow
    is_table = isinstance(flow, KTable)
    if isinstance(flow, KTable):
        flow = flow.to_stream()
    flow.to(RESULT_TOPIC, key=ROW_BYTES, value=ROW_BYTES)
    plan = builder.build()
    schema = _schema(selection)
    sources = tuple(rows_of(each) for each in selection.stage.sources)
    known = {each.topic: context.partitions(each.topic) for each in sources}
    result = Result(schema, is_table, _places(selection), statement.limit)
    work = QueryWork(
        WorkKind.PUSH if kind == SelectKind.PUSH else WorkKind.STREAM_PULL,
        query_id,
        application_id,
        sources,
        plan,
        result=result,
        partitions={topic: count for topic, count in known.items() if count is not None},
        execution_plan=execution_plan(selection.stage.step),
        topology=describe(plan),
    )
    return Prepared(
        statement,
        context.text,
        "SELECT",
        schema=schema,
        select=kind,
        limit=statement.limit,
        properties=context.properties,
        work=work,
    )


def _schema(selection: Selection) -> Schema:
    """Columns in the order of the list. Push queries mark no keys."""
    return Schema(tuple(Column(each.name, each.typed.kind, Role.VALUE) for each in selection.columns))


def _places(selection: Selection) -> tuple[KeyPlace, ...]:
    """The place of each column's value in a tombstone: in its key, or nowhere."""
    stage = selection.stage
    places: list[KeyPlace] = []
    for each in selection.columns:
        place: KeyPlace = None
        for index, part in enumerate(stage.key):
            if each.canonical in part.same:
                place = index
        if stage.window is not None and isinstance(each.canonical, tree.Name):
            place = {WINDOWSTART: "start", WINDOWEND: "end"}.get(each.canonical.name, place)
        places.append(place)
    return tuple(places)
