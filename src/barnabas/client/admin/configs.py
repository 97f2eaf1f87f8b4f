"""Settings of topics, brokers, loggers, groups and client metrics: where each value comes from, and changes.

In: a Cluster, resources. Out: ConfigEntry values. What belongs to one broker is asked from that broker,
unless the cluster is one of controllers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.cluster import MISSING_TOPIC
from barnabas.client.core.errors import UnsupportedApi, check
from barnabas.client.core.topology import Node
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TYPES_SINCE = 1  # version of ListConfigResources


class ResourceType(IntEnum):
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


OF_ONE_BROKER = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)


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


class ConfigSynonym(NamedTuple):
    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    name: str
    value: str | None
    source: int
    sensitive: bool
    read_only: bool
    synonyms: tuple[ConfigSynonym, ...] = ()

    @property
    def is_default(self) -> bool:
        return self.source == ConfigSource.DEFAULT


class ConfigAdmin(AdminPart):
    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        synonyms: bool = False,
        names: Sequence[str] | None = None,
    ) -> dict[ConfigResource, list[ConfigEntry]]:
        """The settings of each resource in the broker's order: those with these names, or all."""
        wanted = list(resources)
        found = {}
        for node, some in (await self._by_broker(wanted)).items():
            request = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsRequest.DescribeConfigsResource(
                        resource_type=each.type,
                        resource_name=each.name,
                        configuration_keys=None if names is None else list(names),
                    )
                    for each in some
                ],
                include_synonyms=synonyms,
            )
            response = await self.ask(request, DescribeConfigsResponse, node=node)
            for result in response.results:
                check(result.error_code, result.error_message)
                resource = ConfigResource(ResourceType(result.resource_type), result.resource_name)
                found[resource] = [entry_of(each) for each in result.configs]
        return {resource: found[resource] for resource in wanted}

    async def list_config_resources(self, *types: ResourceType) -> list[ConfigResource]:
        """Resources that have settings of their own."""
        connection = await self.cluster.any_connection()
        version = connection.version_for(ListConfigResourcesRequest)
        request = ListConfigResourcesRequest()
        if version >= TYPES_SINCE:
            request.resource_types = [int(each) for each in types]
        elif set(types) != {ResourceType.CLIENT_METRICS}:
            raise UnsupportedApi(connection.address, "ListConfigResources", "it lists client metrics only")
        response = await connection.send(request, ListConfigResourcesResponse, version=version)
        check(response.error_code)
        return [
            ConfigResource(ResourceType(each.resource_type), each.resource_name)
            for each in response.config_resources
        ]

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
        [node] = await self._by_broker([resource])
        await self.ask(
            request,
            IncrementalAlterConfigsResponse,
            node=node,
            results=lambda response: response.responses,
            final=MISSING_TOPIC,
        )

    async def _by_broker(
        self, resources: Iterable[ConfigResource]
    ) -> dict[Node | None, list[ConfigResource]]:
        """Resources by the broker to ask; None stands for any."""
        found: dict[Node | None, list[ConfigResource]] = {}
        for each in resources:
            node = None
            if each.type in OF_ONE_BROKER and each.name.isdigit() and not self.cluster.is_quorum:
                node = self.cluster.topology.nodes.get(int(each.name)) or await self.node(int(each.name))
            found.setdefault(node, []).append(each)
        return found


def entry_of(
    response: DescribeConfigsResponse.DescribeConfigsResult.DescribeConfigsResourceResult,
) -> ConfigEntry:
    return ConfigEntry(
        response.name,
        response.value,
        response.config_source,
        response.is_sensitive,
        response.read_only,
        tuple(ConfigSynonym(each.name, each.value, each.source) for each in response.synonyms),
    )
