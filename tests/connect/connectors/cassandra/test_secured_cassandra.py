"""The Cassandra sinks against a real node that asks for TLS, a password and a certificate."""

from __future__ import annotations

import gc
import ssl
from collections.abc import Iterator

import pytest
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster
from tests.connect.connectors.cassandra.test_cassandra import Server, records
from tests.connect.connectors.contexts import started_sink
from tests.security.tls_world import certificates
from tests.stores import java_servers

from barnabas.connect.connectors.cassandra.cassandra_sink import (
    MappedCassandraSinkConnector,
    TableCassandraSinkConnector,
)
from barnabas.connect.data import INT64, struct
from barnabas.connect.plugins import ConnectError, RetriableError, SinkTask
from barnabas.testing.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
ORDER = struct(name="Order", n=INT64)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    reason = java_servers.CASSANDRA.available()
    if reason is not None:
        pytest.skip(f"no Cassandra: {reason}")
    found = certificates()
    context = ssl.create_default_context(cafile=found.ca_file)
    login = PlainTextAuthProvider("cassandra", "cassandra")
    keystore = found.write("cassandra.p12", found.broker.pkcs12("node", "secret"))
    truststore = found.write("clients.p12", found.authority.trust_pkcs12("ca", "secret"))
    context.load_cert_chain(found.alice_file)
    with java_servers.Cassandra(keystore, truststore) as node:
        port = node.port
        cluster = Cluster(
            ["127.0.0.1"], port=port, connect_timeout=60, auth_provider=login, ssl_context=context
        )

        def connects() -> bool:  # the first user is made a moment after the port is open
            try:
                cluster.connect()
            except Exception:
                return False
            return True

        wait_until(connects, 120)
        session = cluster.connect()
        session.default_timeout = 60
        session.execute(
            "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
        )
        session.execute("CREATE TABLE shop.a (id int PRIMARY KEY, n bigint)")
        yield Server(port, session)
        cluster.shutdown()


def mapped(server: Server, **more: str) -> SinkTask:
    config = {
        "contactPoints": "127.0.0.1",
        "port": str(server.port),
        "loadBalancing.localDc": "datacenter1",
        "auth.provider": "PLAIN",
        "auth.username": "cassandra",
        "auth.password": "cassandra",
        "ssl.provider": "JDK",
        "ssl.truststore.path": certificates().ca_file,
        "ssl.truststore.type": "PEM",
        "ssl.keystore.path": certificates().alice_file,
        "ssl.keystore.type": "PEM",
        "topic.t.shop.a.mapping": "id=key, n=value.n",
    }
    return started_sink(MappedCassandraSinkConnector, {**config, **more})


def test_rows_are_written_over_tls_with_a_password(server: Server) -> None:
    task = mapped(server)
    task.put(records("t", [(1, {"n": 1}), (2, {"n": 2})]))
    task.stop()
    assert server.rows("SELECT id, n FROM shop.a") == [(1, 1), (2, 2)]
    own = certificates().write("alice.p12", certificates().alice.pkcs12("alice", "own"))
    trusted = certificates().write("ca.p12", certificates().authority.trust_pkcs12("ca", "trusted"))
    config = {
        "cassandra.contact.points": "127.0.0.1",
        "cassandra.port": str(server.port),
        "cassandra.local.datacenter": "datacenter1",
        "cassandra.keyspace": "shop",
        "cassandra.security.enabled": "true",
        "cassandra.password": "cassandra",
        "cassandra.ssl.enabled": "true",
        "cassandra.ssl.truststore.path": trusted,
        "cassandra.ssl.truststore.password": "trusted",
        "cassandra.ssl.keystore.path": own,
        "cassandra.ssl.keystore.password": "own",
        "cassandra.consistency.level": "ONE",
    }
    other = started_sink(TableCassandraSinkConnector, config)
    other.put(records("made", [({"id": 1}, {"n": 5})], key=struct(id=INT64), value=ORDER))
    other.stop()
    assert server.rows("SELECT id, n FROM shop.made") == [(1, 5)]


def stranger() -> str:
    found = certificates()
    return found.store("mallory.pem", found.mallory)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_wrong_password_fails_the_task_and_a_strange_certificate_is_told(server: Server) -> None:
    task = mapped(server, **{"auth.password": "wrong"})
    with pytest.raises(ConnectError, match="credentials") as failed:
        task.put(records("t", [(1, {"n": 1})]))
    assert not isinstance(failed.value, RetriableError)
    task = mapped(server, **{"ssl.truststore.path": certificates().other_ca_file})
    with pytest.raises(RetriableError, match="CERTIFICATE_VERIFY_FAILED"):
        task.put(records("t", [(1, {"n": 1})]))
    for keystore in ({"ssl.keystore.path": ""}, {"ssl.keystore.path": stranger()}):
        task = mapped(server, **keystore)
        with pytest.raises(RetriableError, match="Unable to connect"):
            task.put(records("t", [(1, {"n": 1})]))
    del task
    gc.collect()  # the driver leaves sockets of refused connections open
