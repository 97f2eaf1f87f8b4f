"""TLS, SASL and ACLs of a cluster on this machine: certificates, a user, and settings of nodes and clients.

In: which of them are wanted, the cluster's folder. Out: settings that every node has in addition, credentials
for the formatting, and `client.properties` for tools and clients. Nodes log in at each other as that user.
It is a super user: ACLs do not bind it.
SCRAM's credentials are in the metadata log, so controllers, which make that log, use PLAIN.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from barnabas.cli.node.certificate_files import CertificateFiles, local_hosts, write_properties

CLIENT_PROPERTIES = "client.properties"
CERTIFICATES = "certs"
USER = "admin"
DAYS = 825
MECHANISMS = {"plain": "PLAIN", "scram": "SCRAM-SHA-512"}
PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True, slots=True, repr=False)
class LocalSecurity:
    """`clients` is the protocol of the clients' listeners, which brokers use among themselves too."""

    tls: bool
    sasl: str | None  # plain or scram
    acls: bool
    password: str

    @classmethod
    def of(cls, *, tls: bool, sasl: str | None, acls: bool = False) -> LocalSecurity:
        return cls(tls, sasl, acls, secrets.token_urlsafe(18))

    @property
    def protocol(self) -> str:
        return {
            (False, False): "PLAINTEXT",
            (True, False): "SSL",
            (False, True): "SASL_PLAINTEXT",
            (True, True): "SASL_SSL",
        }[self.tls, self.sasl is not None]

    @property
    def scram_credentials(self) -> list[str]:
        if self.sasl != "scram":
            return []
        return [f"{MECHANISMS['scram']}=[name={USER},password={self.password}]"]

    def node_settings(self, folder: Path) -> dict[str, str]:
        """Settings of every node. Makes the certificates."""
        if self.protocol == "PLAINTEXT":
            return {}
        found = {
            "listener.security.protocol.map": f"{self.protocol}:{self.protocol},CONTROLLER:{self.protocol}",
            "security.inter.broker.protocol": self.protocol,
        }
        if self.tls:
            files = self._files(folder)
            files.make_authority()
            files.issue("broker", local_hosts())
            found |= files.key_properties("broker") | files.trust_properties()
            found["listener.name.controller.ssl.client.auth"] = "required"
        if self.acls:
            found["authorizer.class.name"] = AUTHORIZER
        if self.sasl is not None:
            found["super.users"] = f"User:{USER}"
            listener = self.protocol.lower()
            mechanism = MECHANISMS[self.sasl]
            found |= {
                "sasl.enabled.mechanisms": mechanism,
                "sasl.mechanism.inter.broker.protocol": mechanism,
                "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.controller.protocol": "PLAIN",
                f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config": self._jaas(mechanism),
                "listener.name.controller.plain.sasl.jaas.config": self._jaas("PLAIN"),
            }
        return found

    def write_client_properties(self, folder: Path, bootstrap: str) -> Path:
        found = {"bootstrap.servers": bootstrap, "security.protocol": self.protocol}
        if self.tls:
            found |= self._files(folder).trust_properties()
        if self.sasl is not None:
            mechanism = MECHANISMS[self.sasl]
            module = PLAIN_MODULE if mechanism == "PLAIN" else SCRAM_MODULE
            found |= {
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f'{module} required username="{USER}" password="{self.password}";',
            }
        path = folder / CLIENT_PROPERTIES
        write_properties(path, found)
        return path

    def _jaas(self, mechanism: str) -> str:
        own = f'username="{USER}" password="{self.password}"'
        if mechanism == "PLAIN":
            return f'{PLAIN_MODULE} required {own} user_{USER}="{self.password}";'
        return f"{SCRAM_MODULE} required {own};"

    def _files(self, folder: Path) -> CertificateFiles:
        return CertificateFiles(folder / CERTIFICATES, DAYS)
