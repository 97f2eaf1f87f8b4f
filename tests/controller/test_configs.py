"""AlterConfigs and IncrementalAlterConfigs, compared with the responses and effects in Apache Kafka 4.3.1."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.controller.configs import (
    Operation,
    alter_configs,
    incremental_alter_configs,
    resealed,
)
from barnabas.controller.context import Context
from barnabas.controller.sessions import BrokerSessions
from barnabas.metadata.configs import ConfigResource, ResourceType
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.log_records.metadata import ConfigRecord, FeatureLevelRecord, TopicRecord
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.settings import BrokerSettings
from barnabas.settings.secrets import Secrets
from barnabas.settings.topic import parse_topic_value
from barnabas.settings.values import to_text

OPERATIONS = {"set": 0, "del": 1, "app": 2, "sub": 3}
TOPIC = ConfigResource(ResourceType.TOPIC, "t")
# The requests in order, with Kafka's responses and the topic's configs after each.
LINES = (Path(__file__).parent / "data/alter_configs.jsonl").read_text().splitlines()
SETTINGS = BrokerSettings.load(
    {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": "/var/lib/kafka",
        "log.cleanup.policy": "delete, compact",
    }
)


def image_after(image: MetadataImage, records: list[Message]) -> MetadataImage:
    delta = MetadataDelta(image)
    for record in records:
        delta.replay(record)
    return delta.apply()


def fresh_image() -> MetadataImage:
    return image_after(
        MetadataImage(),
        [
            FeatureLevelRecord(name="metadata.version", feature_level=29),
            FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
            ConfigRecord(resource_type=4, resource_name="", name="min.insync.replicas", value="1"),
            TopicRecord(name="t", topic_id=b"t" * 16),
        ],
    )


def context(image: MetadataImage) -> Context:
    return Context(
        image=image,
        settings=SETTINGS,
        cluster_id="c",
        sessions=BrokerSessions(timeout_ms=9000),
        rng=random.Random(1),
        now_ms=0,
        next_offset=0,
    )


def incremental(*resources: Any, validate_only: bool = False) -> IncrementalAlterConfigsRequest:
    kind = IncrementalAlterConfigsRequest.AlterConfigsResource
    return IncrementalAlterConfigsRequest(
        validate_only=validate_only,
        resources=[
            kind(
                resource_type=resource_type,
                resource_name=name,
                configs=[
                    kind.AlterableConfig(
                        name=key, config_operation=OPERATIONS.get(operation, operation), value=value
                    )
                    for operation, key, value in configs
                ],
            )
            for resource_type, name, configs in resources
        ],
    )


def legacy(*resources: Any, validate_only: bool = False) -> AlterConfigsRequest:
    kind = AlterConfigsRequest.AlterConfigsResource
    return AlterConfigsRequest(
        validate_only=validate_only,
        resources=[
            kind(
                resource_type=resource_type,
                resource_name=name,
                configs=[kind.AlterableConfig(name=key, value=value) for key, value in configs],
            )
            for resource_type, name, configs in resources
        ],
    )


def answered(
    image: MetadataImage, api: str, resources: Any, validate_only: bool
) -> tuple[Any, list[Message]]:
    decision: Any
    if api == "incremental":
        decision = incremental_alter_configs(
            context(image), incremental(*resources, validate_only=validate_only)
        )
    else:
        decision = alter_configs(context(image), legacy(*resources, validate_only=validate_only))
    answers = [[found.error_code, found.error_message] for found in decision.reply.responses]
    return answers, list(decision.records)


def differs_on_purpose(expected: Any) -> bool:
    """For an unknown operation Kafka reports a server error, we report an invalid request."""
    return bool(expected[0][0] == ErrorCode.UNKNOWN_SERVER_ERROR)


def test_the_same_requests_get_kafkas_responses_and_effects() -> None:
    image = fresh_image()
    compared = 0
    for line in LINES:
        step = json.loads(line)
        answers, records = answered(image, step["api"], step["resources"], step["validate_only"])
        image = image_after(image, records)
        if differs_on_purpose(step["answers"]):
            assert answers[0][0] == ErrorCode.INVALID_REQUEST
            continue
        expected = [
            [code, message and message.removeprefix("requirement failed: ")]
            for code, message in step["answers"]
        ]
        assert answers == expected, line
        own = {
            name: to_text(parse_topic_value(name, value)) for name, value in image.configs.of(TOPIC).items()
        }
        assert own == step["topic"], line
        compared += 1
    assert compared > 80


def test_validating_writes_nothing() -> None:
    _, records = answered(fresh_image(), "incremental", [[2, "t", [["set", "retention.ms", "1"]]]], True)
    assert records == []


def test_one_wrong_value_leaves_its_resource_as_it_was() -> None:
    resources = [[2, "t", [["set", "retention.ms", "1"], ["set", "segment.bytes", "1"]]]]
    answers, records = answered(fresh_image(), "incremental", resources, False)
    assert answers[0][0] == ErrorCode.INVALID_CONFIG
    assert records == []


def test_a_topics_unchanged_value_is_not_written_again() -> None:
    resources = [[2, "t", [["set", "retention.ms", "1"]]]]
    _, records = answered(fresh_image(), "incremental", resources, False)
    image = image_after(fresh_image(), records)
    assert len(records) == 1
    assert answered(image, "incremental", resources, False)[1] == []


def test_a_brokers_unchanged_value_is_written_again_to_make_it_reload() -> None:
    resources = [[4, "1", [["set", "log.retention.ms", "100"]]]]
    _, records = answered(fresh_image(), "incremental", resources, False)
    image = image_after(fresh_image(), records)
    assert answered(image, "incremental", resources, False)[1] == records


def test_a_resource_named_twice_in_a_legacy_request_is_refused() -> None:
    resources = [[2, "t", [["retention.ms", "1"]]], [2, "t", [["retention.ms", "2"]]]]
    answers, records = answered(fresh_image(), "legacy", resources, False)
    assert answers == [[ErrorCode.INVALID_REQUEST, "Each resource must appear at most once."]] * 2
    assert records == []


def test_brokers_cannot_have_their_own_min_insync_replicas_while_elr_is_enabled() -> None:
    answers, _ = answered(
        fresh_image(), "incremental", [[4, "1", [["set", "min.insync.replicas", "2"]]]], False
    )
    assert answers == [
        [
            ErrorCode.INVALID_CONFIG,
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ]
    ]


@pytest.mark.parametrize(
    ("operation", "value", "result"),
    [
        ("app", "compact", "delete,compact"),
        ("app", "delete", "delete"),
        ("sub", "delete", ""),
        ("sub", "x", "delete"),
    ],
)
def test_a_list_that_is_not_set_starts_from_its_default(operation: str, value: str, result: str) -> None:
    _, records = answered(
        fresh_image(), "incremental", [[2, "t", [[operation, "cleanup.policy", value]]]], False
    )
    [record] = records
    assert isinstance(record, ConfigRecord)
    assert record.value == result


def test_operations_have_kafkas_numbers() -> None:
    assert [operation.value for operation in Operation] == [0, 1, 2, 3]


PASSWORD = "listener.name.later.ssl.keystore.password"
SECRETS = Secrets(lambda: [b"a key"])


def test_a_password_is_sealed_before_it_is_written_and_can_be_changed() -> None:
    where = replace(context(fresh_image()), secrets=SECRETS)
    first = incremental_alter_configs(where, incremental((4, "1", [("set", PASSWORD, "s3cret")])))
    [record] = first.records
    assert isinstance(record, ConfigRecord) and record.value is not None
    assert "s3cret" not in record.value
    assert SECRETS.open("1", PASSWORD, record.value) == "s3cret"
    where = replace(where, image=image_after(where.image, [record]))
    again = incremental_alter_configs(where, incremental((4, "1", [("set", "log.roll.ms", "5000")])))
    assert again.reply.responses[0].error_code == ErrorCode.NONE


def test_passwords_in_plain_text_are_sealed_once() -> None:
    left = ConfigRecord(resource_type=4, resource_name="1", name=PASSWORD, value="s3cret")
    harmless = ConfigRecord(resource_type=4, resource_name="1", name="log.roll.ms", value="5000")
    image = image_after(fresh_image(), [left, harmless])
    [record] = resealed(image.configs, SECRETS)
    assert isinstance(record, ConfigRecord) and record.value is not None
    assert SECRETS.open("1", PASSWORD, record.value) == "s3cret"
    assert resealed(image_after(image, [record]).configs, SECRETS) == []
