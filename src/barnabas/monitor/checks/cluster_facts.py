"""The state of a cluster as values, read through Kafka's protocol: any broker that speaks it will do.

In: an Admin. Out: `ClusterFacts`. A part that a broker does not tell (an old version, a missing right, a
request that fails) is None, with the reason in `problems`; the others are read all the same.
Does not know: what is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster import LogDir, Quorum
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.core.errors import ClientError
from barnabas.client.core.topology import Node, Partition, TopicPartition
from barnabas.protocol import KafkaError

T = TypeVar("T")

MIN_ISR = "min.insync.replicas"
TOPICS_AT_ONCE = 200
READ_S_MAX = 60.0
BROKER_S_MAX = 10.0
ERRORS = (KafkaError, ClientError, OSError, TimeoutError)


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    cluster_id: str | None
    controller_id: int
    brokers: Mapping[int, Node]
    partitions: Mapping[TopicPartition, Partition]
    min_isr: Mapping[str, int]  # of topics with replicas out of sync
    quorum: Quorum | None = None
    log_dirs: Mapping[int, tuple[LogDir, ...]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)  # by the part that could not be read


async def read_cluster(admin: Admin) -> ClusterFacts:
    """Raises if no broker can be asked for metadata; everything else may be missing."""
    async with asyncio.timeout(READ_S_MAX):
        topology = await admin.cluster.retrying(lambda: admin.cluster.refresh(None))
        problems: dict[str, str] = {}

        async def part(name: str, coming: Awaitable[T]) -> T | None:
            try:
                return await coming
            except ERRORS as error:
                problems[name] = str(error) or type(error).__name__
                return None

        described = await part("fenced brokers", admin.describe_cluster(fenced=True))
        nodes = described.nodes if described is not None else tuple(topology.nodes.values())
        partitions = {
            TopicPartition(topic.name, partition.index): partition
            for topic in topology.topics.values()
            for partition in topic.partitions.values()
        }
        behind = sorted(
            {name.topic for name, each in partitions.items() if len(each.isr) < len(each.replicas)}
        )
        min_isr = await part("settings of topics", read_min_isr(admin, behind))
        quorum = await part("quorum", admin.describe_quorum())
        log_dirs = await read_log_dirs(admin, [node for node in nodes if not node.fenced], problems)
    return ClusterFacts(
        topology.cluster_id,
        topology.controller_id,
        {node.id: node for node in nodes},
        partitions,
        min_isr or {},
        quorum,
        log_dirs,
        problems,
    )


async def read_min_isr(admin: Admin, topics: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(topics), TOPICS_AT_ONCE):
        asked = [ConfigResource(ResourceType.TOPIC, name) for name in topics[start : start + TOPICS_AT_ONCE]]
        for resource, entries in (await admin.describe_configs(asked, names=[MIN_ISR])).items():
            for each in entries:
                if each.value is not None:
                    found[resource.name] = int(each.value)
    return found


async def read_log_dirs(
    admin: Admin, nodes: list[Node], problems: dict[str, str]
) -> dict[int, tuple[LogDir, ...]]:
    """Ask all brokers side by side: one that hangs holds up none."""

    async def ask(node: Node) -> tuple[LogDir, ...] | None:
        try:
            async with asyncio.timeout(BROKER_S_MAX):
                return tuple((await admin.describe_log_dirs([node]))[node.id])
        except ERRORS as error:
            problems[f"log dirs of broker {node.id}"] = str(error) or type(error).__name__
            return None

    found = await asyncio.gather(*map(ask, nodes))
    return {node.id: dirs for node, dirs in zip(nodes, found, strict=True) if dirs is not None}
