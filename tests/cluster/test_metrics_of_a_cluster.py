"""Metrics of a cluster of three: what only shows with followers, voters and a controller elsewhere."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from barnabas.testing.cluster import Cluster
from barnabas.testing.ports import free_ports

DEADLINE_S = 60
RECORDS = 500
Pages = dict[int, dict[str, float]]


@pytest.fixture(scope="module")
def pages() -> Iterator[Callable[[], Pages]]:
    """The samples of all nodes, in the dialect of Strimzi, while records were replicated with `acks=all`."""
    ports = dict(zip((1, 2, 3), free_ports(3), strict=True))
    cluster = Cluster(combined=3)
    for node_id, port in ports.items():
        cluster[node_id].properties["barnabas.metrics.port"] = str(port)
    with cluster:
        cluster.create_topic("orders", partitions=3, replication_factor=3)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 0})
        for number in range(RECORDS):
            producer.produce("orders", str(number).encode(), partition=number % 3)
            producer.poll(0)
        assert producer.flush(60) == 0

        def read() -> Pages:
            return {node_id: samples(port) for node_id, port in ports.items()}

        yield read


def samples(port: int) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics?dialect=strimzi", timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    found = (re.fullmatch(r"(\w+(?:\{.*\})?) (\S+)", line) for line in lines if not line.startswith("#"))
    return {match[1]: float(match[2]) for match in found if match is not None}


def eventually(read: Callable[[], Pages], holds: Callable[[Pages], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not holds(read()):
        assert time.monotonic() < deadline, what
        time.sleep(0.2)


def total(pages: Pages, name: str) -> float:
    return sum(page.get(name, 0.0) for page in pages.values())


def test_exactly_one_node_is_the_active_controller_and_all_agree_on_it(pages: Callable[[], Pages]) -> None:
    found = pages()
    assert total(found, "kafka_controller_kafkacontroller_activecontrollercount") == 1
    leaders = {page["kafka_server_raftmetrics_current_leader"] for page in found.values()}
    assert len(leaders) == 1
    [leader] = leaders
    state = 'kafka_server_raftmetrics_current_state{current_state="leader"}'
    assert [id for id, page in found.items() if page.get(state) == 1] == [leader]
    for page in found.values():
        assert page["kafka_controller_kafkacontroller_activebrokercount"] == 3
        assert page["kafka_controller_kafkacontroller_offlinepartitionscount"] == 0


def test_followers_and_the_leader_of_the_quorum_show_their_work(pages: Callable[[], Pages]) -> None:
    found = pages()
    leader = next(page for page in found.values() if page["kafka_server_raftmetrics_commit_latency_avg"] > 0)
    assert leader["kafka_server_raftmetrics_number_of_voters"] == 3
    followers = [page for page in found.values() if page is not leader]
    for page in followers:
        for name in ("request", "response", "outgoing_byte", "incoming_byte"):
            assert page[f"kafka_server_raftchannelmetrics_{name}_total"] > 0


def test_fetches_of_followers_and_their_lag_show(pages: Callable[[], Pages]) -> None:
    found = pages()
    fetches = 'kafka_network_requestmetrics_totaltimems_count{request="FetchFollower"}'
    assert total(found, fetches) > 0
    of_orders = 'kafka_server_brokertopicmetrics_totalfetchrequests_total{topic="orders"}'
    assert total(found, of_orders) > 0  # there is no consumer
    lag = 'kafka_server_replicafetchermanager_maxlag{clientId="Replica"}'
    eventually(pages, lambda found: total(found, lag) == 0, "followers never caught up")
    for page in found.values():
        of_partitions = [
            name for name in page if name.startswith("kafka_server_fetcherlagmetrics_consumerlag")
        ]
        assert len([name for name in of_partitions if 'topic="orders"' in name]) == 2
    assert total(found, "kafka_server_replicamanager_leadercount") >= 3
    eventually(
        pages,
        lambda found: total(found, "kafka_server_replicamanager_underreplicatedpartitions") == 0,
        "partitions stay under-replicated",
    )


def test_produce_requests_show_the_wait_for_followers(pages: Callable[[], Pages]) -> None:
    found = pages()
    name = "kafka_network_requestmetrics_{}{}"
    remote = total(found, name.format("remotetimems", '_sum{request="Produce"}'))
    assert remote > 0
    counts = total(found, name.format("totaltimems", '_count{request="Produce"}'))
    assert counts >= 3
    errors = {
        name: total(found, name)
        for name in {name for page in found.values() for name in page}
        if name.startswith('kafka_network_requestmetrics_errors_total{request="Produce"')
    }
    assert sum(errors.values()) >= counts  # a leader may be asked before it knows that it leads
    assert errors['kafka_network_requestmetrics_errors_total{request="Produce",error="NONE"}'] >= 1
