"""The Cassandra sink against three nodes, of which one is killed while a worker writes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from cassandra import ConsistencyLevel, DriverException
from cassandra.cluster import Cluster, NoHostAvailable, Session
from cassandra.query import SimpleStatement
from tests.connect.connectors.killed_sink import changes, last_of_each, run_with_kills
from tests.stores import java_servers

from barnabas.testing.broker import Broker
from barnabas.testing.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(1200)]
REPLICAS = "{'class': 'SimpleStrategy', 'replication_factor': 3}"


class Nodes:
    """Three nodes; `stop` and `start` are those of the last one, without which two make a quorum."""

    is_needed = False

    def __init__(self, nodes: list[java_servers.Cassandra], session: Session) -> None:
        self.nodes = nodes
        self.session = session

    def stop(self) -> None:
        self.nodes[-1].stop()

    def start(self) -> None:
        self.nodes[-1].start()


@pytest.fixture
def cluster() -> Iterator[Nodes]:
    reason = java_servers.CASSANDRA.available()
    if reason is not None:
        pytest.skip(f"no Cassandra: {reason}")
    with contextlib.ExitStack() as running:
        first = running.enter_context(java_servers.Cassandra())
        others = [
            running.enter_context(java_servers.Cassandra(address=f"127.0.0.{number}", first=first))
            for number in (2, 3)
        ]
        driver = Cluster(["127.0.0.1"], port=first.port, connect_timeout=60)
        session = driver.connect()
        session.default_timeout = 60
        running.callback(driver.shutdown)

        def is_whole() -> bool:
            return sum(1 for host in driver.metadata.all_hosts() if host.is_up) == 3

        wait_until(is_whole, 120)
        session.execute(f"CREATE KEYSPACE shop WITH replication = {REPLICAS}")
        session.execute("CREATE TABLE shop.killed (key text PRIMARY KEY, id int, text text)")
        yield Nodes([first, *others], session)


def test_a_cluster_that_loses_a_node_loses_no_row(
    cluster: Nodes, barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    rows = changes("cassandra-cluster", 2000, 60)
    connector = {
        "name": "cassandra",
        "connector.class": "com.datastax.oss.kafka.sink.CassandraSinkConnector",
        "topics": barnabas_topic,
        "contactPoints": "127.0.0.1, 127.0.0.2",
        "port": str(cluster.nodes[0].port),
        "loadBalancing.localDc": "datacenter1",
        f"topic.{barnabas_topic}.shop.killed.mapping": "key=key, id=value.id, text=value.text",
        f"topic.{barnabas_topic}.shop.killed.consistencyLevel": "QUORUM",
        "maxConcurrentRequests": "1",
        "maxNumberOfRecordsInBatch": "2",
    }
    query = SimpleStatement(
        "SELECT key, id, text FROM shop.killed", consistency_level=ConsistencyLevel.QUORUM
    )

    def highest() -> int:
        try:
            return max((row.id for row in cluster.session.execute(query)), default=-1)
        except (NoHostAvailable, DriverException):
            return -1  # a node has gone a moment ago

    run_with_kills(tmp_path, barnabas_broker.bootstrap, connector, rows, highest, cluster)
    found = cluster.session.execute(query)
    assert {row.key: {"id": row.id, "text": row.text} for row in found} == last_of_each(rows)
