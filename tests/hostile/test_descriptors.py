"""Connections beyond the limit of open files: the node keeps what it needs, honest clients never notice."""

from __future__ import annotations

import contextlib
import os
import resource
import socket
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.runtime.descriptors import Shares
from barnabas.testing import Broker
from barnabas.testing.cluster import Cluster
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation

HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
LONG_QUEUE = {
    "socket.listen.backlog.size": "4096"
}  # else the kernel makes connections wait for a second each
ASK = ApiVersionsRequest(client_software_name="test", client_software_version="1")
BEYOND = 400  # connections more than the limit, or than the clients' share where the limit is out of reach


class Honest(threading.Thread):
    """Produces one record after the other; `errors` are those of records that were not delivered."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "acks": "all"})
        self.topic = topic
        self.delivered = 0
        self.errors: list[KafkaError] = []
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            self.producer.produce(self.topic, b"value", on_delivery=self._told)
            self.producer.flush(60)

    def _told(self, error: KafkaError | None, _: Any) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.errors.append(error)

    def has_delivered(self, count: int) -> None:
        """Wait for so many more."""
        wanted = self.delivered + count
        wait_until(lambda: self.delivered >= wanted or bool(self.errors), 60, "records to be delivered")
        assert not self.errors

    def finish(self) -> None:
        self._stopping.set()
        self.join(60)
        assert not self.is_alive()
        assert not self.errors


@contextmanager
def honest(bootstrap: str, topic: str) -> Iterator[Honest]:
    worker = Honest(bootstrap, topic)
    worker.start()
    worker.has_delivered(10)
    yield worker
    worker.has_delivered(10)
    worker.finish()


@contextmanager
def flood(port: int, count: int) -> Iterator[list[socket.socket]]:
    """Connections that say nothing."""
    found: list[socket.socket] = []
    try:
        for number in range(count):
            each = socket.socket()
            found.append(each)
            each.settimeout(10)
            each.bind((f"127.0.0.{2 + number % 5}", 0))
            with contextlib.suppress(ConnectionError):
                each.connect(("127.0.0.1", port))
        yield found
    finally:
        for each in found:
            each.close()


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def limits_of_open_files(pid: int) -> list[int]:
    """The soft and the hard limit of a process."""
    lines = Path(f"/proc/{pid}/limits").read_text().splitlines()
    line = next(line for line in lines if line.startswith("Max open files"))
    return [int(word) for word in line.split()[3:5]]


def open_descriptors(pid: int) -> int:
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def scraped(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.split("{")[0].split(" ")[0] == name)


def create_topic(admin: AdminClient, name: str) -> None:
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(30)


@pytest.mark.parametrize("limit", [256, 1024, pytest.param(65_536, marks=pytest.mark.long)])
def test_no_number_of_connections_harms_a_producer(limit: int) -> None:
    limit = min(limit, HARD)
    clients = Shares.of(limit).clients.limit
    count = clients + BEYOND if limit > 2000 else limit + BEYOND
    [metrics_port] = free_ports(1)
    overrides = {**LONG_QUEUE, "barnabas.metrics.port": metrics_port}
    with Broker(in_process=False, open_files=limit, overrides=overrides) as broker:
        create_topic(admin := AdminClient({"bootstrap.servers": broker.bootstrap}), "honest")
        with honest(broker.bootstrap, "honest") as worker:
            with flood(broker.port, count) as connections:
                wait_until(lambda: any(is_closed(each) for each in connections[-BEYOND:]))
                assert open_descriptors(broker.pid) < limit
                for number in range(5):
                    create_topic(admin, f"meanwhile-{number}")
                worker.has_delivered(20)
                assert scraped(metrics_port, "barnabas_server_connections_refused_total") > 0
            wait_until(lambda: open_descriptors(broker.pid) < clients)
            with honest(broker.bootstrap, "meanwhile-0"):
                create_topic(admin, "afterwards")
        assert broker.log_text.count("connections at once") == 1
        assert "ERROR" not in broker.log_text


def test_a_node_raises_its_soft_limit_and_serves_that_many() -> None:
    soft, hard = 256, min(4096, HARD)
    with Broker(in_process=False, open_files=(soft, hard), overrides=LONG_QUEUE) as broker:
        assert limits_of_open_files(broker.pid) == [hard, hard]
        broker.create_topic("honest")
        clients = 2 * soft
        assert clients < Shares.of(hard).clients.limit
        with flood(broker.port, clients) as connections, honest(broker.bootstrap, "honest"):
            wait_until(lambda: open_descriptors(broker.pid) > clients, what="all are accepted")
            assert not any(is_closed(each) for each in connections)


def test_a_new_client_gets_in_beside_connections_that_say_nothing() -> None:
    with Broker(in_process=False, open_files=256, overrides=LONG_QUEUE) as broker:
        broker.create_topic("honest")
        with flood(broker.port, 600), honest(broker.bootstrap, "honest"):
            pass


def test_a_flood_of_every_node_does_not_harm_replication() -> None:
    cluster = Cluster(combined=3, overrides={**LONG_QUEUE, "min.insync.replicas": 2})
    for node in cluster.nodes.values():
        node.open_files = 256
    with cluster:
        cluster.create_topic("honest", partitions=3, replication_factor=3)
        with honest(cluster.bootstrap, "honest") as worker, contextlib.ExitStack() as stack:
            for node in cluster.nodes.values():
                ports = [int(each.rpartition(":")[2]) for each in node.properties["listeners"].split(",")]
                for port in ports:
                    connections = stack.enter_context(flood(port, 400))
                    wait_until(lambda: is_closed(connections[-1]))  # noqa: B023
            worker.has_delivered(50)
            for node in cluster.nodes.values():
                assert node.is_running
                assert open_descriptors(node.pid) < 256


def test_a_flood_of_one_listener_does_not_keep_others_from_the_controllers() -> None:
    with Broker(in_process=False, open_files=256, overrides=LONG_QUEUE) as broker:
        controllers = SimpleNamespace(port=broker._controller_port)
        for port, asked in ((broker.port, controllers), (broker._controller_port, broker)):
            with flood(port, 300) as connections:
                wait_until(lambda: is_closed(connections[-1]))
                with Conversation(asked) as talk:
                    assert talk.ask(ASK, 3).error_code == 0


def test_a_client_that_never_reads_is_let_go() -> None:
    overrides = {"connections.max.idle.ms": "1000"}
    with Broker(in_process=False, overrides=overrides) as broker:
        broker.create_topic("large")
        producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 1_000_000})
        for _ in range(20):
            producer.produce("large", os.urandom(900_000))
        assert producer.flush(30) == 0
        del producer
        with Conversation(broker) as talk:
            talk.send((fetch_of("large"), 12))
            wait_until(lambda: connections_of(broker) == 1)
            wait_until(lambda: connections_of(broker) == 0, 20, "the connection to be closed")


def fetch_of(topic: str) -> FetchRequest:
    partition = FetchRequest.FetchTopic.FetchPartition(
        partition=0, fetch_offset=0, partition_max_bytes=20_000_000
    )
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=20_000_000,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[partition])],
    )


def connections_of(broker: Broker) -> int:
    """Sockets of the broker that are connected to a client."""
    found = psutil.Process(broker.pid).net_connections("tcp")
    return sum(each.status == psutil.CONN_ESTABLISHED and each.laddr.port == broker.port for each in found)
