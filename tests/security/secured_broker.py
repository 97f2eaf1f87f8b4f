"""A node with an authorizer: plain text for its own super user, SASL for everybody else."""

from __future__ import annotations

from barnabas.testing import Broker
from barnabas.testing.ports import free_ports

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
USERS = {"admin": "admins-word", "ann": "anns-word"}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS;User:admin",
    "delegation.token.secret.key": "a-key-of-all-nodes",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.security.protocol.map": ",".join(
        ("CONTROLLER:PLAINTEXT", "PLAINTEXT:PLAINTEXT", "SASL_PLAINTEXT:SASL_PLAINTEXT")
    ),
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": " ".join(
        [
            f'{LOGIN} username="admin" password="{USERS["admin"]}"',
            *(f'user_{name}="{word}"' for name, word in USERS.items()),
        ]
    )
    + ";",
}


class SecuredBroker(Broker):
    """Listens in plain text on `port`, with SASL on `sasl_port`."""

    def __init__(self, **overrides: str) -> None:
        super().__init__()
        (self.sasl_port,) = free_ports(1)
        self.controller = f"127.0.0.1:{self._controller_port}"
        self.sasl = f"127.0.0.1:{self.sasl_port}"
        self._overrides = SETTINGS | {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://{self.controller},"
            f"SASL_PLAINTEXT://{self.sasl}",
            **{name.replace("_", "."): value for name, value in overrides.items()},
        }
