"""Settings changed while a broker runs: applied at once, kept after a restart, and secrets encrypted."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest
from barnabas.testing import Broker

from .administration import BROKER, TOPIC, alter_configs, set_configs, shown_config
from .conversation import Conversation, batch, produce

ME, EVERYONE = "1", ""
OF_TOPIC, OF_BROKER, OF_EVERYONE, OF_FILE, OF_NOBODY = 1, 2, 3, 4, 5
LOGGER = 8
SAFE_DOWNGRADE = 2
SECRET = "listener.name.later.ssl.keystore.password"


def produced(broker: Broker, topic: str, size: int) -> int:
    with Conversation(broker) as talk:
        [answer] = talk.ask(*produce(topic, batch(b"x" * size))).responses[0].partition_responses
    return int(answer.error_code)


def test_each_value_falls_back_to_the_next(tmp_path: Path) -> None:
    """min.insync.replicas set on the topic, then on the broker, then removed."""
    topic, setting = "orders", "min.insync.replicas"
    with Broker(overrides={setting: 2}) as broker:
        broker.create_topic(topic)
        # With eligible leader replicas (KIP-966) brokers could have no value of their own.
        finalize(broker, "eligible.leader.replicas.version", 0)
        alter_configs(broker, topic, TOPIC, {setting: "5"})
        assert shown_config(broker, topic, setting) == ("5", OF_TOPIC)
        alter_configs(broker, ME, BROKER, {setting: "4"})
        alter_configs(broker, EVERYONE, BROKER, {setting: "3"})
        assert shown_config(broker, topic, setting) == ("5", OF_TOPIC)
        alter_configs(broker, topic, TOPIC, {setting: None})
        assert shown_config(broker, topic, setting) == ("4", OF_BROKER)
        alter_configs(broker, ME, BROKER, {setting: None})
        assert shown_config(broker, topic, setting) == ("3", OF_EVERYONE)
        alter_configs(broker, EVERYONE, BROKER, {setting: None})
        assert shown_config(broker, topic, setting) == ("2", OF_FILE)
    with Broker() as broker:
        broker.create_topic(topic)
        finalize(broker, "eligible.leader.replicas.version", 0)
        alter_configs(broker, EVERYONE, BROKER, {setting: None})
        assert shown_config(broker, topic, setting) == ("1", OF_NOBODY)


def finalize(broker: Broker, feature: str, level: int) -> None:
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature=feature, max_version_level=level, upgrade_type=SAFE_DOWNGRADE
    )
    with Conversation(broker) as talk:
        answer = talk.ask(UpdateFeaturesRequest(feature_updates=[update]), 2)
    assert answer.error_code == ErrorCode.NONE, answer.error_message


def test_a_raised_message_limit_applies_at_once(topic: str) -> None:
    with Broker(overrides={"message.max.bytes": 1_000}) as broker:
        broker.create_topic(topic)
        assert produced(broker, topic, 2_000) == ErrorCode.MESSAGE_TOO_LARGE
        set_configs(broker, message_max_bytes="5000")
        assert produced(broker, topic, 2_000) == ErrorCode.NONE
        set_configs(broker, ME, message_max_bytes="1500")
        assert produced(broker, topic, 2_000) == ErrorCode.MESSAGE_TOO_LARGE
        set_configs(broker, topic, TOPIC, max_message_bytes="3000")
        assert produced(broker, topic, 2_000) == ErrorCode.NONE


def test_changes_survive_a_restart(tmp_path: Path, topic: str) -> None:
    with Broker(tmp_path / "data") as broker:
        broker.create_topic(topic)
        set_configs(broker, message_max_bytes="1500")
    with Broker(tmp_path / "data") as broker:
        assert produced(broker, topic, 2_000) == ErrorCode.MESSAGE_TOO_LARGE
        assert shown_config(broker, topic, "max.message.bytes") == ("1500", OF_EVERYONE)


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_secret_is_not_readable_in_files_logs_or_responses(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with Broker(tmp_path / "data") as broker:
        alter_configs(broker, ME, BROKER, {SECRET: "s3cret-v4lue"})
        with Conversation(broker) as talk:
            asked = DescribeConfigsRequest.DescribeConfigsResource(resource_type=BROKER, resource_name=ME)
            answer = talk.ask(DescribeConfigsRequest(resources=[asked], include_synonyms=True), 4)
        assert "s3cret" not in repr(answer)
    assert b"s3cret-v4lue" not in everything_in(tmp_path / "data")
    assert "s3cret" not in caplog.text
    assert (tmp_path / "data" / "barnabas.secret").stat().st_mode & 0o077 == 0


def test_secrets_are_sealed_anew_when_the_key_changes(tmp_path: Path) -> None:
    with Broker(tmp_path / "data", overrides={"barnabas.secret.key": "first"}) as broker:
        alter_configs(broker, ME, BROKER, {SECRET: "s3cret-v4lue"})
        before = shown_names(broker)
    keys = {"barnabas.secret.key": "second", "barnabas.secret.old.key": "first"}
    with Broker(tmp_path / "data", overrides=keys) as broker:
        assert shown_names(broker) == before
    with Broker(tmp_path / "data", overrides={"barnabas.secret.key": "second"}) as broker:
        assert shown_names(broker) == before
    with Broker(tmp_path / "data", overrides={"barnabas.secret.key": "lost"}) as broker:
        assert SECRET not in shown_names(broker)


def shown_names(broker: Broker) -> list[str]:
    with Conversation(broker) as talk:
        asked = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=BROKER, resource_name=ME, configuration_keys=[SECRET]
        )
        [result] = talk.ask(DescribeConfigsRequest(resources=[asked]), 4).results
    return [config.name for config in result.configs]


def test_a_lower_log_level_logs_more(broker: Broker) -> None:
    name = "barnabas.server"
    logger = logging.getLogger(name)
    was = logger.level
    try:
        alter_configs(broker, ME, LOGGER, {name: "DEBUG"})
        assert logger.level == logging.DEBUG
        assert shown_config(broker, ME, name, LOGGER)[0] == "DEBUG"
        alter_configs(broker, ME, LOGGER, {name: None})
        assert logger.level == logging.NOTSET
    finally:
        logger.setLevel(was)


def test_one_wrong_level_changes_no_logger(broker: Broker) -> None:
    logger = logging.getLogger("barnabas.server")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    changes = [
        resource.AlterableConfig(name="barnabas.server", config_operation=0, value="DEBUG"),
        resource.AlterableConfig(name="barnabas.channel", config_operation=0, value="LOUD"),
    ]
    wanted = resource(resource_type=LOGGER, resource_name=ME, configs=changes)
    with Conversation(broker) as talk:
        [answer] = talk.ask(IncrementalAlterConfigsRequest(resources=[wanted]), 1).responses
    assert answer.error_code == ErrorCode.INVALID_CONFIG
    assert logger.level != logging.DEBUG


def test_the_consumer_protocol_needs_its_feature(tmp_path: Path) -> None:
    with Broker() as broker, Conversation(broker) as talk:
        finalize(broker, "group.version", 0)
        heartbeat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=["t"])
        assert talk.ask(heartbeat, 0).error_code == ErrorCode.UNSUPPORTED_VERSION
        described = talk.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 0)
        assert described.groups[0].error_code == ErrorCode.UNSUPPORTED_VERSION
