"""Settings of topics and brokers: read them with where each value comes from, and change them one by one.

In: a Cluster, resources. Out: ConfigEntry values. Broker settings are asked from the broker itself.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from barnabas.client.cluster import Cluster, check
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSource(IntEnum):
    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource(NamedTuple):
    type: ResourceType
    name: str


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    source: int
    sensitive: bool
    read_only: bool

    @property
    def is_default(self) -> bool:
        return self.source == ConfigSource.DEFAULT


class ConfigAdmin:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def describe_configs(
        self, resources: Iterable[ConfigResource]
    ) -> dict[ConfigResource, list[ConfigEntry]]:
        """Every setting of each resource, in the broker's order."""
        wanted = list(resources)
        if not wanted:
            return {}
        request = DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=each.type, resource_name=each.name, configuration_keys=None
                )
                for each in wanted
            ]
        )
        answer = await self.cluster.retrying(lambda: self.cluster.ask(request, DescribeConfigsResponse))
        found = {}
        for result in answer.results:
            check(result.error_code, result.error_message)
            resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
            found[resource] = [
                ConfigEntry(each.name, each.value, each.config_source, each.is_sensitive, each.read_only)
                for each in result.configs
            ]
        return found

    async def alter_configs(
        self, resource: ConfigResource, changes: Mapping[str, str | None], *, validate_only: bool = False
    ) -> None:
        """Set each named value, or remove it where the value is None."""
        nested = IncrementalAlterConfigsRequest.AlterConfigsResource
        configs = [
            nested.AlterableConfig(
                name=name,
                config_operation=ConfigOperation.DELETE if value is None else ConfigOperation.SET,
                value=value,
            )
            for name, value in changes.items()
        ]
        request = IncrementalAlterConfigsRequest(
            resources=[nested(resource_type=resource.type, resource_name=resource.name, configs=configs)],
            validate_only=validate_only,
        )
        answer = await self.cluster.ask(request, IncrementalAlterConfigsResponse)
        for result in answer.responses:
            check(result.error_code, result.error_message)
