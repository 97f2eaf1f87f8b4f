"""Brokers with SASL for tests, and the settings of clients that log in."""

from __future__ import annotations

from typing import Any

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.scram import NewCredential, ScramMechanism
from barnabas.client.blocking import BlockingCluster, run
from barnabas.client.core.address import parse_bootstrap
from barnabas.security.clients.client_security import client_security
from barnabas.testing.broker import Broker

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
USERS = {"admin": "admin-s3cret", "alice": "alice-s3cret", "bob": "bob-s3cret"}
ADMIN = ("admin", USERS["admin"])


def plain_entry(users: dict[str, str] = USERS, own: tuple[str, str] = ADMIN) -> str:
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    return f'{PLAIN} required username="{own[0]}" password="{own[1]}" {known};'


SASL_SETTINGS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": plain_entry(),
}


def login_module(mechanism: str) -> str:
    return PLAIN if mechanism == "PLAIN" else SCRAM


def client_properties(mechanism: str, user: str, password: str, more: str = "") -> dict[str, str]:
    """In the names of Kafka's clients."""
    entry = f'{login_module(mechanism)} required username="{user}" password="{password}"{more};'
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": entry,
    }


def cluster_of(bootstrap: str, properties: dict[str, str], **options: Any) -> BlockingCluster:
    return BlockingCluster(parse_bootstrap(bootstrap), security=client_security(properties), **options)


def as_admin(broker: Broker) -> BlockingCluster:
    return cluster_of(broker.bootstrap, client_properties("PLAIN", *ADMIN))


def add_scram_user(broker: Broker, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> None:
    number = ScramMechanism[mechanism.replace("-", "_")]
    with as_admin(broker) as cluster:
        run(Admin(cluster).alter_scram(user, {number: NewCredential(4096, password)}))
