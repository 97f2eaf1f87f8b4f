"""Settings of topics, of brokers and of all brokers as resources of v3: read, set, reset, altered."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, NamedTuple

from starlette.responses import Response

from barnabas.client.admin.configs import ConfigEntry, ConfigResource, ResourceType
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.rest.kafka_errors import refusal
from barnabas.rest.v3 import lists
from barnabas.rest.v3.call import Call
from barnabas.rest.v3.clusters import broker_of
from barnabas.rest.v3.fields import Fields
from barnabas.rest.v3.resources import Links, Resource
from barnabas.rest.v3.schemas import NO_TOPIC, NOT_THERE, OTHER_CLUSTER, PATH_TYPES, WRITES
from barnabas.rest.v3.topic_pages import topic_pages
from barnabas.rest.v3.vocabulary import config_source
from barnabas.services.openapi import Operations
from barnabas.services.routes import Need

TOPIC_CONFIGS = Operations("v3: settings of topics", PATH_TYPES, writes=Need.ADMIN)
BROKER_CONFIGS = Operations("v3: settings of brokers", PATH_TYPES, writes=Need.ADMIN)
OF_TOPIC = "/v3/clusters/{cluster_id}/topics/{topic_name}/configs"
OF_BROKER = "/v3/clusters/{cluster_id}/brokers/{broker_id}/configs"
OF_ALL = "/v3/clusters/{cluster_id}/broker-configs"
PORTION = 10  # topics in one question: their settings are read in a few milliseconds
QUESTIONS_AT_ONCE = 2
READS_TOPIC = (OTHER_CLUSTER, NO_TOPIC, NOT_THERE)
READS = (OTHER_CLUSTER, NOT_THERE)


class Place(NamedTuple):
    """The owner of settings: its names in Kafka and in v3."""

    resource: ConfigResource
    kind: str
    path: tuple[str | int, ...]  # of the list of settings
    name: tuple[tuple[str, str | int], ...]  # of the owner
    word: str  # in front of the name of a setting
    fields: dict[str, Any]


def topic_place(name: str) -> Place:
    return Place(
        ConfigResource(ResourceType.TOPIC, name),
        "KafkaTopicConfig",
        ("topics", name, "configs"),
        (("topic", name),),
        "config",
        {"topic_name": name},
    )


def broker_place(broker_id: int) -> Place:
    return Place(
        ConfigResource(ResourceType.BROKER, str(broker_id)),
        "KafkaBrokerConfig",
        ("brokers", broker_id, "configs"),
        (("broker", broker_id),),
        "config",
        {"broker_id": broker_id},
    )


ALL_BROKERS = Place(
    ConfigResource(ResourceType.BROKER, ""),
    "KafkaClusterConfig",
    ("broker-configs",),
    (),
    "broker-config",
    {"config_type": "BROKER"},
)


# -- topics ----------------------------------------------------------------------------------------


@TOPIC_CONFIGS.declare(
    "GET",
    "/v3/clusters/{cluster_id}/topics/-/configs",
    "List the settings of all topics",
    responses={200: "TopicConfigDataList"},
    errors=(OTHER_CLUSTER,),
)
async def list_all_topic_configs(call: Call) -> Response:
    async def portion(names: Sequence[str]) -> list[tuple[Place, ConfigEntry]]:
        return await describe_existing(call, [topic_place(name) for name in names])

    async def pages() -> AsyncIterator[Iterable[Resource]]:
        async for topics in topic_pages(call.kafka.admin):
            names = [topic.name for topic in topics]
            async for found in lists.in_portions(names, PORTION, portion, QUESTIONS_AT_ONCE):
                yield (config_resource(call.links, place, entry) for place, entry in found)

    return await lists.listed("KafkaTopicConfigList", call.links.url("topics", "-", "configs"), pages())


@TOPIC_CONFIGS.declare(
    "GET",
    OF_TOPIC,
    "List the settings of a topic",
    responses={200: "TopicConfigDataList"},
    errors=READS_TOPIC,
)
async def list_topic_configs(call: Call) -> Response:
    return await list_of(call, topic_place(call.path("topic_name")))


@TOPIC_CONFIGS.declare(
    "POST",
    f"{OF_TOPIC}:alter",
    "Change settings of a topic, all of them or none",
    request="AlterConfigBatchRequestData",
    responses={204: None},
    errors=(*WRITES, NO_TOPIC, NOT_THERE),
)
async def alter_topic_configs(call: Call) -> Response:
    return await alter(call, topic_place(call.path("topic_name")))


@TOPIC_CONFIGS.declare(
    "GET",
    f"{OF_TOPIC}/{{name}}",
    "Describe a setting of a topic",
    responses={200: "TopicConfigData"},
    errors=READS_TOPIC,
)
async def get_topic_config(call: Call) -> Response:
    return await describe_one(call, topic_place(call.path("topic_name")))


@TOPIC_CONFIGS.declare(
    "PUT",
    f"{OF_TOPIC}/{{name}}",
    "Set a setting of a topic",
    request="UpdateConfigRequestData",
    responses={204: None},
    errors=(*WRITES, NO_TOPIC, NOT_THERE),
)
async def set_topic_config(call: Call) -> Response:
    return await set_one(call, topic_place(call.path("topic_name")))


@TOPIC_CONFIGS.declare(
    "DELETE",
    f"{OF_TOPIC}/{{name}}",
    "Reset a setting of a topic to its default",
    responses={204: None},
    errors=(*WRITES[:2], NO_TOPIC, NOT_THERE),
)
async def reset_topic_config(call: Call) -> Response:
    return await reset_one(call, topic_place(call.path("topic_name")))


# -- single brokers --------------------------------------------------------------------------------


@BROKER_CONFIGS.declare(
    "GET",
    "/v3/clusters/{cluster_id}/brokers/-/configs",
    "List the settings of every broker",
    responses={200: "BrokerConfigDataList"},
    errors=(OTHER_CLUSTER,),
)
async def list_all_broker_configs(call: Call) -> Response:
    async def portion(ids: Sequence[int]) -> list[Resource]:
        found = []
        for broker_id in ids:
            place = broker_place(broker_id)
            found += [config_resource(call.links, place, entry) for entry in await entries(call, place)]
        return found

    nodes = (await call.kafka.admin.describe_cluster()).nodes
    pages = lists.in_portions([node.id for node in nodes], 1, portion)
    return await lists.listed("KafkaBrokerConfigList", call.links.url("brokers", "-", "configs"), pages)


@BROKER_CONFIGS.declare(
    "GET", OF_BROKER, "List the settings of a broker", responses={200: "BrokerConfigDataList"}, errors=READS
)
async def list_broker_configs(call: Call) -> Response:
    return await list_of(call, broker_place((await broker_of(call)).id))


@BROKER_CONFIGS.declare(
    "POST",
    f"{OF_BROKER}:alter",
    "Change settings of a broker, all of them or none",
    request="AlterConfigBatchRequestData",
    responses={204: None},
    errors=(*WRITES, NOT_THERE),
)
async def alter_broker_configs(call: Call) -> Response:
    return await alter(call, broker_place((await broker_of(call)).id))


@BROKER_CONFIGS.declare(
    "GET",
    f"{OF_BROKER}/{{name}}",
    "Describe a setting of a broker",
    responses={200: "BrokerConfigData"},
    errors=READS,
)
async def get_broker_config(call: Call) -> Response:
    return await describe_one(call, broker_place((await broker_of(call)).id))


@BROKER_CONFIGS.declare(
    "PUT",
    f"{OF_BROKER}/{{name}}",
    "Set a setting of a broker",
    request="UpdateConfigRequestData",
    responses={204: None},
    errors=(*WRITES, NOT_THERE),
)
async def set_broker_config(call: Call) -> Response:
    return await set_one(call, broker_place((await broker_of(call)).id))


@BROKER_CONFIGS.declare(
    "DELETE",
    f"{OF_BROKER}/{{name}}",
    "Reset a setting of a broker",
    responses={204: None},
    errors=(*WRITES[:2], NOT_THERE),
)
async def reset_broker_config(call: Call) -> Response:
    return await reset_one(call, broker_place((await broker_of(call)).id))


# -- all brokers together --------------------------------------------------------------------------


@BROKER_CONFIGS.declare(
    "GET",
    OF_ALL,
    "List the settings that were set for all brokers",
    responses={200: "ClusterConfigDataList"},
    errors=(OTHER_CLUSTER,),
)
async def list_cluster_configs(call: Call) -> Response:
    return await list_of(call, ALL_BROKERS)


@BROKER_CONFIGS.declare(
    "POST",
    f"{OF_ALL}:alter",
    "Change settings of all brokers, all of them or none",
    request="AlterConfigBatchRequestData",
    responses={204: None},
    errors=WRITES,
)
async def alter_cluster_configs(call: Call) -> Response:
    return await alter(call, ALL_BROKERS)


@BROKER_CONFIGS.declare(
    "GET",
    f"{OF_ALL}/{{name}}",
    "Describe a setting of all brokers",
    responses={200: "ClusterConfigData"},
    errors=READS,
)
async def get_cluster_config(call: Call) -> Response:
    return await describe_one(call, ALL_BROKERS)


@BROKER_CONFIGS.declare(
    "PUT",
    f"{OF_ALL}/{{name}}",
    "Set a setting of all brokers",
    request="UpdateConfigRequestData",
    responses={204: None},
    errors=WRITES,
)
async def set_cluster_config(call: Call) -> Response:
    return await set_one(call, ALL_BROKERS)


@BROKER_CONFIGS.declare(
    "DELETE",
    f"{OF_ALL}/{{name}}",
    "Reset a setting of all brokers",
    responses={204: None},
    errors=WRITES[:2],
)
async def reset_cluster_config(call: Call) -> Response:
    return await reset_one(call, ALL_BROKERS)


# -- shared ----------------------------------------------------------------------------------------


async def entries(call: Call, place: Place) -> list[ConfigEntry]:
    found = await call.kafka.admin.describe_configs([place.resource], synonyms=True)
    return found[place.resource]


async def describe_existing(call: Call, places: Sequence[Place]) -> list[tuple[Place, ConfigEntry]]:
    """Settings of those places that are still there."""
    try:
        found = await call.kafka.admin.describe_configs([each.resource for each in places], synonyms=True)
    except KafkaError as error:
        if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
        if len(places) == 1:
            return []
        middle = len(places) // 2
        first = await describe_existing(call, places[:middle])
        return first + await describe_existing(call, places[middle:])
    return [(place, entry) for place in places for entry in found[place.resource]]


async def list_of(call: Call, place: Place) -> Response:
    found = (config_resource(call.links, place, entry) for entry in await entries(call, place))
    return await lists.listed(f"{place.kind}List", call.links.url(*place.path), lists.page_of(found))


async def describe_one(call: Call, place: Place) -> Response:
    name = call.path("name")
    for entry in await entries(call, place):
        if entry.name == name:
            return lists.one(config_resource(call.links, place, entry))
    raise no_setting(name)


async def set_one(call: Call, place: Place) -> Response:
    value = Fields(await call.body(), ("value",)).text_or_none("value")
    name = call.path("name")
    if value is None:
        raise refusal(400, 40002, f"The value of {name[:100]} is null: DELETE resets a setting.")
    return await change(call, place, {name: value})


async def reset_one(call: Call, place: Place) -> Response:
    return await change(call, place, {call.path("name"): None})


async def alter(call: Call, place: Place) -> Response:
    fields = Fields(await call.body(), ("data", "validate_only"))
    changes: dict[str, str | None] = {}
    for value, where in fields.items("data"):
        item = Fields(value, ("name", "value", "operation"), where)
        name = item.text("name")
        deletes = item.has("operation") and item.word("operation", ("SET", "DELETE")) == "DELETE"
        if name in changes:
            raise refusal(400, 40002, f"{name[:100]} is changed twice.")
        if not deletes and not item.has("value"):
            raise refusal(400, 40002, f"{where}.value is null: the operation DELETE resets a setting.")
        changes[name] = None if deletes else item.text("value")
    return await change(call, place, changes, validate_only=fields.flag("validate_only"))


async def change(
    call: Call, place: Place, changes: dict[str, str | None], *, validate_only: bool = False
) -> Response:
    """Change settings. Names that the owner does not have are refused before the broker is asked."""
    if place is not ALL_BROKERS:
        known = {entry.name for entry in await entries(call, place)}
        for name in changes:
            if name not in known:
                raise no_setting(name)
    if changes:
        await call.kafka.admin.alter_configs(place.resource, changes, validate_only=validate_only)
    return Response(status_code=204)


def no_setting(name: str) -> Exception:
    return refusal(404, 404, f"Config {name[:200]} cannot be found.")


def config_resource(links: Links, place: Place, entry: ConfigEntry) -> Resource:
    fields = {
        **place.fields,
        "name": entry.name,
        "value": None if entry.sensitive else entry.value,
        "is_default": entry.is_default,
        "is_read_only": entry.read_only,
        "is_sensitive": entry.sensitive,
        "source": config_source(entry.source),
        "synonyms": [
            {
                "name": each.name,
                "value": None if entry.sensitive else each.value,
                "source": config_source(each.source),
            }
            for each in entry.synonyms
        ],
    }
    url = links.url(*place.path, entry.name)
    return links.resource(place.kind, url, links.name(*place.name, (place.word, entry.name)), fields)
