"""`barnabas certs` makes certificates that brokers and clients can use as they are."""

from __future__ import annotations

import stat
from pathlib import Path

from barnabas.client.admin.admin import Admin
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.core.address import Address
from barnabas.security.clients.client_security import client_security
from barnabas.security.tls.stores import StoreSettings, load_key_store, load_trust_store
from barnabas.settings.properties import parse
from barnabas.testing import Broker

from .conftest import RunTool


def properties(path: Path) -> dict[str, str]:
    return parse(path.read_text())


def test_brokers_and_clients_use_what_it_makes(run_tool: RunTool, tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    made = run_tool("barnabas", "certs", "--out", str(folder), "--client", "alice")
    assert made.status == 0
    assert made.lines[0] == f"Made the certificate authority {folder}/ca.pem"
    assert f"Issued {folder}/alice.pem (and .p12) for the client User:CN=alice" in made.lines
    secured = {**properties(folder / "broker.properties"), "ssl.client.auth": "required"}
    with Broker() as broker:
        broker.stop()
        listeners = f"SSL://127.0.0.1:{broker.port},CONTROLLER://127.0.0.1:{broker._controller_port}"
        security = {
            "listeners": listeners,
            "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
            "security.inter.broker.protocol": "SSL",
        }
        broker._overrides = {**security, **secured}
        broker.start()
        with BlockingCluster(
            [Address("localhost", broker.port)],
            security=client_security(properties(folder / "alice.properties")),
        ) as cluster:
            assert run(Admin(cluster).list_topics()) == []


def test_a_second_call_keeps_the_authority(run_tool: RunTool, tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    run_tool("barnabas", "certs", "--out", str(folder))
    before = (folder / "ca.pem").read_bytes(), (folder / "broker.pem").read_bytes()
    again = run_tool("barnabas", "certs", "--out", str(folder), "--client", "bob", "--password", "other")
    assert again.lines[0] == f"Using the certificate authority {folder}/ca.pem"
    assert ((folder / "ca.pem").read_bytes(), (folder / "broker.pem").read_bytes()) == before
    keys = StoreSettings("keystore", "PKCS12", str(folder / "bob.p12"), "other")
    assert load_key_store(keys).certificate.subject.rfc4514_string() == "CN=bob"
    trusted = StoreSettings("truststore", "PKCS12", str(folder / "truststore.p12"), "changeit")
    assert len(load_trust_store(trusted).certificates) == 1


def test_files_with_keys_are_private(run_tool: RunTool, tmp_path: Path) -> None:
    folder = tmp_path / "certs"
    run_tool("barnabas", "certs", "--out", str(folder), "--client", "alice")
    for path in folder.iterdir():
        is_private = stat.S_IMODE(path.stat().st_mode) == 0o600
        assert is_private is (path.name not in ("ca.pem", "truststore.p12")), path


def test_names_that_are_no_file_names_are_refused(run_tool: RunTool, tmp_path: Path) -> None:
    ran = run_tool("barnabas", "certs", "--out", str(tmp_path), "--client", "../x")
    assert ran.status == 1 and "cannot be the name of a certificate" in ran.errors
    ran = run_tool("barnabas", "certs", "--out", str(tmp_path), "--days", "0")
    assert ran.status == 1 and "valid for a day at least" in ran.errors
