"""`admin.listeners`: the endpoints below /admin on sockets of their own, or nowhere."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from barnabas.connect.api.workers import http_settings
from barnabas.settings.errors import SettingsError
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports
from barnabas.testing.waiting import wait_until
from connect.connectors.worker import running_worker

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
        assert httpx.put(f"{admin}{LOGGERS}/barnabas.connect", json=body).json() == ["barnabas.connect"]
        assert httpx.get(f"{admin}/connectors").json() == {
            "error_code": 404,
            "message": "HTTP 404 Not Found",
        }


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
