"""Brokers of both products in one cluster: each leads the other's followers, and follows its leaders."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer

from barnabas.client.admin.elections import ElectionType
from barnabas.client.admin.topics import NewTopic
from barnabas.client.asyncio_network import connect
from barnabas.client.core.address import parse_address
from barnabas.client.core.errors import ConnectionLost
from barnabas.protocol import Message, apis
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.testing.cluster import APACHE, BARNABAS, Cluster, ClusterNode
from barnabas.testing.waiting import wait_until
from cluster.replicated import QUIET, SOON, Writer, leader, log_bytes, metadata, read, wait_for_isr

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.usefixtures("java")]
EVERYBODY = {1, 2, 3}
LATER = {
    **SOON,
    "broker.session.timeout.ms": 6_000,
    "replica.lag.time.max.ms": 10_000,
    "auto.create.topics.enable": "false",
}


@pytest.fixture(scope="module", params=[BARNABAS, pytest.param(APACHE, marks=pytest.mark.long)])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A controller of either product; broker 2 is Apache Kafka's, 1 and 3 are ours."""
    made = Cluster(brokers=3, controllers=1, overrides=LATER)
    made[101].product = request.param
    made[2].product = APACHE
    with made:
        yield made


def create(cluster: Cluster, name: str) -> None:
    """Three partitions, each led by another broker."""
    topic = NewTopic(name, assignments=[[1, 2, 3], [2, 3, 1], [3, 1, 2]])
    cluster.ask(lambda admin: admin.create_topic(topic))
    wait_until(
        lambda: [metadata(cluster, name, number).leader for number in range(3)] == [1, 2, 3],
        what="each broker leads a partition",
    )


def test_replicas_of_both_products_hold_the_same_bytes(cluster: Cluster) -> None:
    create(cluster, "same")
    for partition in range(3):
        writer = Writer(cluster.bootstrap, "same", partition)
        writer.write(300)
        writer.flush()
        assert writer.failed == []
        copies = [log_bytes(node, "same", partition) for node in cluster.brokers]
        assert len(copies[0]) > 300
        assert copies[0] == copies[1] == copies[2]
        assert read(cluster.bootstrap, "same", partition, 300) == list(range(300))


def questions(topic_id: bytes) -> Iterator[tuple[Message, int]]:
    """What may be asked of any broker, also oddly, in every version; answers name no broker's own things."""
    wanted = MetadataRequest.MetadataRequestTopic
    names = ("same", "nobody", "", "a b", "x" * 250, "same")
    for version in range(14):
        for name in names:
            yield MetadataRequest(topics=[wanted(name=name)]), version
        yield MetadataRequest(topics=[wanted(name="same"), wanted(name="same")]), version
        if version:
            yield MetadataRequest(topics=[]), version
            yield MetadataRequest(topics=None), version
        if version >= 12:
            for each in (topic_id, bytes([9]) * 16):
                yield MetadataRequest(topics=[wanted(topic_id=each, name=None)]), version
    described = DescribeTopicPartitionsRequest
    cursors = (None, ("same", 1), ("same", 9), ("same", -1), ("nobody", 0), ("zzz", 0))
    for limit in (2000, 1, 0, -1):
        for cursor in cursors:
            yield (
                described(
                    topics=[described.TopicRequest(name=name) for name in ("same", "nobody", "same")],
                    response_partition_limit=limit,
                    cursor=described.Cursor(topic_name=cursor[0], partition_index=cursor[1])
                    if cursor
                    else None,
                ),
                0,
            )
    for version in range(3):
        for endpoints in (1, 2, 7):
            for fenced in (False, True) if version == 2 else (False,):
                request = DescribeClusterRequest(include_fenced_brokers=fenced)
                if version or endpoints == 1:
                    request.endpoint_type = endpoints
                    yield request, version


async def ask_all(node: ClusterNode, topic_id: bytes) -> list[str]:
    connection = await connect(parse_address(node.address))
    try:
        answers = []
        for request, version in questions(topic_id):
            key = request.schema.key
            assert key is not None
            try:
                answer = await connection.send(request, apis.response_class(key), version=version)
            except ConnectionLost:
                answers.append(f"{request!r} v{version}: closed")
                await connection.close()
                connection = await connect(parse_address(node.address))
                continue
            answers.append(f"{request!r} v{version}: {in_order(answer)}")
        return answers
    finally:
        await connection.close()


def in_order(answer: Any) -> str:
    """Brokers and topics come in any order; who is named as controller is any broker that is there."""
    for name in ("brokers", "topics"):
        if hasattr(answer, name):
            setattr(answer, name, sorted(getattr(answer, name), key=repr))
    if hasattr(answer, "controller_id"):
        answer.controller_id = -1 if answer.controller_id < 0 else 1
    return repr(answer)


def test_brokers_of_both_products_describe_the_cluster_alike(cluster: Cluster) -> None:
    """After `same` was made above."""
    topic_id = cluster.ask(lambda admin: admin.describe_topics(["same"]))[0].topic_id
    ours, theirs = (asyncio.run(ask_all(cluster[each], topic_id)) for each in (1, 2))
    assert len(ours) > 150
    different = [f"{one}\n{other}" for one, other in zip(ours, theirs, strict=True) if one != other]
    assert not different, "\n\n".join(different)


@pytest.mark.long
def test_a_leader_of_either_product_may_die(cluster: Cluster) -> None:
    create(cluster, "dies")
    writers = [Writer(cluster.bootstrap, "dies", partition) for partition in range(3)]
    for dead in (cluster[2], cluster[1]):
        for writer in writers:
            writer.write_more(50)
        dead.kill()
        for writer in writers:
            writer.write_more(50, 60)
        assert all(metadata(cluster, "dies", number).leader != dead.id for number in range(3))
        dead.start()
        for number in range(3):
            wait_for_isr(cluster, "dies", EVERYBODY, number)
    for writer in writers:
        writer.flush()
        assert writer.failed == []
        assert read(cluster.bootstrap, "dies", writer.partition, writer.sent) == list(range(writer.sent))


def test_transactions_and_groups_reach_over_both_products(cluster: Cluster) -> None:
    create(cluster, "from")
    create(cluster, "to")
    feed = Producer({"bootstrap.servers": cluster.bootstrap, **QUIET})
    for number in range(60):
        feed.produce("from", str(number).encode(), partition=number % 3)
    feed.flush(20)
    for turn in range(4):  # other ids and groups: other coordinators
        move_all(cluster, f"movers-{turn}", 60)
    for partition in range(3):
        found = read(cluster.bootstrap, "to", partition, 80, **{"isolation.level": "read_committed"})
        assert sorted(found) == sorted(list(range(partition, 60, 3)) * 4)


def move_all(cluster: Cluster, name: str, count: int) -> None:
    """A group moves so many records from one topic to the other, in transactions."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.subscribe(["from"])
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": name, **QUIET})
    producer.init_transactions(30)
    moved = 0

    def move() -> bool:
        nonlocal moved
        some = [each for each in consumer.consume(20, 0.2) if each.error() is None]
        if some:
            producer.begin_transaction()
            for each in some:
                producer.produce("to", each.value(), partition=each.partition())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), 30)
            producer.commit_transaction(30)
        moved += len(some)
        return moved >= count

    wait_until(move, 60, what=lambda: f"{moved} of {count} records are moved")
    consumer.close()


def test_leadership_is_handed_over_and_back(cluster: Cluster) -> None:
    create(cluster, "back")
    writer = Writer(cluster.bootstrap, "back", 1)
    writer.write_more(50)
    cluster[2].stop()
    writer.write_more(50, 60)
    assert leader(cluster, "back", 1).product == BARNABAS
    cluster[2].start()
    wait_for_isr(cluster, "back", EVERYBODY, 1)
    cluster.ask(lambda admin: admin.elect_leaders(ElectionType.PREFERRED, None))
    wait_until(lambda: leader(cluster, "back", 1).id == 2, what="the preferred leader leads again")
    writer.write_more(50, 60)
    writer.flush()
    assert writer.failed == []
    assert read(cluster.bootstrap, "back", 1, writer.sent) == list(range(writer.sent))


@pytest.mark.long
def test_three_brokers_are_replaced_one_by_one_and_back_under_load() -> None:
    """On the same folders: Apache Kafka's data is ours, and ours is Apache Kafka's."""
    made = Cluster(brokers=3, controllers=1, overrides=LATER)
    for node in made.nodes.values():
        node.product = APACHE
    with made as cluster:
        create(cluster, "rolls")
        writers = [Writer(cluster.bootstrap, "rolls", partition) for partition in range(3)]
        for product in (BARNABAS, APACHE):
            for node in cluster.brokers:
                for writer in writers:
                    writer.write_more(20, 60)
                node.stop()
                node.product = product
                node.start()
                for partition in range(3):
                    wait_for_isr(cluster, "rolls", EVERYBODY, partition)
        for writer in writers:
            writer.write_more(20, 60)
            writer.flush()
            assert writer.failed == []
            found = read(cluster.bootstrap, "rolls", writer.partition, writer.sent)
            assert found == list(range(writer.sent))
