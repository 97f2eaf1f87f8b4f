"""A broker with a listener for every way to connect: TLS, mutual TLS, and SASL with every mechanism, with and
without TLS. Barnabas or Apache Kafka, with the same settings; and properties for clients of every kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.scram import NewCredential, ScramMechanism
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.core.address import parse_bootstrap
from barnabas.testing.apache import ApacheKafka
from barnabas.testing.broker import Broker
from barnabas.testing.ports import free_ports

from .kdc import HOST, REALM, SERVICE, Kdc
from .provider import AUDIENCE, CLIENT_ID, CLIENT_SECRET, ISSUER, Provider
from .sasl_broker import PLAIN, SCRAM, plain_entry
from .tls_world import certificates

OAUTH = "org.apache.kafka.common.security.oauthbearer"
USER, PASSWORD = "alice", "alice-s3cret"
PASSWORD_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
MECHANISMS = (*PASSWORD_MECHANISMS, "OAUTHBEARER", "GSSAPI")
PROTOCOLS = {"TLS": "SSL", "MUTUAL": "SSL", "LOGIN": "SASL_PLAINTEXT", "LOCKED": "SASL_SSL"}


@dataclass(frozen=True, slots=True)
class Way:
    """A way to connect: one of the listeners, with a mechanism if it has SASL."""

    listener: str
    mechanism: str = ""

    @property
    def protocol(self) -> str:
        return PROTOCOLS[self.listener]

    @property
    def has_tls(self) -> bool:
        return self.protocol.endswith("SSL")

    def __str__(self) -> str:
        name = {"TLS": "SSL", "MUTUAL": "SSL-mutual"}.get(self.listener, self.protocol)
        return f"{name}-{self.mechanism}" if self.mechanism else name


TLS, MUTUAL = Way("TLS"), Way("MUTUAL")
LOGINS = [Way("LOGIN", mechanism) for mechanism in MECHANISMS]
LOCKED_LOGINS = [Way("LOCKED", mechanism) for mechanism in MECHANISMS]
EVERY_WAY = [TLS, MUTUAL, *LOGINS, *LOCKED_LOGINS]


class Locked:
    """The ports and settings of such a broker. Without a KDC there is no GSSAPI."""

    def __init__(self, provider: Provider, kdc: Kdc | None) -> None:
        self.provider = provider
        self.kdc = kdc
        self.ports = dict(zip(PROTOCOLS, free_ports(len(PROTOCOLS)), strict=True))

    def settings(self, port: int, controller_port: int) -> dict[str, str]:
        inner = f"INSIDE://127.0.0.1:{port}"
        outer = ",".join(f"{name}://127.0.0.1:{number}" for name, number in self.ports.items())
        map_ = ",".join(f"{name}:{protocol}" for name, protocol in PROTOCOLS.items())
        made = {
            "listeners": f"{inner},{outer},CONTROLLER://127.0.0.1:{controller_port}",
            "advertised.listeners": f"{inner},{outer.replace('127.0.0.1', HOST)}",
            "listener.security.protocol.map": f"INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT,{map_}",
            "inter.broker.listener.name": "INSIDE",
            "sasl.enabled.mechanisms": ",".join(self.mechanisms),
            "sasl.oauthbearer.jwks.endpoint.url": self.provider.jwks_url,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.kerberos.service.name": "kafka",
            "connection.failed.authentication.delay.ms": "10",
            "listener.name.mutual.ssl.client.auth": "required",
            **certificates().stores,
        }
        for listener in ("login", "locked"):
            prefix = f"listener.name.{listener}"
            made[f"{prefix}.plain.sasl.jaas.config"] = plain_entry()
            for number in ("256", "512"):
                made[f"{prefix}.scram-sha-{number}.sasl.jaas.config"] = f"{SCRAM} required;"
            made[f"{prefix}.oauthbearer.sasl.jaas.config"] = f"{OAUTH}.OAuthBearerLoginModule required;"
            handler = f"{OAUTH}.OAuthBearerValidatorCallbackHandler"
            made[f"{prefix}.oauthbearer.sasl.server.callback.handler.class"] = handler
            if self.kdc is not None:
                made[f"{prefix}.gssapi.sasl.jaas.config"] = self.kdc.jaas(SERVICE)
        return made

    @property
    def mechanisms(self) -> tuple[str, ...]:
        return MECHANISMS if self.kdc is not None else MECHANISMS[:-1]

    @property
    def java_flags(self) -> list[str]:
        """A JVM asks only providers that it was told of, and reads its own krb5.conf."""
        urls = f"{self.provider.jwks_url},{self.provider.token_url}"
        flags = [f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={urls}"]
        if self.kdc is not None:
            flags.append(f"-Djava.security.krb5.conf={self.kdc.environment['KRB5_CONFIG']}")
        return flags

    def bootstrap(self, way: Way) -> str:
        return f"{HOST}:{self.ports[way.listener]}"

    # -- the properties of clients ---------------------------------------------------------------

    def java(self, way: Way, *, password: str = PASSWORD) -> dict[str, str]:
        """In the names of Kafka's clients, which are ours too."""
        made = {"bootstrap.servers": self.bootstrap(way), "security.protocol": way.protocol}
        if way.has_tls:
            made |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": certificates().ca_file}
        if way == MUTUAL:
            made |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": certificates().alice_file}
        if not way.mechanism:
            return made
        made["sasl.mechanism"] = way.mechanism
        match way.mechanism:
            case "OAUTHBEARER":
                made |= {
                    "sasl.jaas.config": f"{OAUTH}.OAuthBearerLoginModule required;",
                    "sasl.login.callback.handler.class": f"{OAUTH}.OAuthBearerLoginCallbackHandler",
                    "sasl.oauthbearer.token.endpoint.url": self.provider.token_url,
                    "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
                    "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
                }
            case "GSSAPI":
                assert self.kdc is not None
                made |= {
                    "sasl.jaas.config": self.kdc.jaas(f"{USER}@{REALM}"),
                    "sasl.kerberos.service.name": "kafka",
                }
            case _:
                module = PLAIN if way.mechanism == "PLAIN" else SCRAM
                made["sasl.jaas.config"] = f'{module} required username="{USER}" password="{password}";'
        return made

    def librdkafka(self, way: Way, *, password: str = PASSWORD) -> dict[str, Any]:
        made: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap(way),
            "security.protocol": way.protocol,
            "broker.address.family": "v4",
        }
        if way.has_tls:
            made["ssl.ca.location"] = certificates().ca_file
        if way == MUTUAL:
            file = certificates().alice_file
            made |= {"ssl.certificate.location": file, "ssl.key.location": file}
        if way.mechanism in PASSWORD_MECHANISMS:
            made |= {"sasl.username": USER, "sasl.password": password}
        elif way.mechanism == "OAUTHBEARER":
            made |= {
                "sasl.oauthbearer.method": "oidc",
                "sasl.oauthbearer.token.endpoint.url": self.provider.token_url,
                "sasl.oauthbearer.client.id": CLIENT_ID,
                "sasl.oauthbearer.client.secret": CLIENT_SECRET,
            }
        elif way.mechanism == "GSSAPI":
            assert self.kdc is not None
            principal = f"{USER}@{REALM}"
            made |= {
                "sasl.kerberos.service.name": "kafka",
                "sasl.kerberos.keytab": self.kdc.key_table(principal),
                "sasl.kerberos.principal": principal,
            }
        return made | ({"sasl.mechanism": way.mechanism} if way.mechanism else {})

    def python(self, way: Way) -> dict[str, Any]:
        """What the arguments of kafka-python and aiokafka have in common."""
        made: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap(way),
            "security_protocol": way.protocol,
        }
        if way.mechanism:
            made["sasl_mechanism"] = way.mechanism
        if way.mechanism in PASSWORD_MECHANISMS:
            made |= {"sasl_plain_username": USER, "sasl_plain_password": PASSWORD}
        if way.mechanism == "GSSAPI":
            made |= {"sasl_kerberos_service_name": "kafka", "sasl_kerberos_domain_name": HOST}
        return made


def add_users(bootstrap: str) -> None:
    with BlockingCluster(parse_bootstrap(bootstrap)) as cluster:
        for mechanism in ScramMechanism:
            run(Admin(cluster).alter_scram(USER, {mechanism: NewCredential(4096, PASSWORD)}))


def locked_broker(locked: Locked, **more: Any) -> Broker:
    """Barnabas, not started."""
    broker = Broker(**more)
    broker._overrides |= locked.settings(broker.port, broker._controller_port)
    return broker


def locked_apache(locked: Locked) -> ApacheKafka:
    kafka = ApacheKafka(heap="512M", java_flags=locked.java_flags)
    kafka.override(locked.settings(kafka.port, kafka.controller_port))
    return kafka
