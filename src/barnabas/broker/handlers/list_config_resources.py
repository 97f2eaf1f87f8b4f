"""ListConfigResources: what can be configured, by type (KIP-1142); version 0 lists client metrics only."""

from __future__ import annotations

from collections.abc import Awaitable

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import describe_cluster_configs
from barnabas.broker.api.routes import handles
from barnabas.metadata.configs import ResourceType
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.steps import Steps
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

Resource = ListConfigResourcesResponse.ConfigResource
RESOURCES_A_STEP = 256


@handles(ListConfigResourcesRequest, "0-1", needs=describe_cluster_configs)
def list_config_resources(
    request: ListConfigResourcesRequest, context: RequestContext
) -> Awaitable[ListConfigResourcesResponse]:
    return context.broker.pieces.run(list_resources(request, context))


def list_resources(
    request: ListConfigResourcesRequest, context: RequestContext
) -> Steps[ListConfigResourcesResponse]:
    kinds = [int(ResourceType.CLIENT_METRICS)]
    if context.version > 0:
        kinds = list(dict.fromkeys(request.resource_types)) or [int(kind) for kind in ResourceType]
    found = []
    for kind in kinds:
        if kind not in ResourceType.__members__.values():
            return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
        for count, name in enumerate(names(kind, context.broker.image), 1):
            found.append(Resource(resource_name=name, resource_type=kind))
            if not count % RESOURCES_A_STEP:
                yield
    return ListConfigResourcesResponse(config_resources=found)


def names(kind: int, image: MetadataImage) -> list[str]:
    """All topics and brokers, configured or not; other resources only where something is set."""
    if kind == ResourceType.TOPIC:
        return list(image.topics.by_name)
    if kind in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker) for broker in image.cluster.brokers]
    return [resource.name for resource in image.configs.by_resource if resource.type == kind]
