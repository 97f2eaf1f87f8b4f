"""Each runbook of docs/operations.md on real nodes: the page gives the commands, a test does the rest."""

from __future__ import annotations

import inspect
import json
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from barnabas.testing import Broker
from barnabas.testing.cluster import CLUSTER_ID, Cluster, ClusterNode
from barnabas.testing.waiting import wait_until
from operations.runbooks import Runbook, sections
from poisoned_batches import UNCOMPRESSED

PATIENCE_S = 90.0
SECONDS_OF_SESSION = {"broker.session.timeout.ms": 3000}
METADATA = "__cluster_metadata-0"


def produce(bootstrap: str, topic: str, count: int, partition: int = -1, size: int = 10) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 5})
    for number in range(count):
        producer.produce(topic, value=str(number).encode().ljust(size, b"."), partition=partition)
        producer.poll(0)
    assert producer.flush(PATIENCE_S) == 0


def consume(bootstrap: str, topic: str, count: int) -> list[bytes]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"check-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    found: list[bytes] = []
    try:

        def has_all() -> bool:
            message = consumer.poll(1.0)
            if message is not None and message.error() is None:
                found.append(message.value())
            return len(found) >= count

        wait_until(has_all, PATIENCE_S)
    finally:
        consumer.close()
    return found


def properties_file(node: ClusterNode, folder: Path) -> Path:
    path = folder / f"server-{node.id}.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in node.properties.items()))
    return path


def wait_until_in_sync(runbook: Runbook) -> None:
    """Repeat the runbook's next command until it prints nothing."""
    command = "topics --describe --under-replicated"
    wait_until(lambda: runbook.run(command, repeat=True) == "", PATIENCE_S)
    runbook.run(command)


def metadata_folder(node: ClusterNode) -> Path:
    return Path(node.properties["log.dirs"].split(",")[0]) / METADATA


@pytest.fixture
def three() -> Iterator[Cluster]:
    with Cluster(combined=3, overrides=SECONDS_OF_SESSION) as cluster:
        cluster.create_topic("orders", 3, 3, {"min.insync.replicas": 2})
        yield cluster


@pytest.mark.long
def test_replace_a_disk(tmp_path: Path) -> None:
    with Cluster(3, overrides=SECONDS_OF_SESSION) as cluster:
        node = cluster[3]
        node.stop()
        first = node.properties["log.dirs"]
        second = str(tmp_path / "second")
        node.properties["log.dirs"] = f"{first},{second}"
        node.format(ignore_formatted=True)
        node.start()
        cluster.create_topic("orders", 6, 3)
        produce(cluster.bootstrap, "orders", 300)
        with Runbook("Replace a disk", cluster.bootstrap) as runbook:
            assert second in runbook.run("log-dirs", broker=3)
            node.stop()
            shutil.rmtree(second)
            given = properties_file(node, tmp_path)
            runbook.run("storage format", server_properties=given, cluster_id=CLUSTER_ID)
            node.start()
            wait_until_in_sync(runbook)
        assert len(list(Path(second).glob("orders-*"))) > 0
        assert len(consume(cluster.bootstrap, "orders", 300)) == 300


@pytest.mark.long
def test_lose_a_host(three: Cluster, tmp_path: Path) -> None:
    produce(three.bootstrap, "orders", 300)
    node = three[3]
    node.kill()
    shutil.rmtree(node.properties["log.dirs"])
    with Runbook("Lose a host", three.bootstrap) as runbook:
        wait_until(lambda: "orders" in runbook.run("topics --describe", repeat=True), PATIENCE_S)
        runbook.run("topics --describe")
        given = properties_file(node, tmp_path)
        runbook.run("storage format", server_properties=given, cluster_id=CLUSTER_ID)
        node.start()
        wait_until_in_sync(runbook)
        runbook.run("leader-election")
    assert len(consume(three.bootstrap, "orders", 300)) == 300


@pytest.mark.long
def test_roll_an_upgrade(three: Cluster) -> None:
    failures: list[object] = []
    stopping = threading.Event()
    sent = 0

    def write() -> None:
        nonlocal sent
        once = {"enable.idempotence": True, "linger.ms": 5}
        producer = Producer({"bootstrap.servers": three.bootstrap, **once})

        def delivered(error: object, message: object) -> None:
            if error is not None:
                failures.append(error)

        while not stopping.wait(0.01):
            producer.produce("orders", str(sent).encode(), callback=delivered)
            producer.poll(0)
            sent += 1
        assert producer.flush(PATIENCE_S) == 0

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with Runbook("Roll an upgrade", three.bootstrap) as runbook:
            assert "Nothing is wrong." in runbook.run("health")
            for number in (1, 2, 3):
                three[number].stop()
                three[number].start()
                command = "topics --describe --under-replicated"
                wait_until(lambda: runbook.run(command, repeat=True) == "", PATIENCE_S)  # noqa: B023
            runbook.run(command)
            assert "metadata.version" in runbook.run("features describe")
            runbook.run("features upgrade")
            runbook.run("leader-election")
    finally:
        stopping.set()
        writer.join(PATIENCE_S)
    assert failures == []
    assert len({*consume(three.bootstrap, "orders", sent)}) == sent


@pytest.mark.long
def test_grow_a_cluster(three: Cluster, tmp_path: Path) -> None:
    produce(three.bootstrap, "orders", 300)
    with Runbook("Grow a cluster", three.bootstrap) as runbook:
        node = three.add_broker(4)
        node.start()
        assert "4" in runbook.run("cluster list-endpoints")
        topics = tmp_path / "topics.json"
        topics.write_text(json.dumps({"version": 1, "topics": [{"topic": "orders"}]}))
        shown = runbook.run("reassign-partitions --generate", topics_json=topics, brokers="2,3,4")
        plan = tmp_path / "plan.json"
        plan.write_text(shown.strip().splitlines()[-1])
        runbook.run("reassign-partitions --execute", plan_json=plan)
        verify = "reassign-partitions --verify"
        wait_until(
            lambda: "still in progress" not in runbook.run(verify, repeat=True, plan_json=plan), PATIENCE_S
        )
        runbook.run(verify, plan_json=plan)
    (described,) = three.ask(lambda admin: admin.describe_topics(["orders"]))
    assert {broker for each in described.partitions for broker in each.replicas} == {2, 3, 4}
    assert len(consume(three.bootstrap, "orders", 300)) == 300


@pytest.mark.long
def test_a_hot_partition(three: Cluster, tmp_path: Path) -> None:
    produce(three.bootstrap, "orders", 500, partition=1)
    (described,) = three.ask(lambda admin: admin.describe_topics(["orders"]))
    replicas = list(described.partitions[1].replicas)
    with Runbook("A hot partition", three.bootstrap) as runbook:
        assert "orders:1:500" in runbook.run("get-offsets", topic="orders")
        runbook.run("log-dirs", topic="orders")
        plan = tmp_path / "plan.json"
        moved = [*replicas[1:], replicas[0]]
        entry = {"topic": "orders", "partition": 1, "replicas": moved}
        plan.write_text(json.dumps({"version": 1, "partitions": [entry]}))
        runbook.run("reassign-partitions --execute", plan_json=plan)
        verify = "reassign-partitions --verify"
        wait_until(
            lambda: "still in progress" not in runbook.run(verify, repeat=True, plan_json=plan), PATIENCE_S
        )
        runbook.run(verify, plan_json=plan)
        runbook.run("leader-election", topic="orders", partition=1)

    def leader() -> int | None:
        (found,) = three.ask(lambda admin: admin.describe_topics(["orders"]))
        leader: int | None = found.partitions[1].leader
        return leader

    wait_until(lambda: leader() == moved[0], PATIENCE_S)


def test_a_poisoned_topic() -> None:
    with Broker(in_process=False, overrides={"barnabas.produce.validation": "none"}) as broker:
        broker.create_topic("orders", partitions=1)
        produce(broker.bootstrap, "orders", 3)
        send_batch(broker.bootstrap, next(iter(UNCOMPRESSED.values())))
        produce(broker.bootstrap, "orders", 3)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
        consumer.commit(offsets=[TopicPartition("orders", 0, 3)], asynchronous=False)
        consumer.close()
        with Runbook("A poisoned topic", broker.bootstrap) as runbook:
            runbook.run("consume", topic="orders", partition=0, offset=3, status=1)
            runbook.run("consumer-groups", group="readers", topic="orders", partition=0, next_offset=4)
            runbook.run("configs --alter", topic="orders")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
        consumer.subscribe(["orders"])
        found = [consumer.poll(PATIENCE_S) for _ in range(3)]
        consumer.close()
        assert [each.offset() for each in found if each is not None] == [4, 5, 6]


def send_batch(bootstrap: str, batch: bytes) -> None:
    from barnabas.client.blocking import BlockingCluster, run
    from barnabas.client.core.address import parse_bootstrap
    from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse

    partition = ProduceRequest.TopicProduceData.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(name="orders", partition_data=[partition])
    request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
    with BlockingCluster(parse_bootstrap(bootstrap)) as client:
        connection = run(client.any_connection())
        response = run(connection.send(request, ProduceResponse, version=9))
    assert response.responses[0].partition_responses[0].error_code == 0


def test_a_full_disk(tmp_path: Path) -> None:
    overrides = {"log.retention.check.interval.ms": 500, "log.initial.task.delay.ms": 100}
    with Broker(in_process=False, overrides={**overrides, "log.segment.bytes": 1_048_576}) as broker:
        broker.create_topic("logs", partitions=1)
        produce(broker.bootstrap, "logs", 5_000, size=1_000)
        with Runbook("A full disk", broker.bootstrap) as runbook:
            runbook.run("log-dirs")
            runbook.run("configs --alter", topic="logs", bytes=1_048_576)
            assert "retention.bytes=1048576" in runbook.run("configs --describe", topic="logs")
            admin = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "watch"})
            place = TopicPartition("logs", 0)
            wait_until(lambda: admin.get_watermark_offsets(place, timeout=10)[0] > 0, PATIENCE_S)
            admin.close()
            runbook.run("configs --alter", topic="logs")


def test_a_stuck_group() -> None:
    with Broker(in_process=False) as broker:
        broker.create_topic("orders", partitions=2)
        produce(broker.bootstrap, "orders", 20)
        given = {"bootstrap.servers": broker.bootstrap, "group.id": "slow", "enable.auto.commit": False}
        member = Consumer({**given, "auto.offset.reset": "earliest"})
        member.subscribe(["orders"])
        wait_until(lambda: member.poll(1.0) is not None and len(member.assignment()) == 2, PATIENCE_S)
        member.commit(
            offsets=[TopicPartition("orders", 0, 0), TopicPartition("orders", 1, 0)], asynchronous=False
        )
        with Runbook("A stuck group", broker.bootstrap) as runbook:
            assert "20" in runbook.run("lag", group="slow")
            assert "slow" in runbook.run("consumer-groups --describe", group="slow")
            member.close()
            wait_until(
                lambda: "Empty" in runbook.run("consumer-groups --describe", repeat=True, group="slow"),
                PATIENCE_S,
            )
            runbook.run("consumer-groups --describe", group="slow")
            runbook.run("consumer-groups --group", group="slow", topic="orders")
        committed = Consumer(given)
        found = committed.committed([TopicPartition("orders", 0), TopicPartition("orders", 1)], timeout=10)
        committed.close()
        assert sum(each.offset for each in found) == 20


@pytest.mark.long
def test_a_lost_quorum(tmp_path: Path) -> None:
    with Cluster(2, controllers=3, overrides=SECONDS_OF_SESSION) as cluster:
        cluster.create_topic("orders", 3, 2)
        produce(cluster.bootstrap, "orders", 300)
        survivor, *lost = cluster.controllers
        for node in lost:
            node.kill()
            shutil.rmtree(node.properties["log.dirs"])
        with Runbook("A lost quorum", cluster.bootstrap) as runbook:
            (log, *_) = sorted(metadata_folder(survivor).glob("*.log"))
            assert "TOPIC_RECORD" in runbook.run("dump-log", metadata_log=log)
            survivor.stop()
            for node in lost:
                given = properties_file(node, tmp_path)
                runbook.run(
                    "storage format",
                    repeat=node is not lost[-1],
                    server_properties=given,
                    cluster_id=CLUSTER_ID,
                )
                shutil.rmtree(metadata_folder(node), ignore_errors=True)
                shutil.copytree(
                    metadata_folder(survivor),
                    metadata_folder(node),
                    ignore=shutil.ignore_patterns("quorum-state"),
                )
            for node in cluster.controllers:
                node.spawn()
            for node in cluster.controllers:
                node.wait()
            assert "LeaderId" in runbook.run("metadata-quorum")
        cluster.create_topic("later", 1, 2)
        produce(cluster.bootstrap, "later", 10)
        assert len(consume(cluster.bootstrap, "orders", 300)) == 300


def test_restore_from_a_folder(tmp_path: Path) -> None:
    data, backup = tmp_path / "data", tmp_path / "backup"
    with Broker(data=data, in_process=False) as broker:
        broker.create_topic("orders", partitions=1)
        produce(broker.bootstrap, "orders", 50)
    shutil.copytree(data, backup)
    shutil.rmtree(data)
    shutil.copytree(backup, data)
    with (
        Broker(data=data, in_process=False) as broker,
        Runbook("Restore from a folder", broker.bootstrap) as runbook,
    ):
        given = tmp_path / "server.properties"
        given.write_text(
            f"process.roles=broker,controller\nnode.id=1\nlog.dirs={data}\n"
            "controller.listener.names=CONTROLLER\ncontroller.quorum.voters=1@localhost:9093\n"
            "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\n"
        )
        assert str(data) in runbook.run("storage info", server_properties=given)
        assert "orders:0:50" in runbook.run("get-offsets", topic="orders")


def test_every_runbook_has_a_test() -> None:
    source = inspect.getsource(sys.modules[__name__])
    missing = [heading for heading in sections() if f'Runbook("{heading}"' not in source]
    assert missing == []
    assert len(sections()) == 10
