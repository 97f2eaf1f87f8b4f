"""A topic that Confluent's server wrote, byte for byte in its form: our node reads it and goes on with it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import Producer
from barnabas.registry.node import RegistryNode
from barnabas.registry.state import commands
from barnabas.registry.state.commands import DeleteSubject, RegisterSchema, SchemaRequest
from barnabas.registry.state.deciding import Decider
from barnabas.services.settings.loading import load_settings
from barnabas.testing.waiting import until

# Key and value of each record. Records of older servers lack `md5`, and `subject` in settings.
RECORDS: tuple[tuple[str, str | None], ...] = (
    ('{"keytype":"NOOP","magic":0}', None),
    (
        '{"keytype":"SCHEMA","subject":"old-value","version":1,"magic":1}',
        '{"subject":"old-value","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
    ),
    (
        '{"keytype":"SCHEMA","subject":"users-value","version":1,"magic":1}',
        '{"subject":"users-value","version":1,"id":2,"md5":"dAqQ9UkDSZRfsF9TOIJkKw==","schema":'
        '"{\\"type\\":\\"record\\",\\"name\\":\\"User\\",\\"namespace\\":\\"shop\\",\\"fields\\":'
        '[{\\"name\\":\\"id\\",\\"type\\":\\"long\\"}]}","deleted":false}',
    ),
    (
        '{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}',
        '{"subject":"orders-value","version":1,"id":3,"md5":"AAAAAAAAAAAAAAAAAAAAAA==","schemaType":"JSON",'
        '"references":[{"name":"user.json","subject":"user","version":1}],'
        '"metadata":{"tags":{"a.b":["PII"]},"properties":{"owner":"shop"},"sensitive":["owner"]},'
        '"ruleSet":{"domainRules":[{"name":"r","kind":"CONDITION","mode":"WRITE","type":"CEL","expr":"true",'
        '"disabled":false}]},"schema":"{\\"type\\":\\"object\\"}","deleted":false}',
    ),
    ('{"keytype":"CONFIG","subject":null,"magic":0}', '{"compatibilityLevel":"FULL"}'),
    (
        '{"keytype":"CONFIG","subject":"users-value","magic":0}',
        '{"subject":"users-value","compatibilityLevel":"NONE","normalize":true}',
    ),
    ('{"keytype":"MODE","subject":"old-value","magic":0}', '{"subject":"old-value","mode":"READONLY"}'),
    (
        '{"keytype":"CONTEXT","tenant":"default","context":".staging","magic":0}',
        '{"tenant":"default","context":".staging"}',
    ),
    (
        '{"keytype":"SCHEMA","subject":":.staging:users-value","version":1,"magic":1}',
        '{"subject":":.staging:users-value","version":1,"id":1,"schema":"\\"long\\"","deleted":false}',
    ),
    (
        '{"keytype":"SCHEMA","subject":"gone-value","version":1,"magic":1}',
        '{"subject":"gone-value","version":1,"id":4,"schema":"\\"int\\"","deleted":false}',
    ),
    (
        '{"keytype":"DELETE_SUBJECT","subject":"gone-value","magic":0}',
        '{"subject":"gone-value","version":1}',
    ),
    (
        '{"keytype":"SCHEMA","subject":"hard-value","version":1,"magic":1}',
        '{"subject":"hard-value","version":1,"id":7,"schema":"\\"double\\"","deleted":true}',
    ),
    ('{"keytype":"SCHEMA","subject":"hard-value","version":1,"magic":1}', None),
    ("not even JSON", "nor this"),
    ('{"keytype":"OF_THE_FUTURE","magic":9}', "{}"),
)


async def fill(cluster: Cluster, topic: str) -> None:
    await Admin(cluster).create_topic(NewTopic(topic, 1, 1, configs={"cleanup.policy": "compact"}))
    async with Producer(cluster) as producer:
        for key, value in RECORDS:
            await producer.send(topic, None if value is None else value.encode(), key.encode(), partition=0)


async def read(cluster: Cluster, topic: str, start: int, count: int) -> list[tuple[str, Any]]:
    consumer = Consumer(cluster)
    place = TopicPartition(topic, 0)
    await consumer.assign_at([place], OffsetSpec.EARLIEST)
    records: list[Any] = []
    async with asyncio.timeout(20):
        while len(records) < start + count:
            records += await consumer.poll(500)
    await consumer.close()
    return [(each.key.decode(), each.value and each.value.decode()) for each in records[start:]]


def test_a_node_reads_the_topic_and_goes_on_with_its_ids_and_bytes(broker: str, topic: str) -> None:
    async def main() -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await fill(cluster, topic)
            node = RegistryNode(
                load_settings(
                    "registry",
                    overrides={
                        "kafkastore.bootstrap.servers": broker,
                        "kafkastore.topic": topic,
                        "kafkastore.timeout.ms": "20000",
                        "schema.registry.group.id": topic,
                        "kafkagroup.heartbeat.interval.ms": "100",
                    },
                )
            )
            await node.start()
            state = node.state
            names = [subject.name for subject in state.subjects()]
            assert {"old-value", "users-value", "orders-value", ":.staging:users-value"} <= set(names)
            assert "hard-value" not in names
            gone = state.subject("gone-value")
            assert gone is not None and gone.versions[1].is_deleted
            order = state.subject("orders-value")
            assert order is not None
            content = order.versions[1].content
            assert content.schema_type == "JSON" and content.references[0].subject == "user"
            assert content.metadata is not None and content.metadata.property("owner") == "shop"
            assert content.rules is not None
            assert state.config_in_force("other").level == "FULL"
            assert state.config_in_force("users-value").level == "NONE"
            assert state.mode_in_force("old-value") == "READONLY"

            await until(lambda: node.seat.is_primary, 20)
            decider = Decider(state)

            async def change(command: commands.Command) -> Any:
                async def decide() -> commands.Decision[Any]:
                    return decider.decide(command, int(time.time() * 1000))

                return await node.changes.change(decide)

            registered = await change(RegisterSchema("new-value", SchemaRequest('{"type": "boolean"}')))
            assert registered.schema_id == 8, "7 was given once, to a schema that is gone"
            again = await change(RegisterSchema("new-value", SchemaRequest('{"type":"string"}'), force=True))
            assert again.schema_id == 1, "the same schema has the same id in its context"
            await change(DeleteSubject("orders-value"))
            written = await read(cluster, topic, len(RECORDS), 4)
            keys = [key for key, _ in written]
            assert keys == [
                '{"keytype":"NOOP","magic":0}',
                '{"keytype":"SCHEMA","subject":"new-value","version":1,"magic":1}',
                '{"keytype":"SCHEMA","subject":"new-value","version":2,"magic":1}',
                '{"keytype":"DELETE_SUBJECT","subject":"orders-value","magic":0}',
            ]
            value = json.loads(written[1][1])
            assert list(value) == ["subject", "version", "id", "md5", "schema", "deleted"]
            assert (value["id"], value["schema"]) == (8, '"boolean"')
            assert written[3][1] == '{"subject":"orders-value","version":1}'
            await node.stop()

    asyncio.run(main())
