"""Parts of responses as JSON, in ksqlDB's form: schemas, sources, queries. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.sql.execution.port import Explanation, QueryStatus
from barnabas.sql.metastore.metastore import DataSource, Metastore, QueryEntry
from barnabas.sql.metastore.schemas import WINDOW_COLUMNS, Column, Schema
from barnabas.sql.syntax.statements import Role
from barnabas.sql.types.sql_types import Array, Decimal, Map, SqlType, Struct

Entity = dict[str, Any]


def entity(kind: str, text: str, warnings: Iterable[str] = (), **fields: Any) -> Entity:
    return {
        "@type": kind,
        "statementText": text,
        **fields,
        "warnings": [{"message": each} for each in warnings],
    }


def type_json(kind: SqlType) -> Entity:
    found: Entity = {"type": kind.base, "fields": None, "memberSchema": None}
    match kind:
        case Struct():
            found["fields"] = [{"name": name, "schema": type_json(part)} for name, part in kind.fields]
        case Array():
            found["memberSchema"] = type_json(kind.item)
        case Map():
            found["memberSchema"] = type_json(kind.value)
        case Decimal():
            found["parameters"] = {"precision": kind.precision, "scale": kind.scale}
    return found


def field_json(column: Column) -> Entity:
    found: Entity = {"name": column.name, "schema": type_json(column.kind)}
    if column.is_key:
        found["type"] = "KEY"
    elif column.role == Role.HEADERS:
        found["type"] = "HEADER"
        if column.header is not None:
            found["headerKey"] = column.header
    return found


def fields_json(schema: Schema, *, is_windowed: bool = False) -> list[Entity]:
    """Key columns first, the bounds of the window behind them."""
    own = [*schema.key, *(each for each in schema.columns if not each.is_key)]
    found = [field_json(each) for each in own]
    if is_windowed:
        bounds = [field_json(Column(name, kind, Role.KEY)) for name, kind in WINDOW_COLUMNS.items()]
        found[len(schema.key) : len(schema.key)] = bounds
    return found


def source_row(source: DataSource) -> Entity:
    """A row of LIST STREAMS or TABLES."""
    return {
        "type": source.kind.upper(),
        "name": source.name,
        "topic": source.topic,
        "keyFormat": source.key_format.name,
        "valueFormat": source.value_format.name,
        "isWindowed": source.window is not None,
    }


def state_of(status: QueryStatus | None, is_paused: bool) -> str:
    if status is None:
        return "PAUSED" if is_paused else "RUNNING"
    return str(status.state)


def query_row(query: QueryEntry, state: str) -> Entity:
    """A row of LIST QUERIES."""
    return {
        "queryString": query.statement,
        "sinks": [query.sink] if query.sink else [],
        "sinkKafkaTopics": [query.sink_topic] if query.sink_topic else [],
        "id": query.query_id,
        "statusCount": {state: 1},
        "queryType": "PERSISTENT",
        "state": state,
    }


def push_row(query_id: str, text: str) -> Entity:
    return {
        "queryString": text,
        "sinks": [],
        "sinkKafkaTopics": [],
        "id": query_id,
        "statusCount": {"RUNNING": 1},
        "queryType": "PUSH",
        "state": "RUNNING",
    }


def source_description(
    source: DataSource,
    metastore: Metastore,
    states: Mapping[str, str],
    facts: Mapping[str, Any] | None = None,
) -> Entity:
    """`facts` replace fields: what DESCRIBE EXTENDED adds."""

    def queries(ids: Iterable[str]) -> list[Entity]:
        return [query_row(metastore.queries[each], states.get(each, "RUNNING")) for each in ids]

    return {
        "name": source.name,
        "windowType": source.window.kind if source.window is not None else None,
        "readQueries": queries(metastore.readers(source.name)),
        "writeQueries": queries(metastore.writers(source.name)),
        "fields": fields_json(source.schema, is_windowed=source.window is not None),
        "type": source.kind.upper(),
        "timestamp": source.timestamp.name if source.timestamp is not None else "",
        "statistics": "",
        "errorStats": "",
        "extended": facts is not None,
        "keyFormat": source.key_format.name,
        "valueFormat": source.value_format.name,
        "topic": source.topic,
        "partitions": 0,
        "replication": 0,
        "statement": source.statement,
        "queryOffsetSummaries": [],
        "sourceConstraints": sorted(
            {each.sink for each in metastore.queries.values() if source.name in each.sources and each.sink}
        ),
        "clusterStatistics": [],
        "clusterErrorStats": [],
        **(facts or {}),
    }


def query_description(
    explained: Explanation, *, host: str, status: QueryStatus | None, state: str | None, kind: str
) -> Entity:
    errors = [] if status is None else status.errors
    return {
        "id": explained.query_id or "",
        "windowType": None,
        "statementText": explained.text,
        "fields": fields_json(explained.schema),
        "sources": sorted(explained.sources),
        "sinks": list(explained.sinks),
        "topology": explained.topology,
        "executionPlan": explained.execution_plan,
        "road": explained.road,
        "overriddenProperties": dict(explained.properties),
        "ksqlHostQueryStatus": {host: state} if state is not None else {},
        "queryType": kind,
        "queryErrors": [
            {"timestamp": each.timestamp_ms, "errorMessage": each.message, "type": each.kind}
            for each in errors
        ],
        "tasksMetadata": [],
        "consumerGroupId": "" if status is None else status.application_id,
        "state": state,
    }
