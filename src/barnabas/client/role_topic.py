"""The topic that holds the bindings of roles: made, written, read to its end, and followed.

In: a Cluster. Out: bindings. It has one partition, so that all readers see changes in one order, and it is
compacted. A topic that does not exist has no bindings. Does not know: rules, decisions.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.admin.topics import NewTopic
from barnabas.client.consumer import Consumer, ConsumerSettings, OnOutOfRange
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import NoTopic
from barnabas.client.core.fetching import DamagedBatch
from barnabas.client.core.topology import TopicPartition
from barnabas.client.producer import Producer, ProducerSettings
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.acls.role_records import PRESENT, Bindings, key_of
from barnabas.security.acls.roles import Binding
from barnabas.security.acls.vocabulary import ROLES_TOPIC

Changes = list[tuple[Binding, bool]]
PLACE = TopicPartition(ROLES_TOPIC, 0)
REPLICAS = 3
POLL_MS = 1000.0
CONSUMING = ConsumerSettings(read_committed=True, on_out_of_range=OnOutOfRange.EARLIEST)


async def create_topic(cluster: ClusterCore) -> None:
    """Make the topic with three replicas, or as many as there are brokers. It may exist."""
    brokers = len((await cluster.retrying(cluster.refresh)).nodes)
    replicas = min(REPLICAS, max(brokers, 1))
    configs = {"cleanup.policy": "compact"}
    if replicas == REPLICAS:
        configs["min.insync.replicas"] = "2"
    try:
        await Admin(cluster).create_topic(NewTopic(ROLES_TOPIC, 1, replicas, configs=configs))
    except KafkaError as error:
        if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
            raise


async def write(cluster: ClusterCore, bindings: Iterable[Binding], *, present: bool) -> None:
    """Add bindings, or remove them; returns when all in-sync replicas have the records."""
    refused: list[Exception] = []
    settings = ProducerSettings(acks=-1, idempotence=False)
    async with Producer(cluster, settings, on_failure=lambda batch, error: refused.append(error)) as producer:
        for binding in bindings:
            await producer.send(ROLES_TOPIC, PRESENT if present else None, key_of(binding), partition=0)
        await producer.flush()
    if refused:
        raise refused[0]


async def read(cluster: ClusterCore) -> Bindings:
    """The bindings as the topic has them now."""
    found = Bindings()
    try:
        await cluster.topics([ROLES_TOPIC])
    except NoTopic:
        return found
    is_read = False

    async def caught_up() -> None:
        nonlocal is_read
        is_read = True

    await follow(cluster, found, nothing, caught_up, lambda: is_read)
    return found


async def nothing(changes: Changes) -> None:
    """Do nothing: the callback of readers that want the result alone."""


async def follow(
    cluster: ClusterCore,
    bindings: Bindings,
    changed: Callable[[Changes], Awaitable[None]],
    caught_up: Callable[[], Awaitable[None]],
    is_over: Callable[[], bool],
) -> None:
    """Read the topic from its start until `is_over`. `caught_up` is told once, when everything is read that
    was there at the start."""
    end = (await Admin(cluster).list_offsets({PLACE: OffsetSpec.LATEST}, read_committed=True))[PLACE]
    if isinstance(end, KafkaError):
        raise end
    goal: int | None = end.offset
    consumer = Consumer(cluster, CONSUMING)
    try:
        await consumer.assign_at([PLACE], OffsetSpec.EARLIEST)
        while True:
            if goal is not None and consumer.positions[PLACE] >= goal:
                goal = None
                await caught_up()
            if is_over():
                return
            try:
                records = await consumer.poll(POLL_MS)
            except DamagedBatch as damaged:
                consumer.assign({PLACE: damaged.next_offset})
                continue
            changes = bindings.apply((each.key, each.value) for each in records)
            if changes:
                await changed(changes)
    finally:
        await consumer.close()
