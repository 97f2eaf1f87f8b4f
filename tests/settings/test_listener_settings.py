"""Which value holds for a listener and a mechanism."""

from barnabas.settings import BrokerSettings
from barnabas.settings.listener_settings import ListenerSettings

NODE = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "controller.listener.names": "CONTROLLER",
    "listeners": "CLIENTS://:9092,CONTROLLER://:9093",
    "listener.security.protocol.map": "CLIENTS:SASL_SSL,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "CLIENTS",
    "controller.quorum.voters": "1@localhost:9093",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
}


def of(more: dict[str, str], listener: str = "CLIENTS", mechanism: str = "") -> ListenerSettings:
    return ListenerSettings(BrokerSettings.load({**NODE, **more}), listener, mechanism)


def test_the_longest_prefix_wins() -> None:
    name = "connections.max.reauth.ms"
    more: dict[str, str] = {}
    for prefix, value in (("", 10), ("listener.name.clients.", 20), ("listener.name.clients.plain.", 30)):
        more[prefix + name] = str(value)
        assert of(more, mechanism="PLAIN")[name] == value
    assert of(more)[name] == 20
    assert of(more, mechanism="SCRAM-SHA-256")[name] == 20
    assert of(more, "CONTROLLER", "PLAIN")[name] == 10


def test_a_value_that_is_set_elsewhere_is_not_its_own() -> None:
    more = {"ssl.client.auth": "required", "sasl.jaas.config": "a b;"}
    assert of(more)["ssl.client.auth"] == "required"
    assert of(more).own("ssl.client.auth") is None
    assert of(more, mechanism="PLAIN").own("sasl.jaas.config") is None
    more["listener.name.clients.ssl.client.auth"] = "none"
    more["listener.name.clients.plain.sasl.jaas.config"] = "c d;"
    assert of(more).own("ssl.client.auth") == "none"
    assert of(more, mechanism="PLAIN").own("sasl.jaas.config").value == "c d;"


def test_a_node_is_a_client_with_the_settings_of_the_listener() -> None:
    more = {
        "ssl.keystore.password": "one",
        "listener.name.clients.ssl.keystore.password": "two",
        "listener.name.clients.plain.sasl.jaas.config": "c d;",
    }
    found = of(more, mechanism="PLAIN").client_properties()
    assert found["ssl.keystore.password"] == "two"
    assert found["sasl.jaas.config"] == "c d;"
    assert found["ssl.enabled.protocols"] == "TLSv1.2,TLSv1.3"
    assert "ssl.key.password" not in found
    assert "listeners" not in found
