"""ASSERT TOPIC and ASSERT SCHEMA: wait until something exists, or does not."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.core.errors import NoTopic
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.schemas.client.errors import RegistryError
from barnabas.sql.errors import SqlError
from barnabas.sql.server.statements.entities import Entity, entity
from barnabas.sql.server.statements.errors import ASSERT_FAILED, StatementRefused
from barnabas.sql.server.statements.session import Session
from barnabas.sql.syntax import statements as made
from barnabas.sql.syntax.parsing import parse_statement

EVERY_S = 0.2
TIMEOUT_S_MAX = 3600.0
ASSERT = re.compile(r"\s*ASSERT\s", re.IGNORECASE)
MISSING = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION)

Problem = Callable[[], Awaitable[str | None]]


async def assert_topic(session: Session, statement: made.AssertTopic, text: str) -> Entity:
    admin = Admin(session.server.cluster)

    async def missing() -> str | None:
        if not statement.exists:
            return None
        name = statement.name
        others = [each.name for each in await admin.list_topics() if each.name.upper() == name.upper()]
        hint = f": there is '{others[0]}', put its name into quotes" if others else ""
        return f"Topic {name} does not exist{hint}"

    async def problem() -> str | None:
        try:
            [found] = await admin.describe_topics([statement.name])
        except NoTopic:
            return await missing()
        except KafkaError as error:
            if error.code not in MISSING:
                raise
            return await missing()
        if not statement.exists:
            return f"Topic {statement.name} exists"
        actual = {
            "PARTITIONS": str(len(found.partitions)),
            "REPLICAS": str(max((len(each.replicas) for each in found.partitions), default=0)),
        }
        wanted = {name.upper(): str(value) for name, value in statement.properties}
        if set(wanted) - set(actual):
            resource = ConfigResource(ResourceType.TOPIC, statement.name)
            entries = (await admin.describe_configs([resource]))[resource]
            actual |= {each.name.upper().replace(".", "_"): each.value or "" for each in entries}
        for name, value in wanted.items():
            if name not in actual:
                return f"Cannot assert unknown topic property: {name}"
            if actual[name] != value:
                found_value = actual[name]
                return (
                    f"Mismatched configuration for topic {statement.name}: {name}={found_value}, not {value}"
                )
        return None

    await wait_until(problem, statement.timeout, text)
    return entity("assert_topic", text, topicName=statement.name, exists=statement.exists)


async def assert_schema(session: Session, statement: made.AssertSchema, text: str) -> Entity:
    registry = session.server.registry()
    subject, schema_id = statement.subject, statement.schema_id
    if subject is None and schema_id is None:
        raise StatementRefused("Must define SUBJECT or ID", text)

    async def exists() -> bool:
        try:
            if schema_id is None:
                assert subject is not None
                return bool(await registry.get_versions(subject))
            await registry.get_schema(schema_id)
            used = await registry.get_usages(schema_id)
            return subject is None or any(name == subject for name, _ in used)
        except RegistryError as error:
            if error.is_not_found:
                return False
            raise StatementRefused(f"the registry refused: {error}", text) from None

    async def problem() -> str | None:
        if await exists() == statement.exists:
            return None
        what = " and ".join(
            [*([f"subject name {subject}"] if subject else []), *([f"id {schema_id}"] if schema_id else [])]
        )
        return f"Schema with {what} does not exist" if statement.exists else f"Schema with {what} exists"

    await wait_until(problem, statement.timeout, text)
    return entity("assert_schema", text, subject=subject, id=schema_id, exists=statement.exists)


def seconds_of(timeout: made.Duration | None) -> float:
    return min(timeout.ms / 1000 if timeout is not None else 0.0, TIMEOUT_S_MAX)


def waits_s(texts: Iterable[str]) -> float:
    """How long the ASSERTs among these statements may wait together."""
    found = 0.0
    for text in texts:
        if ASSERT.match(text):
            with suppress(SqlError):  # told when the statements are checked
                statement = parse_statement(text)
                if isinstance(statement, made.AssertTopic | made.AssertSchema):
                    found += seconds_of(statement.timeout)
    return found


async def wait_until(problem: Problem, timeout: made.Duration | None, text: str) -> None:
    loop = asyncio.get_running_loop()
    ends_at = loop.time() + seconds_of(timeout)
    while (found := await problem()) is not None:
        if loop.time() >= ends_at:
            raise StatementRefused(found, text, code=ASSERT_FAILED, status=417)
        await asyncio.sleep(EVERY_S)
