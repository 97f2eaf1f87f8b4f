"""What a node accepts at start, compared with what Apache Kafka 4.3.1 said to the same properties."""

import json
from pathlib import Path

import pytest

from barnabas.settings import BrokerSettings, SettingsError

from .nodes import COMBINED, node

# Changes to a good configuration (`-name` takes one away) and Kafka's objection, null where it starts.
KAFKA = json.loads((Path(__file__).parent / "data/node_checks.json").read_text())

# Where we are stricter or kinder on purpose: Java classes that nobody knows here, ports that cannot be bound,
# and a listener's setting checked like the one it overrides.
REFUSED_HERE = [
    ["metric.reporters=foo.Bar"],
    ["metric.reporters=a,b,a"],
    ["kafka.metrics.reporters=a,b,a"],
    ["authorizer.class.name=foo.Bar"],
    ["replica.selector.class=foo.Bar"],
    ["listener.name.plaintext.ssl.client.auth=foo"],
    ["listeners=PLAINTEXT://127.0.0.1:99999,CONTROLLER://127.0.0.1:9093"],
    ["listeners=PLAINTEXT://127.0.0.1:-1,CONTROLLER://127.0.0.1:9093"],
]
ACCEPTED_HERE = ["controller.listener.names=controller"]  # listener names are compared without case


def changed(case: list[str]) -> dict[str, str]:
    props = dict(COMBINED)
    for line in case:
        if line.startswith("-"):
            del props[line[1:]]
        else:
            name, _, value = line.partition("=")
            props[name] = value
    return props


@pytest.mark.parametrize(("case", "objection"), KAFKA, ids=[" ".join(case) for case, _ in KAFKA])
def test_a_node_starts_where_kafka_starts(case: list[str], objection: str | None) -> None:
    try:
        BrokerSettings.load(changed(case))
    except SettingsError as error:
        assert objection is not None or case in REFUSED_HERE, str(error)
        return
    assert (objection is None and case not in REFUSED_HERE) or case == ACCEPTED_HERE


def test_objections_to_values_are_in_kafkas_words() -> None:
    """Most are word for word the same; where the rest differ, they say more."""
    same, other = 0, []
    for case, objection in KAFKA:
        if objection is None or case == ACCEPTED_HERE:
            continue
        with pytest.raises(SettingsError) as caught:
            BrokerSettings.load(changed(case))
        if caught.value.reason == objection:
            same += 1
        elif objection.startswith("Invalid value"):
            other.append((case, objection, caught.value.reason))
    assert other == []
    assert same > 100


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("num_partitions", "many", "a whole number from -2147483648 to 2147483647"),
        ("group_share_delivery_count_limit", "1", "from 2 to 10"),
        ("principal_builder_class", "com.acme.Builder", "package.module:Name"),
        ("security_inter_broker_protocol", "TLS", "SASL_SSL"),
        ("listeners", "EXTERNAL://h:1", "names in listener.security.protocol.map"),
    ],
)
def test_an_error_names_the_allowed_values(name: str, value: str, allowed: str) -> None:
    with pytest.raises(SettingsError) as caught:
        node(**{name: value})
    assert allowed in str(caught.value)
    assert value in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_password_is_never_shown() -> None:
    settings = node(ssl_key_password="hunter2")
    assert settings["ssl.key.password"].value == "hunter2"
    assert "hunter2" not in repr(settings["ssl.key.password"])


def test_the_python_entry_point_of_a_plug_in_is_accepted() -> None:
    settings = node(create_topic_policy_class_name="acme.policies:OnlyLowerCase")
    assert settings["create.topic.policy.class.name"] == "acme.policies:OnlyLowerCase"


def test_the_standard_authorizer_is_enforced_and_not_warned_about() -> None:
    settings = node(authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer")
    assert not any("authorizer.class.name" in warning for warning in settings.warnings)
