"""DESCRIBE and EXPLAIN: one thing with its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import FoundOffset, OffsetSpec
from barnabas.client.core.errors import NoTopic
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import Explanation, QueryStatus
from barnabas.sql.functions.registry import FunctionRow, row_named
from barnabas.sql.metastore.metastore import DataSource
from barnabas.sql.server.statements.changing import prepare
from barnabas.sql.server.statements.entities import (
    Entity,
    entity,
    query_description,
    source_description,
    state_of,
)
from barnabas.sql.server.statements.errors import StatementRefused
from barnabas.sql.server.statements.session import Session
from barnabas.sql.syntax import statements as made


async def describe(session: Session, statement: made.Describe, text: str) -> Entity:
    source = session.server.metastore.source(statement.name, statement.at)
    found = await described(session, source, is_extended=statement.is_extended)
    return entity("sourceDescription", text, sourceDescription=found)


async def describe_all(session: Session, statement: made.DescribeAll, text: str) -> Entity:
    chosen = [each for each in session.server.metastore.sources.values() if each.is_table == statement.tables]
    found = [
        await described(session, each, is_extended=statement.is_extended)
        for each in sorted(chosen, key=lambda each: each.name)
    ]
    return entity("source_descriptions", text, sourceDescriptions=found)


async def described(session: Session, source: DataSource, *, is_extended: bool) -> Entity:
    server = session.server
    statuses = await server.query_statuses()
    ids = {*server.metastore.readers(source.name), *server.metastore.writers(source.name)}
    states = {each: state_of(statuses.get(each), each in server.runner.paused) for each in ids}
    facts = await extended_facts(session, source, statuses) if is_extended else None
    return source_description(source, server.metastore, states, facts)


async def extended_facts(
    session: Session, source: DataSource, statuses: Mapping[str, QueryStatus]
) -> dict[str, Any]:
    """Partitions, numbers and errors of the queries that write the source, and how far they have read."""
    admin = Admin(session.server.cluster)
    facts: dict[str, Any] = {}
    try:
        [topic] = await admin.describe_topics([source.topic])
        facts["partitions"] = len(topic.partitions)
        facts["replication"] = max((len(each.replicas) for each in topic.partitions), default=0)
    except (NoTopic, KafkaError):
        pass
    writers = [statuses[each] for each in session.server.metastore.writers(source.name) if each in statuses]
    if writers:
        facts["statistics"] = (
            f"total-messages: {sum(each.outputs for each in writers)} consumed: "
            f"{sum(each.records for each in writers)}"
        )
        dropped = sum(sum(each.dropped.values()) for each in writers)
        facts["errorStats"] = f"dropped: {dropped} errors: {sum(len(each.errors) for each in writers)}"
    facts["queryOffsetSummaries"] = [
        await offsets_of(session, admin, each.query_id, each.application_id) for each in writers
    ]
    return facts


async def offsets_of(session: Session, admin: Admin, query_id: str, group: str) -> Entity:
    entry = session.server.metastore.queries[query_id]
    topics = sorted({session.server.metastore.sources[each].topic for each in entry.sources})
    summaries = []
    try:
        committed = await admin.committed_offsets(group)
    except KafkaError:
        committed = {}
    for topic in topics:
        try:
            count = len((await admin.describe_topics([topic]))[0].partitions)
        except (NoTopic, KafkaError):
            continue
        places = [TopicPartition(topic, index) for index in range(count)]
        starts = await admin.list_offsets(dict.fromkeys(places, OffsetSpec.EARLIEST))
        ends = await admin.list_offsets(dict.fromkeys(places, OffsetSpec.LATEST))
        offsets = []
        for place in places:
            start, end, done = starts[place], ends[place], committed.get(place)
            if isinstance(start, FoundOffset) and isinstance(end, FoundOffset):
                consumed = done.offset if done is not None else 0
                offsets.append(
                    {
                        "partition": place.partition,
                        "logStartOffset": start.offset,
                        "logEndOffset": end.offset,
                        "consumerOffset": consumed,
                    }
                )
        summaries.append({"kafkaTopic": topic, "offsets": offsets})
    return {"groupId": group, "topicSummaries": summaries}


async def explain(session: Session, statement: made.Explain, text: str) -> Entity:
    if statement.query_id is not None:
        statuses = await session.server.query_statuses()
        found = await explain_id(session, statement.query_id, statuses)
        return entity("queryDescription", text, queryDescription=found)
    assert statement.statement is not None
    number = session.server.commands.next_number
    inner = text.strip()[len("EXPLAIN") :].strip()
    prepared = await prepare(session, statement.statement, inner, session.server.metastore, number)
    explained = await session.server.engine.explain(prepared)
    kind = "PUSH" if prepared.select is not None else "PERSISTENT"
    shown = query_description(explained, host=session.server.settings.url, status=None, state=None, kind=kind)
    return entity("queryDescription", text, queryDescription=shown)


async def explain_id(session: Session, query_id: str, statuses: Mapping[str, QueryStatus]) -> Entity:
    server = session.server
    entry = server.metastore.query(query_id)
    status = statuses.get(query_id)
    state = state_of(status, query_id in server.runner.paused)
    try:
        explained = server.engine.explanation(query_id)
    except (KeyError, SqlError):  # it runs on another node
        sinks = (entry.sink,) if entry.sink else ()
        sink = server.metastore.sources.get(entry.sink or "")
        schema = sink.schema if sink is not None else server.metastore.sources[entry.sources[0]].schema
        explained = Explanation(query_id, entry.statement, schema, entry.sources, sinks, "", "", "")
    return query_description(
        explained, host=server.settings.url, status=status, state=state, kind="PERSISTENT"
    )


async def describe_function(session: Session, statement: made.DescribeFunction, text: str) -> Entity:
    row = row_named(statement.name)
    return entity(
        "describe_function",
        text,
        name=row.name,
        description=described_function(row),
        author="Barnabas",
        version="",
        path="internal",
        functions=[signature_json(each, row) for each in row.signatures],
        type=row.kind.upper(),
    )


def described_function(row: FunctionRow) -> str:
    examples = "".join(f"\nExample: {call} gives {result}" for call, result in row.examples[:2])
    notes = f" {row.notes}" if row.notes else ""
    return f"{row.what}.{notes}{examples}"


def signature_json(signature: str, row: FunctionRow) -> Entity:
    """A signature as the table has it: `NAME(A, B...) -> C`."""
    head, _, result = signature.rpartition("->")
    inside = head.strip()[len(row.name) + 1 : -1]
    arguments = [each.strip() for each in split_types(inside)]
    return {
        "arguments": [
            {
                "name": "",
                "type": each.removesuffix("..."),
                "description": "",
                "isVariadic": each.endswith("..."),
            }
            for each in arguments
            if each
        ],
        "returnType": result.strip(),
        "description": row.what,
    }


def split_types(text: str) -> list[str]:
    """Cut at commas outside of angle brackets and parentheses."""
    found, depth = [""], 0
    for sign in text:
        depth += (sign in "<(") - (sign in ">)")
        if sign == "," and depth <= 0:
            found.append("")
        else:
            found[-1] += sign
    return found


async def describe_connector(session: Session, statement: made.DescribeConnector, text: str) -> Entity:
    connect, server = session.server.connect, session.server
    info = await connect.connector(statement.name)
    if info is None:
        raise StatementRefused(f"Connector {statement.name} does not exist at {connect.url}", text)
    status = await connect.connector(statement.name, "status")
    used = await connect.connector(statement.name, "topics") or {}
    topics = sorted(used.get(statement.name, {}).get("topics", []))
    sources = [
        source_description(each, server.metastore, {})
        for each in server.metastore.sources.values()
        if each.topic in topics
    ]
    return entity(
        "connector_description",
        text,
        connectorClass=info.get("config", {}).get("connector.class", ""),
        status=status,
        sources=sources,
        topics=topics,
    )
