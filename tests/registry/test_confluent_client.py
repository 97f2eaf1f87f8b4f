"""Confluent's Python client and its serializers against the registry."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    Metadata,
    MetadataProperties,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
    topic_record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.common.schema_registry_client import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    ConfigCompatibilityLevel,
)
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    text_format,
    timestamp_pb2,
)

from registry.running import instant, running

FIELD = '{"type":"record","name":"A","fields":[{"name":"x","type":"string"}]}'
WITH_DEFAULT = (
    '{"type":"record","name":"A","fields":[{"name":"x","type":"string"},'
    '{"name":"y","type":"int","default":0}]}'
)
WITHOUT_DEFAULT = WITH_DEFAULT.replace('"y","type":"int","default":0', '"z","type":"int"')


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(instant) as found:
        yield found


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    with SchemaRegistryClient({"url": url}) as found:
        yield found


def refused(code: int) -> Any:
    return pytest.raises(SchemaRegistryError, match=str(code))


def test_versions_are_registered_found_and_deleted(client: SchemaRegistryClient) -> None:
    schema = Schema(FIELD, "AVRO")
    schema_id = client.register_schema("versions/a b", schema)
    assert client.register_schema("versions/a b", Schema(WITH_DEFAULT, "AVRO")) == schema_id + 1
    with refused(40901):
        client.register_schema("versions/a b", Schema(WITHOUT_DEFAULT, "AVRO"))
    assert client.get_versions("versions/a b") == [1, 2]
    assert client.lookup_schema("versions/a b", schema).version == 1
    assert client.get_version("versions/a b", 1).schema.schema_str == FIELD
    guid = client.lookup_schema("versions/a b", schema).guid
    assert client.get_schema_by_guid(guid).schema_str == FIELD
    assert "versions/a b" in client.get_subjects()
    assert [each.subject for each in client.get_schema_versions(schema_id)] == ["versions/a b"]
    assert client.get_subjects_by_schema_id(schema_id) == ["versions/a b"]
    assert set(client.get_schema_types()) == {"AVRO", "JSON", "PROTOBUF"}
    assert client.delete_version("versions/a b", 1) == 1
    assert client.delete_subject("versions/a b", permanent=False) == [2]
    assert client.delete_subject("versions/a b", permanent=True) == [1, 2]
    with refused(40401):
        client.get_latest_version("versions/a b")


def test_compatibility_config_and_mode(client: SchemaRegistryClient) -> None:
    client.register_schema("settings", Schema(FIELD, "AVRO"))
    assert client.test_compatibility("settings", Schema(WITH_DEFAULT, "AVRO"))
    assert not client.test_compatibility("settings", Schema(WITHOUT_DEFAULT, "AVRO"), verbose=True)
    assert not client.test_compatibility_all_versions("settings", Schema(WITHOUT_DEFAULT, "AVRO"))
    client.set_compatibility("settings", "NONE")
    assert client.get_compatibility("settings") == "NONE"
    assert client.test_compatibility("settings", Schema(WITHOUT_DEFAULT, "AVRO"))
    config = ServerConfig(
        compatibility=ConfigCompatibilityLevel.FULL,
        compatibility_group="major",
        default_metadata=Metadata(None, MetadataProperties({"owner": "me"}), None),
    )
    client.set_config("settings", config)
    found = client.get_config("settings")
    assert (found.compatibility_level, found.compatibility_group) == ("FULL", "major")
    assert found.default_metadata.properties.properties == {"owner": "me"}
    client.delete_config("settings")
    with refused(40408):
        client.get_config("settings")
    assert client.get_compatibility() == "BACKWARD"
    client.update_mode("settings", "READONLY")
    assert client.get_mode("settings") == "READONLY"
    with refused(42205):
        client.register_schema("settings", Schema(WITH_DEFAULT, "AVRO"))
    client.delete_mode("settings")
    assert client.get_global_mode() == "READWRITE"
    assert client.get_contexts() == ["."]


def test_contracts_are_stored_and_found_by_metadata(client: SchemaRegistryClient) -> None:
    rule = Rule("len", None, RuleKind.CONDITION, RuleMode.WRITE, "CEL", None, None, "true", None, None, False)
    schema = Schema(
        FIELD,
        "AVRO",
        metadata=Metadata(None, MetadataProperties({"owner": "me"}), None),
        rule_set=RuleSet(None, [rule]),
    )
    client.register_schema("contracts", schema)
    client.register_schema(
        "contracts",
        Schema(WITH_DEFAULT, "AVRO", metadata=Metadata(None, MetadataProperties({"owner": "you"}), None)),
    )
    found = client.get_latest_with_metadata("contracts", {"owner": "me"})
    assert found.version == 1
    assert [each.name for each in found.schema.rule_set.domain_rules] == ["len"]
    assert [each.name for each in client.get_latest_version("contracts").schema.rule_set.domain_rules] == [
        "len"
    ]


def test_the_asyncio_client(url: str) -> None:
    async def work() -> None:
        async with AsyncSchemaRegistryClient({"url": url}) as client:
            schema_id = await client.register_schema("asyncio", Schema(FIELD, "AVRO"))
            assert (await client.get_schema(schema_id)).schema_str == FIELD
            assert (await client.get_latest_version("asyncio")).version == 1
            with refused(40403):
                await client.get_schema(2**31 - 1)

    asyncio.run(work())


VALUE = SerializationContext("orders", MessageField.VALUE)


def test_avro_data_evolves_with_references(client: SchemaRegistryClient) -> None:
    user = {"type": "record", "name": "User", "namespace": "n", "fields": [{"name": "id", "type": "long"}]}
    client.register_schema("user", Schema(json.dumps(user), "AVRO"))
    order = {
        "type": "record",
        "name": "Order",
        "namespace": "n",
        "fields": [{"name": "by", "type": "n.User"}],
    }
    schema = Schema(json.dumps(order), "AVRO", [SchemaReference("n.User", "user", 1)])
    write = AvroSerializer(client, schema)
    data = write({"by": {"id": 7}}, VALUE)
    assert AvroDeserializer(client)(data, VALUE) == {"by": {"id": 7}}
    order["fields"].append({"name": "note", "type": "string", "default": "none"})  # type: ignore[attr-defined]
    newer = Schema(json.dumps(order), "AVRO", [SchemaReference("n.User", "user", 1)])
    client.register_schema("orders-value", newer)
    assert AvroDeserializer(client, newer)(data, VALUE) == {"by": {"id": 7}, "note": "none"}
    latest = AvroSerializer(client, conf={"auto.register.schemas": False, "use.latest.version": True})
    assert AvroDeserializer(client)(latest({"by": {"id": 8}, "note": "x"}, VALUE), VALUE)["note"] == "x"


def test_json_data_is_checked(client: SchemaRegistryClient) -> None:
    schema = json.dumps(
        {"title": "Thing", "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    )
    write = JSONSerializer(schema, client)
    context = SerializationContext("things", MessageField.VALUE)
    data = write({"n": 5}, context)
    assert JSONDeserializer(schema, schema_registry_client=client)(data, context) == {"n": 5}
    with pytest.raises(Exception, match="'5' is not of type"):
        write({"n": "5"}, context)
    named = JSONSerializer(schema, client, conf={"subject.name.strategy": topic_record_subject_name_strategy})
    named({"n": 1}, context)
    assert client.get_latest_version("things-Thing").version == 1


def test_a_topic_is_associated_with_a_subject_of_another_name(client: SchemaRegistryClient) -> None:
    context = SerializationContext("linked", MessageField.VALUE)
    wanted = AssociationCreateOrUpdateInfo("contacts", "value", "STRONG", schema=Schema(FIELD, "AVRO"))
    request = AssociationCreateOrUpdateRequest("linked", "cluster-1", "topic-id-1", "topic", [wanted])
    made = client.create_association(request)
    assert [(each.subject, each.lifecycle) for each in made.associations] == [("contacts", "STRONG")]
    found = client.get_associations_by_resource_name("linked", "-", association_types=["value"])
    assert [each.subject for each in found] == ["contacts"]
    write = AvroSerializer(
        client, FIELD, conf={"subject.name.strategy.type": "ASSOCIATED", "auto.register.schemas": False}
    )
    assert AvroDeserializer(client)(write({"x": "a"}, context), context) == {"x": "a"}
    client.delete_associations("topic-id-1", cascade_lifecycle=True)
    assert client.get_associations_by_resource_name("linked", "cluster-1") == []
    assert "contacts" not in client.get_subjects()


def order_class() -> Any:
    """A message of a file that imports another one and a well-known one."""
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    text = """
        name: "shop/item.proto" package: "shop" syntax: "proto3"
        message_type { name: "Item" field { name: "name" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL } }
    """
    pool.Add(text_format.Parse(text, descriptor_pb2.FileDescriptorProto()))
    text = """
        name: "shop/order.proto" package: "shop" syntax: "proto3"
        dependency: "shop/item.proto" dependency: "google/protobuf/timestamp.proto"
        message_type { name: "Unused" }
        message_type {
          name: "Order"
          field { name: "item" number: 1 type: TYPE_MESSAGE type_name: ".shop.Item" label: LABEL_REPEATED }
          field { name: "at" number: 2 type: TYPE_MESSAGE type_name: ".google.protobuf.Timestamp"
                  label: LABEL_OPTIONAL }
        }
    """
    pool.Add(text_format.Parse(text, descriptor_pb2.FileDescriptorProto()))
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def test_protobuf_data_whose_schemas_are_sent_as_descriptors(client: SchemaRegistryClient, url: str) -> None:
    context = SerializationContext("shop", MessageField.VALUE)
    kind = order_class()
    order = kind(item=[{"name": "a"}], at={"seconds": 3})
    write = ProtobufSerializer(kind, client, {"use.deprecated.format": False})
    data = write(order, context)
    assert data[5:7] == b"\x02\x02"  # the second message of the file
    read = ProtobufDeserializer(kind, {"use.deprecated.format": False}, client)
    assert read(data, context) == order
    stored = client.get_latest_version("shop-value")
    assert "repeated .shop.Item item = 1" in stored.schema.schema_str
    assert [each.subject for each in stored.schema.references] == ["shop/item.proto"]
    assert client.lookup_schema("shop-value", stored.schema).version == 1
    serialized = httpx.get(f"{url}/subjects/shop-value/versions/1?format=serialized").json()["schema"]
    assert serialized != stored.schema.schema_str
    again = Schema(serialized, "PROTOBUF", stored.schema.references)
    assert client.lookup_schema("shop-value", again).version == 1


def test_a_schema_in_a_context_of_its_own(url: str) -> None:
    with SchemaRegistryClient({"url": f"{url}/contexts/.lab"}) as client:
        schema_id = client.register_schema("s", Schema(FIELD, "AVRO"))
        assert client.get_schema(schema_id).schema_str == FIELD
        assert client.get_subjects() == [":.lab:s"]
        assert ".lab" in (httpx.get(f"{url}/contexts")).json()
