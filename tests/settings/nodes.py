"""A node's properties for tests: broker and controller in one, as a person would write them."""

from barnabas.settings import BrokerSettings

COMBINED = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/var/lib/kafka",
}


def node(**changes: str) -> BrokerSettings:
    """A combined node with changes; dots of a name as underscores."""
    return BrokerSettings.load(COMBINED | {name.replace("_", "."): value for name, value in changes.items()})
