"""The MongoDB sink against FerretDB: logins with SCRAM, certificates, ordered bulk writes, kills."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from tests.connect.connectors.mongo.test_mongo_sink import ID, lives_through_kills, records, sink
from tests.security.tls_world import certificates
from tests.stores import ferret_server

from barnabas.connect.plugins import ConnectError, RetriableError
from barnabas.testing.broker import Broker

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(900),
    pytest.mark.skipif(ferret_server.available() is not None, reason=str(ferret_server.available())),
]
STRATEGIES = "com.mongodb.kafka.connect.sink.writemodel.strategy"
BY_VALUE = {ID: "com.mongodb.kafka.connect.sink.processor.id.strategy.ProvidedInValueStrategy"}


@pytest.fixture(scope="module")
def server() -> Iterator[ferret_server.FerretDb]:
    with ferret_server.FerretDb() as found:
        yield found


def documents(uri: str, **more: Any) -> list[dict[str, Any]]:
    with MongoClient[dict[str, Any]](uri, **more) as client:
        return sorted(client["shop"]["t"].find(), key=lambda row: int(row["_id"]))


def test_a_login_with_scram(server: ferret_server.FerretDb) -> None:
    task = sink(server.uri(), **BY_VALUE)
    task.put(records([(None, {"_id": 1, "n": 1})]))
    task.stop()
    assert documents(server.uri()) == [{"_id": 1, "n": 1}]
    for login in ("barnabas:wrong@", "stranger:secret@", ""):
        task = sink(server.uri(login), **BY_VALUE)
        with pytest.raises(ConnectError, match="MongoDB refuses the connector") as failed:
            task.put(records([(None, {"_id": 2})]))
        assert not isinstance(failed.value, RetriableError)
        task.stop()
    assert documents(server.uri()) == [{"_id": 1, "n": 1}]


@pytest.mark.parametrize("ordered", ["true", "false"])
def test_single_documents_are_refused(server: ferret_server.FerretDb, ordered: str) -> None:
    with MongoClient[dict[str, Any]](server.uri()) as client:
        client["shop"]["t"].drop()
        client["shop"]["t"].create_index("n", unique=True)
    errant: list[Any] = []
    inserts = {"writemodel.strategy": f"{STRATEGIES}.InsertOneDefaultStrategy"}
    task = sink(server.uri(), errant, **BY_VALUE, **inserts, **{"bulk.write.ordered": ordered})
    numbers = [1, 1, 3, 3, 5]  # those of the second and the fourth document are those of others
    task.put(records([(None, {"_id": id, "n": number}) for id, number in enumerate(numbers)]))
    task.stop()
    assert documents(server.uri()) == [{"_id": 0, "n": 1}, {"_id": 2, "n": 3}, {"_id": 4, "n": 5}]
    assert [offset for offset, _ in errant] == [1, 3]
    assert "duplicate key" in errant[0][1]


def test_certificates_of_both_sides_are_checked() -> None:
    found = certificates()
    files = (
        found.write("ferret.pem", found.broker.chain_pem),
        found.write("ferret-key.pem", found.broker.key_pem),
        found.ca_file,
    )
    truststore = found.write("mongo-ca.p12", found.authority.trust_pkcs12("ca", "trusted"))
    keystore = found.write("mongo-alice.p12", found.alice.pkcs12("alice", "own"))
    trusts = {"connection.ssl.truststore": truststore, "connection.ssl.truststorePassword": "trusted"}
    own = {"connection.ssl.keystore": keystore, "connection.ssl.keystorePassword": "own"}
    with ferret_server.FerretDb(files) as secured:
        task = sink(secured.uri(), **BY_VALUE, **trusts, **own)
        task.put(records([(None, {"_id": 7})]))
        task.stop()
        pem = {"tls": True, "tlsCAFile": found.ca_file, "tlsCertificateKeyFile": found.alice_file}
        assert documents(secured.uri(), **pem) == [{"_id": 7}]
        more = {**BY_VALUE, "server.selection.timeout.ms": "2000"}
        task = sink(secured.uri(), **more, **trusts)
        with pytest.raises(RetriableError):
            task.put(records([(None, {"_id": 8})]))
        task.stop()


def test_killed_workers_and_a_killed_server_leave_the_last_value_of_each_key(
    barnabas_broker: Broker, barnabas_topic: str, tmp_path: Path
) -> None:
    with ferret_server.FerretDb() as store:
        lives_through_kills(store.uri(), barnabas_broker, barnabas_topic, tmp_path, store)
