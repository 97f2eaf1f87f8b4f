"""A node's settings: values by name, listeners, quorum, warnings, changes while running."""

import pytest

from barnabas.settings import Address, BrokerSettings, EndPoint, SettingsError, Voter
from barnabas.settings.one_machine import internal_topic_settings

from .nodes import COMBINED, node


def test_values_have_their_types() -> None:
    settings = node(log_segment_bytes=" 2097152 ", auto_create_topics_enable="False", log_cleaner_threads="2")
    assert settings["log.segment.bytes"] == 2097152
    assert settings["auto.create.topics.enable"] is False
    assert settings["log.cleaner.min.cleanable.ratio"] == 0.5
    assert settings["sasl.enabled.mechanisms"] == ("GSSAPI",)
    assert settings["log.retention.ms"] is None


def test_listeners_are_laid_out_by_role() -> None:
    settings = node(
        listeners="INTERNAL://0.0.0.0:9092,EXTERNAL://[::]:9094,CONTROLLER://:9093",
        advertised_listeners="INTERNAL://a.example:9092,EXTERNAL://b.example:19094,CONTROLLER://a.example:9093",
        listener_security_protocol_map="INTERNAL:PLAINTEXT,EXTERNAL:SASL_SSL,CONTROLLER:PLAINTEXT",
        inter_broker_listener_name="internal",
    )
    assert settings.broker_listeners == (
        EndPoint("INTERNAL", "PLAINTEXT", "0.0.0.0", 9092),
        EndPoint("EXTERNAL", "SASL_SSL", "::", 9094),
    )
    assert settings.controller_listeners == (EndPoint("CONTROLLER", "PLAINTEXT", "", 9093),)
    assert [str(found) for found in settings.advertised_listeners] == [
        "INTERNAL://a.example:9092",
        "EXTERNAL://b.example:19094",
    ]
    assert [str(found) for found in settings.advertised_controller_listeners] == [
        "CONTROLLER://a.example:9093"
    ]
    assert settings.inter_broker_listener_name == "INTERNAL"


def test_voters_and_bootstrap_servers_become_addresses() -> None:
    settings = node(
        controller_quorum_voters="3@c:9093,1@[::1]:9093", controller_quorum_bootstrap_servers="a:1,b:2"
    )
    assert settings.voters == (Voter(1, Address("::1", 9093)), Voter(3, Address("c", 9093)))
    assert settings.bootstrap_servers == (Address("a", 1), Address("b", 2))


def test_log_dirs_win_over_log_dir() -> None:
    assert node(log_dir="/old").log_dirs == ("/var/lib/kafka",)
    settings = BrokerSettings.load({**COMBINED, "log.dirs": "/a, /b"})
    assert settings.log_dirs == ("/a", "/b")
    assert settings.metadata_log_dir == "/a"
    assert node(metadata_log_dir="/meta").metadata_log_dir == "/meta"


def test_broker_id_stands_in_for_node_id() -> None:
    props = {name: value for name, value in COMBINED.items() if name != "node.id"}
    assert BrokerSettings.load({**props, "broker.id": "1"}).node_id == 1


def test_a_misspelt_name_is_warned_about_with_the_right_one() -> None:
    assert node(log_retention_hour="5").warnings == [
        "Unknown setting log.retention.hour is ignored; did you mean log.retention.hours?"
    ]


@pytest.mark.parametrize("name", ["zookeeper.connect", "inter.broker.protocol.version", "confluent.license"])
def test_a_name_of_the_past_is_warned_about(name: str) -> None:
    [warning] = BrokerSettings.load({**COMBINED, name: "x"}).warnings
    assert name in warning


@pytest.mark.parametrize(
    "name",
    ["super.users", "listener.name.plaintext.max.connections", "rsm.config.dir", "config.providers.a.x"],
)
def test_a_name_with_a_place_is_not_warned_about(name: str) -> None:
    assert BrokerSettings.load({**COMBINED, name: "1"}).warnings == []


def test_a_listener_can_override_settings() -> None:
    settings = BrokerSettings.load({**COMBINED, "listener.name.plaintext.max.connections": "7"})
    assert settings.for_listener("PLAINTEXT", "max.connections") == 7
    assert settings.for_listener("CONTROLLER", "max.connections") == 2**31 - 1


def test_a_jaas_entry_of_a_mechanism_is_a_secret_of_its_listener() -> None:
    name = "listener.name.plaintext.plain.sasl.jaas.config"
    settings = BrokerSettings.load({**COMBINED, name: "secret"})
    assert settings[name].value == "secret"
    assert settings.warnings == []


def test_changes_while_running_take_precedence() -> None:
    static = node(log_retention_ms="1", message_max_bytes="2", log_segment_bytes="3000000")
    changed = static.with_dynamic(
        {"message.max.bytes": "20", "log.segment.bytes": "4000000"}, {"log.segment.bytes": "5000000"}
    )
    assert changed.topic_defaults.retention_ms == 1
    assert changed.topic_defaults.max_message_bytes == 20
    assert changed.topic_defaults.segment_bytes == 5_000_000
    assert static["log.segment.bytes"] == 3_000_000


def test_read_only_settings_cannot_change_while_running() -> None:
    assert node().with_dynamic({"num.partitions": "9"}, {})["num.partitions"] == 1


def test_a_changed_value_that_does_not_fit_any_more_is_left_out() -> None:
    found = node().with_dynamic({"log.segment.bytes": "1", "message.max.bytes": "5"}, {})
    assert found["log.segment.bytes"] == 1 << 30
    assert found["message.max.bytes"] == 5
    assert [warning for warning in found.warnings if "log.segment.bytes" in warning]


def test_changed_values_that_contradict_the_file_are_left_out_together() -> None:
    static = node(queued_max_request_bytes="200000000", socket_request_max_bytes="200000000")
    found = static.with_dynamic({"message.max.bytes": "5"}, {"log.cleaner.threads": "500"})
    assert found["log.cleaner.threads"] == 1
    assert found.warnings


def test_internal_topics_fit_one_broker_and_it_is_said() -> None:
    settings = node(transaction_state_log_replication_factor="3")
    values, said = internal_topic_settings(settings, brokers=1)
    assert values["offsets.topic.replication.factor"] == 1
    assert values["transaction.state.log.replication.factor"] == 3  # somebody asked for it
    assert any("offsets.topic.replication.factor is 1, not 3" in line for line in said)
    assert settings["offsets.topic.replication.factor"] == 3


def test_internal_topics_keep_kafkas_defaults_in_a_cluster() -> None:
    values, said = internal_topic_settings(node(), brokers=3)
    assert values["offsets.topic.replication.factor"] == 3
    assert said == []


def test_metrics_are_off_unless_a_port_is_given() -> None:
    assert node()["barnabas.metrics.port"] == -1
    with pytest.raises(SettingsError, match=r"barnabas\.metrics\.port"):
        node(barnabas_metrics_port="70000")
