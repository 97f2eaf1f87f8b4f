"""CREATE … AS SELECT and INSERT INTO … SELECT: queries that write a topic.

A sink takes formats, partitions, replicas and retention from its left-most source unless WITH says
otherwise. Does not know: what a SELECT means.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from barnabas.plans.description import describe
from barnabas.sql.analysis.context import Context
from barnabas.sql.analysis.explaining import execution_plan
from barnabas.sql.analysis.facts import SINK_PARTITIONS, SINK_REPLICAS, TOPIC_PREFIX
from barnabas.sql.analysis.options import (
    OF_CREATE_AS,
    Options,
    check_columns,
    key_format,
    options_of,
    value_format,
)
from barnabas.sql.analysis.replacing import check_query_replacement, check_source_replacement
from barnabas.sql.analysis.selecting import Selection, select
from barnabas.sql.analysis.serdes import RowSerde
from barnabas.sql.analysis.stages import key_serde, rows_of
from barnabas.sql.analysis.times import RowTime, StampRow
from barnabas.sql.analysis.work import QueryWork, TopicRows, WorkKind
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import Prepared, TopicNeeded
from barnabas.sql.expressions.casting import widens
from barnabas.sql.metastore.metastore import Change, DataSource, PutQuery, PutSource, QueryEntry
from barnabas.sql.metastore.schemas import Column, Schema, TimestampColumn
from barnabas.sql.syntax.statements import CreateAs, InsertInto, Query, Role
from barnabas.sql.types.sql_types import BIGINT, NULL, STRING, TIMESTAMP
from barnabas.streams.dsl.builder import StreamsBuilder
from barnabas.streams.dsl.streams import KStream
from barnabas.streams.dsl.tables import KTable


def create_as(statement: CreateAs, context: Context) -> Prepared:
    """CREATE STREAM or TABLE AS SELECT."""
    name, entity = statement.name, ("table" if statement.is_table else "stream", statement.name)
    before = context.metastore.sources.get(name)
    if before is not None and statement.if_not_exists:
        message = (
            f"Cannot add {entity[0]} `{name}`: A {before.kind.lower()} with the same name already exists."
        )
        return Prepared(statement, context.text, "CREATE_AS", message, before.schema, entity=entity)
    if before is not None and not statement.or_replace:
        raise SqlError(
            f"Cannot add {entity[0]} '{name}': A {before.kind.lower()} with the same name already exists",
            statement.at,
        )
    options = options_of(statement.properties, OF_CREATE_AS, statement.at)
    letters = "CTAS" if statement.is_table else "CSAS"
    replaced = before.made_by if before is not None else None
    given = options.text("QUERY_ID")
    query_id = replaced or (given.upper() if given else f"{letters}_{name}_{context.number}")
    if query_id in context.metastore.queries and replaced is None:
        raise SqlError(f"Query ID '{query_id}' already exists.", statement.at)
    if before is not None:
        check_query_replacement(before, statement, context)
    check_query(statement.query, name, statement.is_table)
    application_id = context.application_id(query_id)
    builder = StreamsBuilder(application_id)
    names_format = options.text("KEY_FORMAT") or options.text("FORMAT")
    wanted = key_format(options, context.facts) if names_format else None
    selection = select(statement.query, context, builder, query_id, name, wanted)
    check_kind(statement, selection)
    source = _sink_source(statement, context, options, selection, query_id)
    if before is not None:
        check_source_replacement(before, source)
    leftmost = selection.stage.sources[0]
    fact = context.facts.topics.get(source.topic)
    topics: tuple[TopicNeeded, ...] = ()
    if fact is None:
        window = statement.query.window
        kept = window.retention.ms if window is not None and window.retention is not None else None
        topics = (_topic(source, context, options, leftmost.topic, kept),)
    else:
        check_topic(source.topic, options, fact.partitions, statement)
    rows = rows_of(source)
    work = _work(builder, selection, rows, source.timestamp, query_id, application_id, context)
    entry = QueryEntry(
        query_id,
        "CREATE_AS",
        context.text,
        tuple(each.name for each in selection.stage.sources),
        name,
        source.topic,
        dict(context.properties),
    )
    changes: tuple[Change, ...] = (PutSource(source, before is not None), PutQuery(entry))
    return Prepared(
        statement,
        context.text,
        "CREATE_AS",
        f"Created query with ID {query_id}",
        source.schema,
        changes,
        topics,
        starts=query_id,
        entity=entity,
        properties=context.properties,
        work=work,
    )


def check_query(query: Query, sink: str, is_table: bool) -> None:
    if query.limit is not None:
        raise SqlError(
            f"LIMIT is not supported in a persistent query: `{sink}` is written for ever", query.at
        )
    if query.emit == "FINAL" and not is_table:
        raise SqlError("EMIT FINAL is only supported for windowed aggregations: CREATE TABLE", query.at)


def check_kind(statement: CreateAs, selection: Selection) -> None:
    if selection.stage.is_table == statement.is_table:
        return
    made, wanted = ("TABLE", "STREAM") if selection.stage.is_table else ("STREAM", "TABLE")
    raise SqlError(
        f"Invalid result type. Your SELECT query produces a {made}. Please use CREATE {made} AS SELECT "
        f"statement instead of CREATE {wanted} AS SELECT.",
        statement.at,
    )


def check_topic(topic: str, options: Options, partitions: int, statement: Any) -> None:
    wanted = options.number("PARTITIONS")
    if wanted is not None and wanted != partitions:
        raise SqlError(
            f"A Kafka topic with the name '{topic}' already exists, with different partition/replica "
            f"configuration than required. KSQL expects {wanted} partitions, got {partitions}.",
            statement.at,
        )


def _sink_source(
    statement: CreateAs, context: Context, options: Options, selection: Selection, query_id: str
) -> DataSource:
    stage, parts = selection.stage, selection.parts
    leftmost = stage.sources[0]
    role = Role.PRIMARY_KEY if statement.is_table else Role.KEY
    keys = tuple(Column(each.name, each.typed.kind, role) for each in parts.key)
    values = tuple(Column(each.name, each.typed.kind) for each in parts.value)
    for column in (*keys, *values):
        if column.kind == NULL:
            raise SqlError(
                f"The type of column `{column.name}` is not known: CAST(NULL AS a type) gives one",
                statement.at,
            )
    keys_format = key_format(options, context.facts, stage.key_format)
    if not keys and options.text("KEY_FORMAT") is None and options.text("FORMAT") is None:
        keys_format = replace(stage.key_format, name="NONE", properties={}, is_wrapped=False)
    elif keys and keys_format.name == "NONE":
        keys_format = key_format(options, context.facts)
    if not values:
        raise SqlError("The projection contains no value columns.", statement.at)
    values_format = value_format(options, context.facts, len(values), leftmost.value_format)
    check_columns(keys_format, keys, True, statement.at)
    check_columns(values_format, values, False, statement.at)
    topic = options.text("KAFKA_TOPIC") or f"{context.setting(TOPIC_PREFIX) or ''}{statement.name}"
    schema = Schema((*keys, *values))
    timestamp = options.timestamp
    if timestamp is not None:
        check_timestamp(timestamp, schema, statement)
    return DataSource(
        statement.name,
        statement.is_table,
        schema,
        topic,
        keys_format,
        values_format,
        stage.window,
        timestamp,
        statement=context.text,
        made_by=query_id,
    )


def check_timestamp(timestamp: TimestampColumn, schema: Schema, statement: Any) -> None:
    column = schema.find(timestamp.name)
    if column is None:
        raise SqlError(
            f"The TIMESTAMP column set in the WITH clause does not exist in the schema: '{timestamp.name}'",
            statement.at,
        )
    if column.kind not in (BIGINT, TIMESTAMP, STRING):
        raise SqlError(
            f"Timestamp column, {timestamp.name}, should be LONG(INT64), TIMESTAMP, or a String with a "
            "timestamp_format specified",
            statement.at,
        )
    if timestamp.pattern is not None and column.kind != STRING:
        raise SqlError("TIMESTAMP_FORMAT is for columns of type STRING", statement.at)


def _topic(
    source: DataSource, context: Context, options: Options, leftmost: str, window_retention_ms: int | None
) -> TopicNeeded:
    before = context.facts.topics.get(leftmost)
    partitions = options.number("PARTITIONS")
    if partitions is None:
        by_server = int(context.setting(SINK_PARTITIONS) or 0)
        partitions = by_server or (before.partitions if before is not None else 1)
    if partitions < 1:
        raise SqlError(f"PARTITIONS is {partitions}: at least 1 is needed", context.statement.at)
    replicas = options.number("REPLICAS")
    if replicas is None:
        by_server = int(context.setting(SINK_REPLICAS) or 0)
        replicas = by_server or (before.replicas if before is not None else None)
    settings: dict[str, str] = {}
    policy = options.text("CLEANUP_POLICY")
    if policy is None and source.is_table:
        policy = "compact" if source.window is None else "compact,delete"
    if policy is not None:
        settings["cleanup.policy"] = policy
    retention = options.number("RETENTION_MS")
    if retention is None:
        retention = window_retention_ms
    if retention is None and before is not None and not source.is_table:
        retention = before.retention_ms
    if retention is not None:
        settings["retention.ms"] = str(retention)
    return TopicNeeded(source.topic, partitions, replicas, settings)


def _work(
    builder: StreamsBuilder,
    selection: Selection,
    sink: TopicRows,
    timestamp: TimestampColumn | None,
    query_id: str,
    application_id: str,
    context: Context,
) -> QueryWork:
    """The plan with its sink."""
    flow: Any = selection.stage.flow
    if isinstance(flow, KTable):
        flow = flow.to_stream()
    assert isinstance(flow, KStream)
    if timestamp is not None:
        column = sink.schema.find(timestamp.name)
        assert column is not None
        names = [each.name for each in sink.schema.key]
        index = names.index(column.name) if column.name in names else None
        flow = flow.restamp(StampRow(RowTime(column.name, column.kind, timestamp.pattern, index)))
    flow.to(
        sink.topic,
        key=key_serde(sink.key_format, sink.schema.key, sink.window),
        value=RowSerde(sink.value_format, sink.schema.value, False),
    )
    plan = builder.build()
    sources = tuple(rows_of(each) for each in selection.stage.sources)
    known = {each.topic: context.partitions(each.topic) for each in sources}
    return QueryWork(
        WorkKind.PERSISTENT,
        query_id,
        application_id,
        sources,
        plan,
        sink,
        partitions={topic: count for topic, count in known.items() if count is not None},
        execution_plan=execution_plan(selection.stage.step),
        topology=describe(plan),
    )


# ------------------------------------------------------------------------------------- INSERT INTO SELECT


def insert_into(statement: InsertInto, context: Context) -> Prepared:
    target = context.metastore.source(statement.target, statement.at)
    if target.is_table:
        raise SqlError(
            f"INSERT INTO can only be used to insert into a stream. {target.name} is a table.", statement.at
        )
    if target.is_source:
        raise SqlError(f"Cannot insert into read-only stream: {target.name}", statement.at)
    if target.schema.headers:
        raise SqlError(f"Cannot insert into {target.name} because it has header columns", statement.at)
    options = options_of(statement.properties, {"QUERY_ID"}, statement.at)
    given = options.text("QUERY_ID")
    query_id = given.upper() if given else f"INSERTQUERY_{context.number}"
    if query_id in context.metastore.queries:
        raise SqlError(f"Query ID '{query_id}' already exists.", statement.at)
    check_query(statement.query, target.name, False)
    application_id = context.application_id(query_id)
    builder = StreamsBuilder(application_id)
    selection = select(statement.query, context, builder, query_id, target.name)
    if selection.stage.is_table:
        raise SqlError(
            "INSERT INTO can only be used to insert a stream: the SELECT produces a TABLE.", statement.at
        )
    check_schema(target, selection, statement)
    rows = rows_of(target)
    work = _work(builder, selection, rows, target.timestamp, query_id, application_id, context)
    entry = QueryEntry(
        query_id,
        "INSERT",
        context.text,
        tuple(each.name for each in selection.stage.sources),
        target.name,
        target.topic,
        dict(context.properties),
    )
    return Prepared(
        statement,
        context.text,
        "INSERT_INTO",
        f"Created query with ID {query_id}",
        target.schema,
        (PutQuery(entry),),
        starts=query_id,
        entity=("stream", target.name),
        properties=context.properties,
        work=work,
    )


def check_schema(target: DataSource, selection: Selection, statement: InsertInto) -> None:
    """The columns of the result must be those of the sink: names, types, keys."""
    parts = selection.parts
    keys = tuple(Column(each.name, each.typed.kind, Role.KEY) for each in parts.key)
    values = tuple(Column(each.name, each.typed.kind) for each in parts.value)
    wanted = target.schema
    same_keys = [(c.name, c.kind) for c in keys] == [(c.name, c.kind) for c in wanted.key]
    same_values = len(values) == len(wanted.value) and all(
        one.name == two.name and (one.kind == two.kind or (one.kind == NULL and widens(one.kind, two.kind)))
        for one, two in zip(values, wanted.value, strict=True)
    )
    if same_keys and same_values:
        return
    given = Schema((*keys, *values))
    raise SqlError(
        f"Incompatible schema between results and sink.\nResult schema is {given}\nSink schema is {wanted}",
        statement.at,
    )
