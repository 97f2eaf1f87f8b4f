"""DROP, ALTER, CREATE TYPE and DROP TYPE. Pure."""

from __future__ import annotations

from dataclasses import replace

from barnabas.sql.analysis.context import Context
from barnabas.sql.errors import SqlError, did_you_mean
from barnabas.sql.execution.port import Prepared
from barnabas.sql.expressions.resolving import looked_up
from barnabas.sql.metastore.metastore import PutSource, PutType, RemoveSource, RemoveType
from barnabas.sql.metastore.schemas import Column
from barnabas.sql.syntax.statements import AlterSource, CreateType, DropSource, DropType


def drop(statement: DropSource, context: Context) -> Prepared:
    name, kind = statement.name, "table" if statement.is_table else "stream"
    found = context.metastore.sources.get(name)
    if found is None:
        if statement.if_exists:
            message = f"Source `{name}` does not exist."
            return Prepared(statement, context.text, "DROP", message, entity=(kind, name))
        hint = did_you_mean(name, context.metastore.sources)
        raise SqlError(f"{kind.capitalize()} {name} does not exist.{hint}", statement.at)
    if found.is_table != statement.is_table:
        raise SqlError(
            f"Incompatible data source type is {found.kind.upper()}, but statement was DROP {kind.upper()}",
            statement.at,
        )
    if found.is_source and statement.deletes_topic:
        raise SqlError(f"Cannot delete topic for read-only source: {name}", statement.at)
    context.metastore.check_drop(name)
    ending = context.metastore.ended_by_drop(name)
    topics: tuple[str, ...] = ()
    if statement.deletes_topic:
        others = [
            each.name
            for each in context.metastore.sources.values()
            if each.topic == found.topic and each.name != name
        ]
        if others:
            raise SqlError(
                f"Refusing to delete topic. Found other data sources ({', '.join(sorted(others))}) using "
                f"topic {found.topic}",
                statement.at,
            )
        topics = (found.topic,)
    return Prepared(
        statement,
        context.text,
        "DROP",
        f"Source `{name}` (topic: {found.topic}) was dropped.",
        changes=(RemoveSource(name),),
        drops_topics=topics,
        stops=ending,
        entity=(kind, name),
    )


def alter(statement: AlterSource, context: Context) -> Prepared:
    found = context.metastore.source(statement.name, statement.at)
    kind = "table" if statement.is_table else "stream"
    if found.is_table != statement.is_table:
        raise SqlError(f"{statement.name} is a {found.kind.upper()}, not a {kind.upper()}", statement.at)
    if found.made_by is not None:
        raise SqlError(
            f"ALTER command is not supported for CREATE ... AS statements: {statement.name}", statement.at
        )
    if found.is_source:
        raise SqlError(f"Cannot alter {kind} '{statement.name}': it is read-only", statement.at)
    columns: list[Column] = []
    for name, given in statement.columns:
        if found.schema.find(name) is not None or name in [each.name for each in columns]:
            raise SqlError(
                f"Cannot add column `{name}` to schema. A column with the same name already exists.",
                statement.at,
            )
        columns.append(Column(name, looked_up(given, context.metastore.types, statement.at)))
    changed = replace(found, schema=found.schema.with_columns(*columns))
    return Prepared(
        statement,
        context.text,
        "ALTER",
        f"{found.kind} `{statement.name}` altered.",
        changed.schema,
        (PutSource(changed, replaces=True),),
        entity=(kind, statement.name),
    )


def create_type(statement: CreateType, context: Context) -> Prepared:
    known = context.metastore.types.get(statement.name)
    entity = ("type", statement.name)
    if known is not None and statement.if_not_exists:
        message = f"{statement.name} is already registered with type: {known}"
        return Prepared(statement, context.text, "TYPE", message, entity=entity)
    kind = looked_up(statement.kind, context.metastore.types, statement.at)
    message = f"Registered custom type with name '{statement.name}' and SQL type {kind}"
    changes = (PutType(statement.name, kind),)
    context.metastore.apply(changes)
    return Prepared(statement, context.text, "TYPE", message, changes=changes, entity=entity)


def drop_type(statement: DropType, context: Context) -> Prepared:
    entity = ("type", statement.name)
    if statement.name not in context.metastore.types:
        if statement.if_exists:
            message = f"Type '{statement.name}' does not exist"
            return Prepared(statement, context.text, "TYPE", message, entity=entity)
        hint = did_you_mean(statement.name, context.metastore.types)
        raise SqlError(f"Type {statement.name} does not exist.{hint}", statement.at)
    message = f"Dropped type '{statement.name}'"
    return Prepared(
        statement, context.text, "TYPE", message, changes=(RemoveType(statement.name),), entity=entity
    )
