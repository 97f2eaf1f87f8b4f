"""Topics and schemas of statements: looked up, created, deleted.

In: names. Out: facts for the analysis, and effects; what exists already, or is gone already, is no error.
Does not know: statements.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from barnabas.client.admin.configs import ConfigAdmin, ConfigResource, ResourceType
from barnabas.client.admin.groups import GroupAdmin
from barnabas.client.admin.topics import NewTopic, TopicAdmin
from barnabas.client.core.cluster import ClusterCore
from barnabas.plans.serdes import RegistryAway
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.values import Schema as RegistrySchema
from barnabas.sql.analysis.facts import InferredSchema, Lookups, SchemaLookup, TopicFact
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import SchemaNeeded, TopicNeeded
from barnabas.sql.formats.definitions import FULL_NAME, SCHEMA_ID
from barnabas.sql.formats.inference import columns_of_subject, is_bare_schema
from barnabas.sql.formats.registered_rows import subject_of
from barnabas.sql.formats.registries import RegistryPlace, asked
from barnabas.sql.metastore.schemas import Format

RETENTION = "retention.ms"
INTERNAL = ("-repartition", "-changelog")
FOREIGN_KEY = "-KTABLE-FK-JOIN-SUBSCRIPTION-"


class Resources:
    def __init__(self, cluster: ClusterCore, registry: RegistryPlace) -> None:
        self._cluster, self._registry = cluster, registry

    # -- facts ---------------------------------------------------------------------------------------

    async def topic_facts(self, names: Iterable[str]) -> dict[str, TopicFact]:
        """Facts of the topics that exist."""
        wanted = set(names)
        if not wanted:
            return {}
        known = (await self._cluster.refresh(wanted)).topics
        found = {}
        for name in sorted(wanted):
            topic = known.get(name)
            if topic is None or topic.error_code or not topic.partitions:
                continue
            replicas = min(len(each.replicas) for each in topic.partitions.values())
            found[name] = TopicFact(name, len(topic.partitions), replicas, await self._retention_ms(name))
        return found

    async def _retention_ms(self, name: str) -> int | None:
        """The topic's own retention; None where it has the brokers' default."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        described = await ConfigAdmin(self._cluster).describe_configs([resource], names=[RETENTION])
        entry = next((each for each in described[resource] if each.name == RETENTION), None)
        return None if entry is None or entry.is_default or entry.value is None else int(entry.value)

    async def schema_facts(self, lookups: Sequence[SchemaLookup]) -> dict[SchemaLookup, InferredSchema]:
        return {each: await asyncio.to_thread(self._inferred, each) for each in lookups}

    def _inferred(self, lookup: SchemaLookup) -> InferredSchema:
        properties = {}
        if lookup.schema_id is not None:
            properties[SCHEMA_ID] = str(lookup.schema_id)
        if lookup.full_name is not None:
            properties[FULL_NAME] = lookup.full_name
        form = Format(lookup.format, properties)
        try:
            columns = columns_of_subject(form, lookup.topic, self._registry, is_key=lookup.is_key)
        except RegistryAway as error:
            raise SqlError(str(error)) from error
        return InferredSchema(lookup.schema_id or 0, columns, is_bare_schema(columns))

    async def facts(
        self, lookups: Lookups
    ) -> tuple[dict[str, TopicFact], dict[SchemaLookup, InferredSchema]]:
        return await self.topic_facts(lookups.topics), await self.schema_facts(lookups.schemas)

    # -- effects -------------------------------------------------------------------------------------

    async def create_topic(self, topic: TopicNeeded) -> None:
        new = NewTopic(topic.name, topic.partitions, topic.replicas or -1, configs=dict(topic.settings))
        try:
            await TopicAdmin(self._cluster).create_topic(new)
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise SqlError(f"Failed to create topic {topic.name}: {error.message}") from error
        await self._cluster.partitions_of(topic.name, auto_create=True)

    async def register(self, schema: SchemaNeeded) -> None:
        await asyncio.to_thread(self._register, schema)

    def _register(self, needed: SchemaNeeded) -> None:
        client = self._registry.client()
        try:
            asked(lambda: client.register_schema(needed.subject, RegistrySchema(needed.text, needed.kind)))
        except RegistryAway as error:
            raise SqlError(str(error)) from error
        except RegistryError as error:
            raise SqlError(f"Could not register schema for subject {needed.subject}: {error}") from error

    async def delete_topics(self, names: Iterable[str]) -> None:
        """Delete topics with their schemas."""
        for name in names:
            await self._delete_topic(name)
            if self._registry:
                for is_key in (True, False):
                    await asyncio.to_thread(self._delete_subject, subject_of(name, is_key=is_key))

    async def _delete_topic(self, name: str) -> None:
        try:
            await TopicAdmin(self._cluster).delete_topics([name])
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise SqlError(f"Failed to delete topic {name}: {error.message}") from error

    def _delete_subject(self, subject: str) -> None:
        client = self._registry.client()
        try:
            asked(lambda: client.delete_subject(subject))
        except RegistryAway as error:
            raise SqlError(str(error)) from error
        except RegistryError as error:
            if not error.is_not_found:
                raise SqlError(f"Failed to delete schemas of {subject}: {error}") from error

    async def delete_application(self, application_id: str) -> None:
        """Internal topics and the group of a query that has ended."""
        prefix = f"{application_id}-"
        for name in await self._cluster.topics(None):
            if name.startswith(prefix) and (name.endswith(INTERNAL) or FOREIGN_KEY in name):
                await self._delete_topic(name)
        error = (await GroupAdmin(self._cluster).delete_groups([application_id]))[application_id]
        if error is not None and error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise SqlError(f"Failed to delete group {application_id}: {error.message}")
