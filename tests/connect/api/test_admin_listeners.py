"""`admin.listeners`: the endpoints below /admin on sockets of their own, or nowhere."""

from __future__ import annotations

import shutil
import socket
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest

from barnabas.connect.api.workers import http_settings
from barnabas.security.tls.certificates import issue
from barnabas.settings.errors import SettingsError
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from connect.connectors.worker import running_worker
from security.tls_world import HOSTS, NOW, certificates

LOGGERS = "/admin/loggers"


@pytest.mark.parametrize("is_given", [True, False])
def test_admin_endpoints_are_served_where_the_worker_says(tmp_path: Path, *, is_given: bool) -> None:
    ports = free_ports(2)
    main, admin = (f"http://127.0.0.1:{port}" for port in ports)
    given = {"listeners": main, "admin.listeners": admin if is_given else ""}
    with Broker() as broker, running_worker(tmp_path, broker.bootstrap, **given) as worker:
        wait_until(lambda: "The worker is ready" in worker.text(), 60)
        assert httpx.get(f"{main}/connectors").json() == []
        assert httpx.get(f"{main}{LOGGERS}").status_code == 404
        if not is_given:
            return
        assert "root" in httpx.get(f"{admin}{LOGGERS}").json()
        body = {"level": "DEBUG"}
        assert "barnabas.connect" in httpx.put(f"{admin}{LOGGERS}/barnabas.connect", json=body).json()
        assert httpx.get(f"{admin}/connectors").json() == {
            "error_code": 404,
            "message": "HTTP 404 Not Found",
        }


def test_a_new_certificate_of_admin_listeners_is_used_while_the_worker_runs(tmp_path: Path) -> None:
    world = certificates()
    store = tmp_path / "admin.pem"
    shutil.copy(world.broker_file, store)
    ports = free_ports(2)
    given = {
        "listeners": f"http://127.0.0.1:{ports[0]}",
        "admin.listeners": f"https://127.0.0.1:{ports[1]}",
        "admin.listeners.https.ssl.keystore.type": "PEM",
        "admin.listeners.https.ssl.keystore.location": str(store),
    }
    context = ssl.create_default_context(cafile=world.ca_file)

    def served() -> str:
        with (
            socket.create_connection(("127.0.0.1", ports[1])) as link,
            context.wrap_socket(link, server_hostname="localhost") as secured,
        ):
            found: Any = secured.getpeercert()
            return str(dict(part[0] for part in found["subject"])["commonName"])

    with Broker() as broker, running_worker(tmp_path, broker.bootstrap, **given) as worker:
        wait_until(lambda: "The worker is ready" in worker.text(), 60)
        assert served() == "broker"
        renewed = issue(world.authority, "CN=renewed,O=Rig", NOW, hosts=HOSTS)
        store.write_bytes(renewed.key_pem + renewed.chain_pem)
        wait_until(lambda: served() == "renewed", 30)
        answer = httpx.get(f"https://localhost:{ports[1]}{LOGGERS}", verify=context)
        assert "root" in answer.json()


def test_admin_listeners_have_their_own_tls_or_that_of_the_worker() -> None:
    worker = {"ssl.keystore.location": "shared.pem", "ssl.client.auth": "required"}
    assert http_settings(worker).beside is None
    assert http_settings({**worker, "admin.listeners": ""}).beside is None
    shared = http_settings({**worker, "admin.listeners": "https://127.0.0.1:1"}).beside
    assert shared is not None and shared["ssl.keystore.location"] == "shared.pem"
    own = {"admin.listeners.https.ssl.keystore.location": "own.pem"}
    found = http_settings({**worker, **own, "admin.listeners": "https://127.0.0.1:1"})
    assert found.beside is not None and found["ssl.keystore.location"] == "shared.pem"
    assert found.beside["ssl.keystore.location"] == "own.pem"
    assert not found.beside.is_set("ssl.client.authentication")
    with pytest.raises(SettingsError, match="scheme ftp"):
        http_settings({"admin.listeners": "ftp://127.0.0.1:1"})
