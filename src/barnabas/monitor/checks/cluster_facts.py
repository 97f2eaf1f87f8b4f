"""The state of a cluster as values, read through Kafka's protocol: any broker that speaks it will do.

In: an Admin. Out: `ClusterFacts`. Each part has a time of its own. A part that a broker does not tell (an old
version, a missing right, a request that fails) is None, with the reason in `problems`; the others are read
all the same. Does not know: what is wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster import LogDir, Quorum
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.core.errors import ClientError, ConnectError, ConnectionLost, RequestTimeout
from barnabas.client.core.topology import Node, Partition, TopicPartition
from barnabas.protocol import ErrorCode, KafkaError

T = TypeVar("T")

MIN_ISR = "min.insync.replicas"
TOPICS_AT_ONCE = 200
PART_S_MAX = 8.0
ERRORS = (KafkaError, ClientError, OSError, TimeoutError)
NOT_CONNECTED = (ConnectError, ConnectionLost, OSError)  # OSError includes TimeoutError
FENCED, SETTINGS, QUORUM = "fenced brokers", "settings of topics", "quorum"
QUORUM_CONNECTION = "quorum"
LEADERLESS_CODES = (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_CONTROLLER)


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
    leaderless: str = ""  # why no leader of the quorum answered, if none did
    silent: Mapping[int, str] = field(default_factory=dict)  # brokers that cannot be connected to, and why


def log_dirs_of(broker: int) -> str:
    """The name of the part."""
    return f"log dirs of broker {broker}"


async def read_cluster(admin: Admin) -> ClusterFacts:
    """Raises if no broker can be asked for metadata; everything else may be missing."""
    topology = await in_time("metadata", admin.cluster.retrying(lambda: admin.cluster.refresh(None)))
    problems: dict[str, str] = {}
    partitions = {
        TopicPartition(topic.name, partition.index): partition
        for topic in topology.topics.values()
        for partition in topic.partitions.values()
    }
    behind = sorted({name.topic for name, each in partitions.items() if len(each.isr) < len(each.replicas)})

    async def part(name: str, coming: Awaitable[T]) -> T | None:
        try:
            return await in_time(name, coming)
        except ERRORS as error:
            problems[name] = reason_of(error)
            return None

    described, min_isr, (quorum, leaderless) = await asyncio.gather(
        part(FENCED, admin.describe_cluster(fenced=True)),
        part(SETTINGS, read_min_isr(admin, behind)),
        read_quorum(admin, problems),
    )
    nodes = described.nodes if described is not None else tuple(topology.nodes.values())
    log_dirs, silent = await read_log_dirs(admin, [node for node in nodes if not node.fenced], problems)
    return ClusterFacts(
        topology.cluster_id,
        topology.controller_id,
        {node.id: node for node in nodes},
        partitions,
        min_isr or {},
        quorum,
        log_dirs,
        problems,
        leaderless,
        silent,
    )


async def in_time(name: str, coming: Awaitable[T]) -> T:
    """TimeoutError names the part that nobody answered."""
    try:
        async with asyncio.timeout(PART_S_MAX):
            return await coming
    except TimeoutError:
        raise TimeoutError(f"no answer about {name} within {PART_S_MAX:g} s") from None


def reason_of(error: BaseException) -> str:
    return str(error) or type(error).__name__


async def read_quorum(admin: Admin, problems: dict[str, str]) -> tuple[Quorum | None, str]:
    """The quorum, or why no leader answered. A quorum that cannot be asked about has neither."""
    patience = admin.cluster.patience(PART_S_MAX * 1000)

    async def attempt() -> Quorum:
        return await admin.describe_quorum(QUORUM_CONNECTION)

    try:
        return await in_time(QUORUM, admin.cluster.retrying(attempt, patience=patience)), ""
    except ERRORS as error:
        problems[QUORUM] = reason_of(error)
        # The broker may still hold the request back: the next one goes by another connection.
        await admin.cluster.disconnect(QUORUM_CONNECTION)
        return None, problems[QUORUM] if means_no_leader(error) else ""


def means_no_leader(error: BaseException) -> bool:
    """A broker forwards the request to the leader: where there is none, it waits, or says so."""
    if isinstance(error, KafkaError):
        return error.code.retriable or error.code in LEADERLESS_CODES
    return isinstance(error, TimeoutError | RequestTimeout)


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
) -> tuple[dict[int, tuple[LogDir, ...]], dict[int, str]]:
    """Ask all brokers side by side: one that hangs holds up none. Returns also the brokers that cannot be
    connected to; one that is connected and does not tell (it is busy, a right is missing) is not among
    them."""
    silent: dict[int, str] = {}

    async def ask(node: Node) -> tuple[LogDir, ...] | None:
        name = log_dirs_of(node.id)
        try:
            await in_time(f"the connection to {node.address}", admin.cluster.connection_to(node.address))
        except ERRORS as error:
            problems[name] = reason_of(error)
            if isinstance(error, NOT_CONNECTED):
                silent[node.id] = problems[name]
            return None
        try:
            return tuple((await in_time(name, admin.describe_log_dirs([node])))[node.id])
        except ERRORS as error:
            problems[name] = reason_of(error)
            if isinstance(error, ConnectionLost):
                silent[node.id] = problems[name]
            return None

    found = await asyncio.gather(*map(ask, nodes))
    return {node.id: dirs for node, dirs in zip(nodes, found, strict=True) if dirs is not None}, silent
