"""DescribeConfigs: settings and where each value comes from, and the levels of loggers.

Resources are topics, brokers, groups and client metrics subscriptions.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Sequence

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.large_requests import encode_in_steps
from barnabas.broker.api.needs import of_configs
from barnabas.broker.api.routes import handles
from barnabas.broker.log_lines import levels as loggers
from barnabas.controller.topic_names import reason_invalid
from barnabas.metadata.configs import ConfigResource, ResourceType
from barnabas.metadata.steps import Steps, at_once
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.security.acls.vocabulary import Operation
from barnabas.settings import describe
from barnabas.settings.describe import Entry, Source

RequestedResource = DescribeConfigsRequest.DescribeConfigsResource
Result = DescribeConfigsResponse.DescribeConfigsResult
Config = Result.DescribeConfigsResourceResult
DOCUMENTED_SINCE = 3
RESOURCES_AT_ONCE = 4


@handles(
    DescribeConfigsRequest,
    "1-4",
    needs=of_configs(Operation.DESCRIBE_CONFIGS, "results"),
    listeners="broker controller",
)
def describe_configs(
    request: DescribeConfigsRequest, context: RequestContext
) -> DescribeConfigsResponse | Awaitable[bytes]:
    if len(request.resources) > RESOURCES_AT_ONCE:
        return describe_many(request, context)
    return at_once(describe_resources(request, context))


async def describe_many(request: DescribeConfigsRequest, context: RequestContext) -> bytes:
    """Describe in pieces: the settings of one topic are fifty objects in the response."""
    pieces = context.broker.pieces
    response = await pieces.run(describe_resources(request, context))
    return await pieces.run(encode_in_steps(response, context.version))


def describe_resources(
    request: DescribeConfigsRequest, context: RequestContext
) -> Steps[DescribeConfigsResponse]:
    results = []
    for asked in request.resources:
        yield
        try:
            configs = [config_of(entry, request, context.version) for entry in entries(asked, context)]
            results.append(
                Result(
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                    error_message="",
                    configs=configs,
                )
            )
        except KafkaError as error:
            results.append(
                Result(
                    resource_type=asked.resource_type,
                    resource_name=asked.resource_name,
                    error_code=error.code,
                    error_message=error.message,
                )
            )
    return DescribeConfigsResponse(results=results)


def entries(asked: RequestedResource, context: RequestContext) -> Sequence[Entry]:
    broker = context.broker
    name, keys = asked.resource_name, asked.configuration_keys
    if asked.resource_type == ResourceType.TOPIC:
        problem = reason_invalid(name)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        if name not in broker.image.topics.by_name:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return describe.describe_topic(broker.image.configs.topic(name), broker.settings, keys)
    if asked.resource_type == ResourceType.BROKER:
        if name == "":
            return describe.describe_cluster_default(broker.settings, keys)
        check_broker(name, broker.node_id)
        return describe.describe_broker(broker.settings, keys)
    if asked.resource_type == ResourceType.GROUP:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
        overrides = broker.image.configs.of(ConfigResource(ResourceType.GROUP, name))
        return describe.describe_group(overrides, broker.settings, keys)
    if asked.resource_type == ResourceType.CLIENT_METRICS:
        if not name:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        overrides = broker.image.configs.of(ConfigResource(ResourceType.CLIENT_METRICS, name))
        return describe.describe_client_metrics(overrides, keys)
    if asked.resource_type == ResourceType.BROKER_LOGGER:
        check_logging_broker(name, broker.node_id)
        return describe.describe_loggers(loggers.levels(keys))
    raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unsupported resource type: {asked.resource_type}")


def check_broker(name: str, node_id: int) -> None:
    """Raise KafkaError unless the name is this broker's id: a broker knows only its own settings."""
    if broker_id(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {node_id} or empty string, but received {name}",
        )


def check_logging_broker(name: str, node_id: int) -> None:
    if not name:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
    if broker_id(name) != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {node_id} but received {name}"
        )


def broker_id(name: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", name):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}")
    return int(name)


def config_of(entry: Entry, request: DescribeConfigsRequest, version: int) -> Config:
    synonyms = entry.synonyms if request.include_synonyms else ()
    documented = request.include_documentation or entry.source == Source.LOGGER
    return Config(
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=entry.source,
        is_sensitive=entry.sensitive,
        synonyms=[
            Config.DescribeConfigsSynonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in synonyms
        ],
        config_type=entry.type,
        documentation=entry.documentation if documented and version >= DOCUMENTED_SINCE else None,
    )
