"""Settings and subject name strategies of serializers."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.schemas import MessageField, SerializationContext, qualified_reference_name
from barnabas.schemas.serdes import subjects
from barnabas.schemas.serdes.settings import DeserializerSettings, IdLocation, SerializerSettings

KEY, VALUE = SerializationContext("t", MessageField.KEY), SerializationContext("t")


@pytest.mark.parametrize(
    "given, of_key, of_value",
    [
        ("TOPIC", "t-key", "t-value"),
        ("io.confluent.kafka.serializers.subject.TopicNameStrategy", "t-key", "t-value"),
        ("RECORD", "n.R", "n.R"),
        ("RecordNameStrategy", "n.R", "n.R"),
        ("TOPIC_RECORD", "t-n.R", "t-n.R"),
        ("TopicRecordNameStrategy", "t-n.R", "t-n.R"),
        (lambda context, name: f"{name}@{context.topic}", "n.R@t", "n.R@t"),
    ],
)
def test_subjects(given: Any, of_key: str, of_value: str) -> None:
    strategy = SerializerSettings.of({"subject.name.strategy": given}).subject_of

    assert strategy(KEY, "n.R") == of_key
    assert strategy(VALUE, "n.R") == of_value


def test_strategies_of_confluent_kafka_are_understood() -> None:
    from confluent_kafka.schema_registry import (
        record_subject_name_strategy,
        topic_record_subject_name_strategy,
        topic_subject_name_strategy,
    )
    from confluent_kafka.serialization import MessageField as Theirs
    from confluent_kafka.serialization import SerializationContext as TheirContext

    for theirs, ours in (
        (topic_subject_name_strategy, subjects.topic_name),
        (record_subject_name_strategy, subjects.record_name),
        (topic_record_subject_name_strategy, subjects.topic_record_name),
    ):
        for field in (Theirs.KEY, Theirs.VALUE):
            context = TheirContext("t", field)
            assert theirs(context, "n.R") == ours(context, "n.R")


def test_strategies_that_lack_something_have_no_subject() -> None:
    nowhere = SerializationContext(None)
    assert subjects.topic_name(nowhere, "R") is None
    assert subjects.topic_record_name(VALUE, None) is None
    assert subjects.record_name(VALUE, None) is None


def test_references_of_protobuf_files() -> None:
    assert subjects.reference_name("shop/address.proto") == "shop/address.proto"
    assert qualified_reference_name("shop/address.proto") == "shop.address"


def test_where_the_id_is_written() -> None:
    from confluent_kafka.schema_registry import header_schema_id_serializer, prefix_schema_id_serializer

    assert SerializerSettings.of(None).id_location is IdLocation.PREFIX
    for given, found in (
        ({"schema.id.location": "prefix.guid"}, IdLocation.PREFIX_GUID),
        ({"schema.id.serializer": header_schema_id_serializer}, IdLocation.HEADER),
        ({"schema.id.serializer": prefix_schema_id_serializer}, IdLocation.PREFIX),
    ):
        assert SerializerSettings.of(given).id_location is found


def test_taking_the_latest_turns_registering_off() -> None:
    assert SerializerSettings.of({}).auto_register
    assert not SerializerSettings.of({"use.latest.version": "true"}).auto_register
    assert not SerializerSettings.of({"use.latest.with.metadata": {"a": "b"}}).auto_register


@pytest.mark.parametrize(
    "conf, reason",
    [
        ({"auto.register": True}, "unknown properties of a serializer: auto.register"),
        ({"auto.register.schemas": "yes"}, "auto.register.schemas yes is none of true, false"),
        ({"use.latest.version": True, "auto.register.schemas": True}, "cannot both be true"),
        ({"subject.name.strategy": "PARTITION"}, "PARTITION is none of TOPIC"),
        ({"schema.id.location": "footer"}, "footer is none of prefix"),
    ],
)
def test_wrong_settings_are_refused(conf: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        SerializerSettings.of(conf)


def test_a_deserializer_has_settings_of_its_own() -> None:
    found = DeserializerSettings.of(
        {"use.latest.version": True, "use.deprecated.format": True, "validate": False}
    )

    assert found.use_latest_version and found.use_deprecated_format and not found.validate
    with pytest.raises(ValueError, match="unknown properties of a deserializer: normalize"):
        DeserializerSettings.of({"normalize": True})
