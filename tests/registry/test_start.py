"""The start of a node: a large topic, brokers that are late, and logins at the brokers."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import AuthenticationError, Unreachable
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.registry.log.schema_log import NOOP
from barnabas.registry.log.topic import WrongTopic
from barnabas.registry.node import RegistryNode
from barnabas.registry.state.records import compact
from barnabas.security.acls.rules import Rule
from barnabas.security.acls.vocabulary import Operation, PatternType, Permission, ResourceType
from barnabas.services.errors import ApiError
from barnabas.services.settings.loading import load_settings
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import until
from security.secured_broker import LOGIN, USERS, SecuredBroker

from .numbers import Change

VERSIONS_OF_A_SUBJECT = 10
CPU_S_MAX = 10.0


def node_of(broker: str, topic: str, **overrides: str) -> RegistryNode:
    given = {
        "kafkastore.bootstrap.servers": broker,
        "kafkastore.topic": topic,
        "kafkastore.timeout.ms": "20000",
        "schema.registry.group.id": topic,
        "kafkagroup.heartbeat.interval.ms": "100",
    }
    return RegistryNode(load_settings("registry", overrides={**given, **overrides}))


def schema(number: int) -> dict[str, Any]:
    fields = [{"name": f"field_{each}", "type": ["null", "string"], "default": None} for each in range(8)]
    return {"type": "record", "name": f"Record{number}", "namespace": "shop", "fields": fields}


async def fill(cluster: Cluster, topic: str, count: int) -> None:
    await Admin(cluster).create_topic(NewTopic(topic, 1, 1, configs={"cleanup.policy": "compact"}))
    async with Producer(cluster, ProducerSettings(batch_size_bytes=1 << 18, linger_ms=5)) as producer:
        for index in range(count):
            subject, version = f"subject-{index // VERSIONS_OF_A_SUBJECT}", index % VERSIONS_OF_A_SUBJECT + 1
            key = compact({"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1})
            value = {"subject": subject, "version": version, "id": index + 1}
            text = json.dumps(schema(index), separators=(",", ":"))
            await producer.send(topic, compact({**value, "schema": text, "deleted": False}), key, partition=0)


@pytest.mark.parametrize("count", [2_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_a_large_topic_is_read_at_the_start(broker: str, topic: str, count: int) -> None:
    async def main() -> float:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await fill(cluster, topic, count)
        node = node_of(broker, topic)
        begun = time.process_time()
        await node.start()
        cpu_s = time.process_time() - begun
        assert len(node.state.subjects()) == count / VERSIONS_OF_A_SUBJECT
        assert node.next_offset == count
        await node.stop()
        return cpu_s

    cpu_s = asyncio.run(main())
    assert cpu_s < CPU_S_MAX * max(count, 20_000) / 100_000, f"{cpu_s:.1f} s of CPU"


def test_a_node_waits_for_brokers_that_start_later(topic: str) -> None:
    (port,) = free_ports(1)

    async def main() -> None:
        node = node_of(f"127.0.0.1:{port}", topic)
        starting = asyncio.create_task(node.start())
        await until(lambda: node.why_not_ready() is not None)
        assert not starting.done()
        broker = await asyncio.to_thread(Broker(port=port).__enter__)
        try:
            await starting
            await until(lambda: node.why_not_ready() is None, 20)
            await node.stop()
        finally:
            await asyncio.to_thread(broker.__exit__, None, None, None)

    asyncio.run(main())


def test_brokers_that_never_answer_end_the_start_in_time(topic: str) -> None:
    (port,) = free_ports(1)

    async def main() -> None:
        node = node_of(f"127.0.0.1:{port}", topic, **{"kafkastore.init.timeout.ms": "500"})
        with pytest.raises(Unreachable, match="cannot connect"):
            await node.start()

    asyncio.run(main())


def test_a_topic_that_is_not_compacted_ends_the_start_with_the_reason(broker: str, topic: str) -> None:
    async def main() -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await Admin(cluster).create_topic(NewTopic(topic, 1, 1, configs={"cleanup.policy": "delete"}))
        with pytest.raises(WrongTopic, match="which deletes schemas"):
            await node_of(broker, topic).start()
        unchecked = node_of(broker, topic, **{"kafkastore.topic.skip.validation": "true"})
        await unchecked.start()
        await unchecked.stop()

    asyncio.run(main())


def allowed(kind: ResourceType, name: str, *operations: Operation) -> list[Rule]:
    literal, allow = PatternType.LITERAL, Permission.ALLOW
    return [Rule(kind, name, literal, "User:ann", "*", operation, allow) for operation in operations]


RIGHTS = [
    *allowed(
        ResourceType.TOPIC,
        "schemas",
        Operation.CREATE,
        Operation.READ,
        Operation.WRITE,
        Operation.DESCRIBE_CONFIGS,
    ),
    *allowed(ResourceType.GROUP, "registries", Operation.READ),
    *allowed(ResourceType.TRANSACTIONAL_ID, "schema-registry-schemas", Operation.WRITE),
]


def test_a_node_logs_in_and_needs_only_the_rights_that_the_guide_names() -> None:
    login = f'{LOGIN} username="ann" password="{USERS["ann"]}";'
    secured = {
        "schema.registry.group.id": "registries",
        "kafkastore.security.protocol": "SASL_PLAINTEXT",
        "kafkastore.sasl.mechanism": "PLAIN",
        "kafkastore.sasl.jaas.config": login,
        "kafkastore.timeout.ms": "2000",
    }

    async def written(node: RegistryNode) -> object:
        await until(lambda: node.seat.is_primary, 20)

        async def decide() -> Change:
            return Change([NOOP], 7)

        try:
            return await node.changes.change(decide)
        except ApiError as refusal:
            return refusal.message

    async def main(broker: SecuredBroker) -> None:
        async with Cluster(parse_bootstrap(broker.bootstrap)) as administrator:
            *most, group, fence = RIGHTS
            await Admin(administrator).create_acls(most)
            node = node_of(broker.sasl, "schemas", **secured)
            await node.start()
            await until(lambda: "GROUP_AUTHORIZATION_FAILED" in (node.why_not_ready() or ""), 20)
            await Admin(administrator).create_acls([group])
            refusal = await written(node)
            assert "schema-registry-schemas" in str(refusal) and "AUTHORIZATION" in str(refusal)
            await Admin(administrator).create_acls([fence])
            async with asyncio.timeout(20):
                while (told := await written(node)) != 7:
                    assert "AUTHORIZATION" in str(told)
            await node.stop()
        wrong = {**secured, "kafkastore.sasl.jaas.config": login.replace("anns-word", "no")}
        with pytest.raises(AuthenticationError):
            await node_of(broker.sasl, "schemas", **wrong).start()

    with SecuredBroker() as broker:
        asyncio.run(main(broker))
