"""Certificates of a cluster's own listeners are watched wherever clients reach it by TLS."""

from __future__ import annotations

import asyncio
import datetime
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.cli.main import main
from barnabas.monitor.alert_service.file import alerts_file
from barnabas.monitor.alert_service.idle_rules import why_idle
from barnabas.monitor.alert_service.measuring import Measurements, Measuring
from barnabas.monitor.alerts.defaults import DEFAULTS
from barnabas.security.tls.certificates import issue, new_authority
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

from .endpoints import tls_listener

DAYS = 10
RULE = next(each for each in DEFAULTS if each.check == "certificate_days")


def trusting(folder: Path) -> dict[str, str]:
    """Properties of clients that trust the authority there."""
    return {
        "security.protocol": "SSL",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "trust.pem"),
    }


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """The address of a broker whose certificate ends in eight days."""
    now = datetime.datetime.now(datetime.UTC)
    authority = new_authority("CN=authority", now)
    begins = now - datetime.timedelta(days=2)
    issued = issue(authority, "CN=node-1", begins, hosts=["127.0.0.1", "localhost"], days=DAYS)
    key = tmp_path / "key.pem"
    key.write_bytes(issued.key_pem + issued.chain_pem)
    (tmp_path / "trust.pem").write_bytes(authority.certificate_pem)
    (port,) = free_ports(1)
    stores = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(key), **trusting(tmp_path)}
    del stores["security.protocol"]
    listeners = {
        "listeners": f"SSL://127.0.0.1:{port},CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
        "security.inter.broker.protocol": "SSL",
    }
    with Broker(overrides={**listeners, **stores}):
        yield f"127.0.0.1:{port}"


def measured(bootstrap: str, properties: dict[str, str]) -> Measurements:
    cluster = {"name": "main", "properties": {"bootstrap.servers": bootstrap, **properties}}
    rules = [{"name": each.name, "enabled": False} for each in DEFAULTS if each.check.startswith("group")]
    rules += [{"name": "RetentionOvertakesGroup", "enabled": False}]
    file = alerts_file({"clusters": [cluster], "rules": rules}, "test")
    assert why_idle(RULE, file) is None

    async def one() -> Measurements:
        measuring = Measuring(file)
        try:
            return await measuring.measure(0)
        finally:
            await measuring.stop()

    return asyncio.run(one())


def test_a_certificate_that_ends_soon_is_found_without_naming_its_address(
    bootstrap: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    properties = trusting(tmp_path)
    [found] = measured(bootstrap, properties).findings["certificate_days"]
    assert 7 < found.value < 8
    assert dict(found.labels) == {"cluster": "main", "address": bootstrap}
    assert RULE.is_violated(found.value, is_firing=False)
    client = tmp_path / "client.properties"
    client.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    assert main(["health", "--bootstrap-server", bootstrap, "--command-config", str(client)]) == 0
    shown = capsys.readouterr().out
    assert re.search(f"the certificate of {bootstrap} ends in [78]", shown)
    assert f"openssl s_client -connect {bootstrap}" in shown


def test_a_certificate_that_has_ended_is_told_beside_the_cluster_that_is_away(tmp_path: Path) -> None:
    with tls_listener(tmp_path, days=DAYS, days_ago=DAYS + 3) as address:
        found = measured(address, trusting(tmp_path))
    [unreachable] = found.findings["unreachable"]
    assert unreachable.value == 1
    assert "expired" in unreachable.detail
    [certificate] = found.findings["certificate_days"]
    assert -4 < certificate.value < -2
