"""LIST and SHOW: what there is."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import GroupDescription
from barnabas.sql.execution.port import QueryStatus
from barnabas.sql.functions.registry import table, user_rows
from barnabas.sql.server.settings.properties import IMMUTABLE, is_known, plain_name
from barnabas.sql.server.statements.describing import describe_all, explain_id
from barnabas.sql.server.statements.entities import (
    Entity,
    entity,
    push_row,
    query_row,
    source_row,
    state_of,
    type_json,
)
from barnabas.sql.server.statements.session import Session
from barnabas.sql.syntax.statements import DescribeAll, Listing

HIDDEN_TOPICS = re.compile(r"_confluent.*|__confluent.*|_schemas|__consumer_offsets|__transaction_state"
                           r"|__share_group_state|connect-configs|connect-offsets|connect-status"
                           r"|connect-statuses|__.*")  # fmt: skip


async def show(session: Session, statement: Listing, text: str) -> Entity:
    match statement.what:
        case "STREAMS" | "TABLES":
            tables = statement.what == "TABLES"
            if statement.is_extended:
                return await describe_all(session, DescribeAll(tables, True), text)
            chosen = [each for each in session.server.metastore.sources.values() if each.is_table == tables]
            rows = [source_row(each) for each in sorted(chosen, key=lambda each: each.name)]
            return {**entity(statement.what.lower(), text), statement.what.lower(): rows}
        case "TOPICS":
            return await topics(session, statement, text)
        case "QUERIES":
            return await queries(session, statement, text)
        case "PROPERTIES":
            return properties(session, text)
        case "FUNCTIONS":
            rows = [
                {"name": each.name, "type": each.kind.upper(), "category": each.category}
                for each in {**table(), **user_rows()}.values()
            ]
            return entity("function_names", text, functions=rows)
        case "TYPES":
            found = {name: type_json(kind) for name, kind in sorted(session.server.metastore.types.items())}
            return entity("type_list", text, types=found)
        case "VARIABLES":
            pairs = sorted(session.variables.items())
            return entity("variables", text, variables=[{"name": n, "value": v} for n, v in pairs])
        case "CONNECTORS":
            return await connectors(session, statement, text)
    plugins = [
        {"className": each.get("class"), "type": each.get("type"), "version": each.get("version")}
        for each in await session.server.connect.plugins()
    ]
    return entity("connector_plugins_list", text, connectorPlugins=plugins)


async def queries(session: Session, statement: Listing, text: str) -> Entity:
    server = session.server
    statuses = await server.query_statuses()
    if statement.is_extended:
        found = [await explain_id(session, each, statuses) for each in sorted(server.metastore.queries)]
        return entity("query_descriptions", text, queryDescriptions=found)
    rows = [
        query_row(each, states(session, statuses)[each.query_id])
        for each in server.metastore.queries.values()
    ]
    rows += [push_row(query_id, each.text) for query_id, each in server.selects.open.items()]
    return entity("queries", text, queries=rows)


def states(session: Session, statuses: Mapping[str, QueryStatus]) -> dict[str, str]:
    runner = session.server.runner
    return {each: state_of(statuses.get(each), each in runner.paused) for each in runner.metastore.queries}


async def topics(session: Session, statement: Listing, text: str) -> Entity:
    admin = Admin(session.server.cluster)
    names = [each.name for each in await admin.list_topics()]
    if statement.scope != "ALL":
        names = [each for each in names if not HIDDEN_TOPICS.fullmatch(each)]
    described = await admin.describe_topics(names)
    rows: list[Entity] = [
        {"name": each.name, "replicaInfo": [len(part.replicas) for part in each.partitions]}
        for each in described
    ]
    if not statement.is_extended:
        return entity("kafka_topics", text, topics=rows)
    consumers, groups = await readers(admin)
    for row in rows:
        row["consumerCount"] = consumers[row["name"]]
        row["consumerGroupCount"] = len(groups[row["name"]])
    return entity("kafka_topics_extended", text, topics=rows)


async def readers(admin: Admin) -> tuple[Counter[str], dict[str, set[str]]]:
    """Readers of topics: how many members of groups read each, and of which groups."""
    consumers: Counter[str] = Counter()
    groups: dict[str, set[str]] = defaultdict(set)
    listed = [each.group_id for each in await admin.list_groups() if each.protocol_type == "consumer"]
    for name, group in (await admin.describe_groups(listed)).items():
        if not isinstance(group, GroupDescription):
            continue
        for member in group.members:
            for topic in {each.topic for each in member.assignment}:
                consumers[topic] += 1
                groups[topic].add(name)
    return consumers, groups


def properties(session: Session, text: str) -> Entity:
    settings = session.server.settings
    given = {**settings.shown, **session.server.runner.system}
    rows: list[Entity] = []
    for name, value in sorted(given.items()):
        is_own = name.startswith(("ksql.", "barnabas.")) and not name.startswith("ksql.streams.")
        rows.append(
            {
                "name": name,
                "scope": "KSQL" if is_own else "KAFKA STREAMS",
                "value": value,
                "editable": (plain_name(name) not in IMMUTABLE and is_known(name, {})) or is_own,
                "level": "SERVER",
            }
        )
    overwritten = sorted(set(session.properties))
    for name in overwritten:
        rows = [each for each in rows if plain_name(each["name"]) != name]
        rows.append(
            {
                "name": name,
                "scope": "SESSION",
                "value": session.properties[name],
                "editable": True,
                "level": "SESSION",
            }
        )
    defaults = sorted(name for name in settings.shown if name not in settings.given)
    return entity(
        "properties", text, properties=rows, overwrittenProperties=overwritten, defaultProperties=defaults
    )


async def connectors(session: Session, statement: Listing, text: str) -> Entity:
    rows: list[dict[str, Any]] = []
    for name, each in sorted((await session.server.connect.connectors()).items()):
        status, info = each.get("status", {}), each.get("info", {})
        kind = str(info.get("type") or status.get("type") or "unknown").upper()
        if statement.scope is not None and kind != statement.scope:
            continue
        tasks = status.get("tasks", [])
        state = status.get("connector", {}).get("state", "")
        running = sum(task.get("state") == "RUNNING" for task in tasks)
        rows.append(
            {
                "name": name,
                "type": kind.lower(),
                "className": info.get("config", {}).get("connector.class", ""),
                "state": f"{state} ({running}/{len(tasks)} tasks RUNNING)",
            }
        )
    return entity("connector_list", text, connectors=rows)
