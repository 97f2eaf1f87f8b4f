"""Certificates for tests, made once, and brokers with TLS listeners."""

from __future__ import annotations

import datetime
import functools
import tempfile
from pathlib import Path
from typing import Any

from barnabas.security.tls.certificates import Issued, issue, new_authority
from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

NOW = datetime.datetime.now(datetime.UTC)
HOSTS = ("localhost", "127.0.0.1")


class Certificates:
    """An authority with a broker's and clients' certificates; files in a folder of their own."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="barnabas-certs-")
        self.folder = Path(self._folder.name)
        self.authority = new_authority("CN=Rig CA,O=Rig", NOW)
        self.other_authority = new_authority("CN=Other CA", NOW)
        self.broker = issue(self.authority, "CN=broker,O=Rig", NOW, hosts=HOSTS)
        self.alice = issue(self.authority, "CN=alice,OU=clients,O=Rig", NOW)
        self.mallory = issue(self.other_authority, "CN=alice,OU=clients,O=Rig", NOW)
        self.ca_file = self.write("ca.pem", self.authority.certificate_pem)
        self.other_ca_file = self.write("other-ca.pem", self.other_authority.certificate_pem)
        self.broker_file = self.write("broker.pem", self.broker.key_pem + self.broker.chain_pem)
        self.alice_file = self.write("alice.pem", self.alice.key_pem + self.alice.chain_pem)

    def write(self, name: str, data: bytes) -> str:
        path = self.folder / name
        path.write_bytes(data)
        return str(path)

    def store(self, name: str, issued: Issued) -> str:
        return self.write(name, issued.key_pem + issued.chain_pem)

    @property
    def stores(self) -> dict[str, str]:
        """The settings of a broker's stores."""
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.broker_file,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.ca_file,
        }


@functools.cache
def certificates() -> Certificates:
    return Certificates()


class TlsBroker(Broker):
    """Clients speak TLS to it on `port`, brokers plaintext on `inner`."""

    def __init__(self, *, in_process: bool = True, **overrides: object) -> None:
        (self.inner,) = free_ports(1)
        super().__init__(in_process=in_process)
        own = {
            "listeners": f"CLIENTS://127.0.0.1:{self.port},INSIDE://127.0.0.1:{self.inner},"
            f"CONTROLLER://127.0.0.1:{self._controller_port}",
            "listener.security.protocol.map": "CLIENTS:SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            **certificates().stores,
        }
        self._overrides = {
            **own,
            **{name.replace("_", "."): str(value) for name, value in overrides.items()},
        }

    def _ask(self, question: Any) -> None:
        port, self.port = self.port, self.inner
        try:
            super()._ask(question)
        finally:
            self.port = port
