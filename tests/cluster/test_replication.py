"""Partitions with three replicas on real processes: what is acknowledged stays, whoever dies."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import psutil
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from barnabas.client.admin.topics import NewTopic
from barnabas.client.asyncio_network import connect
from barnabas.client.core import topology
from barnabas.client.core.address import parse_address
from barnabas.metadata.configs import CLUSTER_DEFAULT
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.records.batch import headers
from barnabas.records.compression import Compression
from barnabas.records.record import iter_records
from barnabas.testing.cluster import Cluster, ClusterNode
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation, batch, fetch, produce
from cluster.replicated import QUIET, SOON, Writer, leader, log_bytes, metadata, read, wait_for_isr
from poisoned_batches import UNCOMPRESSED, compressed

EVERYBODY = {1, 2, 3}
# What a leader says of a topic that it has not heard of yet, or has no replica of.
NOT_YET = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER
Data = FetchResponse.FetchableTopicResponse.PartitionData


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    nearby = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    with Cluster(brokers=3, overrides={**SOON, **nearby}, racks=("a", "b", "c")) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: Cluster) -> Cluster:
    """Whole again, whatever the test before did."""
    running.start_again()
    admin = AdminClient({"bootstrap.servers": running.bootstrap, **QUIET})
    wait_until(lambda: len(admin.list_topics(timeout=10).brokers) == 3, 20, what="three brokers are there")
    return running


def test_what_is_acknowledged_lies_on_every_replica(cluster: Cluster) -> None:
    cluster.create_topic("copies", replication_factor=3)
    writer = Writer(cluster.bootstrap, "copies")
    writer.write(500)
    writer.flush()
    assert writer.failed == []
    copies = [log_bytes(node, "copies") for node in cluster.brokers]
    assert len(copies[0]) > 500
    assert copies[0] == copies[1] == copies[2]
    assert read(cluster.bootstrap, "copies", 0, 500) == list(range(500))


def test_a_consumer_is_sent_to_the_replica_in_its_rack(cluster: Cluster) -> None:
    cluster.ask(lambda admin: admin.create_topic(NewTopic("near", assignments=[[1, 2, 3]])))
    writer = Writer(cluster.bootstrap, "near")
    writer.write(10)
    writer.flush()
    topic_id = cluster.ask(lambda admin: admin.describe_topics(["near"]))[0].topic_id

    async def fetch_from(node_id: int) -> Data:
        request = FetchRequest(max_wait_ms=100, min_bytes=1, rack_id="b")
        asked = FetchRequest.FetchTopic.FetchPartition(partition=0, partition_max_bytes=1 << 20)
        request.topics = [FetchRequest.FetchTopic(topic_id=topic_id, partitions=[asked])]
        connection = await connect(parse_address(cluster[node_id].address))
        try:
            answer = await connection.send(request, FetchResponse)
        finally:
            await connection.close()
        return answer.responses[0].partitions[0]

    sent = asyncio.run(fetch_from(1))
    assert (sent.preferred_read_replica, sent.records) == (2, b"")
    # The follower hears of the high watermark with its next fetch.
    wait_until(lambda: len(asyncio.run(fetch_from(2)).records or b""), what="the follower serves the records")


@contextmanager
def without_followers(
    cluster: Cluster, topic: str, *, in_sync_for_ever: bool = False
) -> Iterator[Conversation]:
    """A conversation with the leader while all others stand still; also the controller, where it must not
    notice before the test is over, however slow the machine is."""
    first = leader(cluster, topic)
    others = [node for node in cluster.brokers if node is not first]
    if in_sync_for_ever:
        others += cluster.controllers
    with Conversation(cast(Any, None), port=int(first.address.rpartition(":")[2])) as talk:
        errors: list[int] = []

        def leads() -> bool:
            """Seen once, such a request takes the shortcut from then on."""
            errors.append(error_of(talk.ask(*produce(topic, batch(b"0"), acks=-1))))
            return errors[-1] not in NOT_YET

        wait_until(leads, what="the leader has made its replica")
        assert not errors[-1]
        for node in others:
            node.pause()
        try:
            yield talk
        finally:
            for node in others:
                node.resume()


def error_of(answer: ProduceResponse) -> int:
    return answer.responses[0].partition_responses[0].error_code


def test_answers_wait_for_followers_and_leave_in_the_order_of_requests(cluster: Cluster) -> None:
    cluster.create_topic("waits", replication_factor=3)
    first = leader(cluster, "waits")
    with without_followers(cluster, "waits") as talk:
        size = len(log_bytes(first, "waits"))
        talk.send(produce("waits", batch(b"1"), acks=-1), produce("waits", batch(b"2"), acks=-1))
        talk.send(produce("waits", batch(b"3"), acks=1), fetch("waits", 0))
        wait_until(lambda: len(log_bytes(first, "waits")) == 4 * size, what="the leader has all four")
        assert not talk.has_answer()
        for node in cluster.brokers:
            node.resume()
        assert [error_of(talk.receive()) for _ in range(3)] == [0, 0, 0]
        assert talk.receive().responses[0].partitions[0].records


def test_batches_of_more_requests_than_may_wait_for_followers_are_written_as_they_came(
    cluster: Cluster,
) -> None:
    """The followers' fetches let producers go on, whose batches must not land where others still lie."""
    cluster.create_topic("pipelined", replication_factor=3)
    first = leader(cluster, "pipelined")
    others = [node for node in cluster.brokers if node is not first]
    port, count = int(first.address.rpartition(":")[2]), 1_000
    requests = [produce("pipelined", batch(b"%06d" % number * 20), acks=-1) for number in range(count)]
    with ExitStack() as stack:
        talks = [stack.enter_context(Conversation(cast(Any, None), port=port)) for _ in range(3)]
        for node in others:
            node.pause()
        for number in range(0, count, 50):
            for talk in talks:
                talk.send(*requests[number : number + 50])
        for node in others:
            node.resume()
        assert {error_of(talk.receive()) for _ in range(count) for talk in talks} == {0}
    copies = [log_bytes(node, "pipelined") for node in cluster.brokers]
    assert copies[0] == copies[1] == copies[2]
    written = [next(iter_records(copies[0], position=at)).value for at, _ in headers(copies[0])]
    assert sorted(written, key=bytes) == sorted(
        b"%06d" % number * 20 for number in range(count) for _ in talks
    )


def connections(follower: ClusterNode, to: ClusterNode) -> int:
    port = int(to.address.rpartition(":")[2])
    found = psutil.Process(follower.pid).net_connections(kind="tcp")
    return sum(bool(each.raddr) and each.raddr.port == port for each in found)


def test_followers_fetch_over_as_many_connections_as_they_are_told_to_while_they_run(
    cluster: Cluster,
) -> None:
    placed = NewTopic("spread", assignments=[[1, 2, 3]] * 8)
    cluster.ask(lambda admin: admin.create_topic(placed))
    writers = [Writer(cluster.bootstrap, "spread", partition) for partition in range(8)]

    def write_everywhere() -> None:
        for writer in writers:
            writer.write(20)
        for partition, writer in enumerate(writers):
            writer.flush()
            assert writer.failed == []
            copies = [log_bytes(node, "spread", partition) for node in cluster.brokers]
            assert copies[0] and copies[0] == copies[1] == copies[2]

    write_everywhere()
    before = connections(cluster[2], cluster[1])

    def fetch_with(count: str) -> None:
        cluster.ask(lambda admin: admin.alter_configs(CLUSTER_DEFAULT, {"num.replica.fetchers": count}))
        wanted = before + int(count) - 1
        wait_until(lambda: connections(cluster[2], cluster[1]) == wanted, 20, what="connections")

    for count in ("2", "1"):
        fetch_with(count)
        write_everywhere()


def test_a_producer_is_told_when_followers_take_longer_than_it_waits(cluster: Cluster) -> None:
    cluster.create_topic("slow", replication_factor=3)
    with without_followers(cluster, "slow", in_sync_for_ever=True) as talk:
        request, version = produce("slow", batch(b"1"), acks=-1)
        request.timeout_ms = 300
        assert error_of(talk.ask(request, version)) == ErrorCode.REQUEST_TIMED_OUT


def delete_before(topic: str, offset: int, timeout_ms: int) -> tuple[DeleteRecordsRequest, int]:
    wanted = DeleteRecordsRequest.DeleteRecordsTopic
    partition = wanted.DeleteRecordsPartition(partition_index=0, offset=offset)
    request = DeleteRecordsRequest(topics=[wanted(name=topic, partitions=[partition])], timeout_ms=timeout_ms)
    return request, 2


def deleted(answer: DeleteRecordsResponse) -> tuple[int, int]:
    result = answer.topics[0].partitions[0]
    return result.error_code, result.low_watermark


def test_records_count_as_deleted_when_every_replica_has_deleted_them(cluster: Cluster) -> None:
    cluster.create_topic("shorter", replication_factor=3)
    writer = Writer(cluster.bootstrap, "shorter")
    writer.write(10)
    writer.flush()
    with without_followers(cluster, "shorter") as talk:
        assert deleted(talk.ask(*delete_before("shorter", 3, 300))) == (ErrorCode.REQUEST_TIMED_OUT, 0)
        talk.send(delete_before("shorter", 5, 30_000))
        assert not talk.has_answer()
        for node in cluster.brokers:
            node.resume()
        assert deleted(talk.receive()) == (0, 5)
        assert deleted(talk.ask(*delete_before("shorter", 4, 30_000))) == (0, 5)  # that is so already
    first = leader(cluster, "shorter")
    with Conversation(cast(Any, None), port=int(first.address.rpartition(":")[2])) as talk:
        next(node for node in cluster.brokers if node is not first).kill()
        # Who is away is waited for until the controller knows that it is.
        assert deleted(talk.ask(*delete_before("shorter", -1, 30_000))) == (0, 11)


def test_a_killed_leader_loses_nothing_and_comes_back_in_sync(cluster: Cluster) -> None:
    cluster.create_topic("survives", replication_factor=3)
    writer = Writer(cluster.bootstrap, "survives")
    writer.write_more(200)
    dead = leader(cluster, "survives")
    dead.kill()
    writer.write_more(200)
    assert leader(cluster, "survives").id != dead.id
    dead.start()
    wait_for_isr(cluster, "survives", EVERYBODY)
    writer.write_more(200)
    writer.flush()
    assert writer.failed == []
    found = read(cluster.bootstrap, "survives", 0, writer.sent)
    assert found == list(range(writer.sent))  # each once, in order
    wait_until(
        lambda: len({log_bytes(node, "survives") for node in cluster.brokers}) == 1,
        what="all replicas have the same bytes",
    )


def test_what_only_the_dead_leader_had_is_cut_off_when_it_returns(cluster: Cluster) -> None:
    cluster.create_topic("parts", replication_factor=3)
    writer = Writer(cluster.bootstrap, "parts")
    writer.write_more(20)
    writer.flush()
    dead = leader(cluster, "parts")
    others = [node for node in cluster.brokers if node is not dead]
    alone = Producer({"bootstrap.servers": dead.address, "acks": 1, **QUIET})
    alone.list_topics("parts", timeout=10)
    before = len(log_bytes(dead, "parts"))
    for node in others:
        node.pause()
    try:
        # The first may be on its way in answers to fetches that wait; nobody has asked for the second.
        for number in (b"-1", b"-2"):
            alone.produce("parts", number, partition=0)
            assert alone.flush(5) == 0
        wait_until(lambda: len(log_bytes(dead, "parts")) > before, what="the leader has them")
        dead.kill()
    finally:
        for node in others:
            node.resume()
    writer.write_more(20)
    dead.start()
    wait_for_isr(cluster, "parts", EVERYBODY)
    writer.flush()
    found = read(cluster.bootstrap, "parts", 0, writer.sent, last=writer.sent - 1)
    assert [number for number in found if number != -1] == list(range(writer.sent))
    wait_until(
        lambda: len({log_bytes(node, "parts") for node in cluster.brokers}) == 1,
        what="all replicas have the same bytes",
    )


def test_with_too_few_in_sync_acks_all_is_refused_and_acks_one_is_not(cluster: Cluster) -> None:
    cluster.create_topic("strict", replication_factor=3)
    first = leader(cluster, "strict")
    for node in cluster.brokers:
        if node is not first:
            node.kill()
    wait_for_isr(cluster, "strict", {first.id})
    settings = {"bootstrap.servers": first.address, "message.timeout.ms": 3000, "retries": 0, **QUIET}
    told: list[KafkaError | None] = []
    for acks in ("all", "1"):
        producer = Producer({**settings, "acks": acks})
        producer.produce("strict", b"0", partition=0, on_delivery=lambda error, _: told.append(error))
        producer.flush(10)
    assert told[0] is not None
    assert told[0].code() == KafkaError.NOT_ENOUGH_REPLICAS
    assert told[1] is None


def test_a_broker_that_leaves_hands_over_without_a_failed_request(cluster: Cluster) -> None:
    cluster.create_topic("goes", partitions=3, replication_factor=3)
    writers = [Writer(cluster.bootstrap, "goes", partition, retries=10) for partition in range(3)]
    for writer in writers:
        writer.write_more(50)
    gone = leader(cluster, "goes")
    gone.stop()
    for writer in writers:
        writer.write_more(50)
        writer.flush()
        assert writer.failed == []
    assert all(metadata(cluster, "goes", partition).leader != gone.id for partition in range(3))
    for writer in writers:
        assert read(cluster.bootstrap, "goes", writer.partition, writer.sent) == list(range(writer.sent))


def test_a_partition_moves_to_other_brokers_under_load(cluster: Cluster) -> None:
    cluster.ask(lambda admin: admin.create_topic(NewTopic("moves", assignments=[[1]])))
    writer = Writer(cluster.bootstrap, "moves")
    writer.write_more(200)
    cluster.ask(lambda admin: admin.alter_reassignments({topology.TopicPartition("moves", 0): [2, 3]}))
    writer.write_more(200)

    def moved() -> bool:
        writer.write()
        found = metadata(cluster, "moves")
        return set(found.replicas) == {2, 3} and found.leader in (2, 3)

    wait_until(moved, 20, what="the partition is on brokers 2 and 3")
    writer.write_more(50)
    writer.flush()
    assert writer.failed == []
    assert read(cluster.bootstrap, "moves", 0, writer.sent) == list(range(writer.sent))
    wait_until(lambda: not (cluster[1].folder / "moves-0").exists(), what="broker 1 has put it away")


def test_groups_and_their_offsets_go_on_with_another_coordinator(cluster: Cluster) -> None:
    cluster.create_topic("read", replication_factor=3)
    writer = Writer(cluster.bootstrap, "read")
    writer.write(50)
    writer.flush()
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "movers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
        }
    )
    consumer.subscribe(["read"])
    seen: list[int] = []

    def read_up_to(count: int) -> None:
        def enough() -> bool:
            seen.extend(int(each.value() or b"") for each in consumer.consume(100, 0.1) if not each.error())
            return len(seen) >= count

        wait_until(enough, 30, what=lambda: f"{len(seen)} of {count} were read")
        consumer.commit(asynchronous=False)

    read_up_to(50)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    group = admin.describe_consumer_groups(["movers"])["movers"].result(20)
    cluster[group.coordinator.id].kill()
    writer.write(50)
    read_up_to(100)
    writer.flush()
    assert seen == list(range(100))
    consumer.close()
    running = next(node for node in cluster.brokers if node.is_running)
    later = Consumer({"bootstrap.servers": running.address, "group.id": "movers", **QUIET})
    assert later.committed([TopicPartition("read", 0)], timeout=20)[0].offset == 100
    later.close()


def test_a_transaction_is_whole_though_its_coordinator_dies_in_it(cluster: Cluster) -> None:
    cluster.create_topic("whole", partitions=3, replication_factor=3)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "whole", **QUIET})
    producer.init_transactions(30)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    for turn in range(3):
        producer.begin_transaction()
        for number in range(30):
            producer.produce("whole", str(turn * 30 + number).encode(), partition=number % 3)
        producer.flush(30)
        if turn == 1:
            offsets = admin.list_topics("__transaction_state", timeout=10).topics["__transaction_state"]
            state = java_hash("whole") % len(offsets.partitions)
            cluster[offsets.partitions[state].leader].kill()
        producer.commit_transaction(30)
    found = [
        read(cluster.bootstrap, "whole", partition, 30, **{"isolation.level": "read_committed"})
        for partition in range(3)
    ]
    assert sorted(number for some in found for number in some) == list(range(90))


def java_hash(text: str) -> int:
    from barnabas.broker.coordinators.topic import hash_of

    return hash_of(text)


def test_other_clients_find_the_new_leader(cluster: Cluster) -> None:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from kafka import KafkaConsumer, KafkaProducer

    cluster.create_topic("others", replication_factor=3)

    async def with_aiokafka() -> None:
        async with AIOKafkaProducer(bootstrap_servers=cluster.bootstrap, acks="all") as producer:
            await producer.send_and_wait("others", b"0")
            await asyncio.to_thread(leader(cluster, "others").kill)
            await producer.send_and_wait("others", b"1")
        async with AIOKafkaConsumer(
            "others", bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            assert [(await consumer.getone()).value for _ in range(2)] == [b"0", b"1"]

    asyncio.run(with_aiokafka())
    # This one leaves sockets open that were refused: it is told of those only who are there.
    alive = ",".join(node.address for node in cluster.brokers if node.is_running)
    producer = KafkaProducer(bootstrap_servers=alive, acks="all", retries=20)
    producer.send("others", b"2").get(30)
    producer.close()
    consumer = KafkaConsumer(
        "others",
        bootstrap_servers=alive,
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
    )
    assert [next(consumer).value for _ in range(3)] == [b"0", b"1", b"2"]
    consumer.close()


def test_records_that_are_none_are_followed_as_they_are(cluster: Cluster) -> None:
    """Followers look at checksums, as those of Apache Kafka do: what the leader stored is stored."""
    configs = {"barnabas.produce.validation": "none"}
    cluster.create_topic("garbage", partitions=2, replication_factor=3, configs=configs)
    poisons = [UNCOMPRESSED[name] for name in ("text instead of a record", "a record of negative size")]
    poisons.append(compressed(Compression.LZ4)["plain records under a codec"])
    writer = Writer(cluster.bootstrap, "garbage")
    writer.write(1)
    writer.flush()  # its leader leads
    with Conversation(cast(Any, None), port=port_of(leader(cluster, "garbage"))) as talk:
        for poison in poisons:
            assert not error_of(talk.ask(*produce("garbage", poison, acks=-1)))
        assert not error_of(talk.ask(*produce("garbage", batch(b"sound"), acks=-1)))
    copies = [log_bytes(node, "garbage") for node in cluster.brokers]
    assert sum(map(len, poisons)) < len(copies[0])
    assert copies[0] == copies[1] == copies[2]


def test_damage_in_one_partition_of_a_leader_does_not_stop_the_others(cluster: Cluster) -> None:
    names = ["unhurt", "hurt"]
    for name in names:
        cluster.ask(lambda admin, topic=name: admin.create_topic(NewTopic(topic, assignments=[[1, 2]])))
        writer = Writer(cluster.bootstrap, name)
        writer.write(1)
        writer.flush()
    follower = cluster[2]
    follower.stop()
    for name in names:
        with Conversation(cast(Any, None), port=port_of(cluster[1])) as talk:
            assert not error_of(talk.ask(*produce(name, batch(b"first", b"second"), acks=1)))
    path = cluster[1].folder / "hurt-0" / "00000000000000000000.log"
    with path.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xff")
    follower.start()
    wait_for_isr(cluster, "unhurt", {1, 2})
    wait_until(
        lambda: any("hurt-0 cannot follow its leader" in line for line in follower.lines),
        what="the follower says what it does not follow",
    )
    with Conversation(cast(Any, None), port=port_of(cluster[1])) as talk:
        assert not error_of(talk.ask(*produce("unhurt", batch(b"third"), acks=-1)))
    assert log_bytes(cluster[2], "unhurt") == log_bytes(cluster[1], "unhurt")
    assert len(log_bytes(cluster[2], "hurt")) < len(log_bytes(cluster[1], "hurt"))


def port_of(node: ClusterNode) -> int:
    return int(node.address.rpartition(":")[2])
