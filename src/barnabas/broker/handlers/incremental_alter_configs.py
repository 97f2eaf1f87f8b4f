"""IncrementalAlterConfigs: changes single settings. This broker changes the levels of its own loggers; the
controller decides on everything else.
"""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import alter_configs
from barnabas.broker.api.routes import handles
from barnabas.broker.handlers.forwarded import to_controller
from barnabas.broker.metrics import loggers
from barnabas.controller.configs import check_request
from barnabas.metadata.configs import ResourceType
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


@handles(
    IncrementalAlterConfigsRequest,
    "0-1",
    needs=alter_configs("resources.resource_name"),
    listeners="broker controller",
)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    asked = request.resources
    request.resources = [found for found in asked if found.resource_type != ResourceType.BROKER_LOGGER]
    response: IncrementalAlterConfigsResponse = await to_controller(request, context)
    if len(request.resources) < len(asked):
        decided = iter(response.responses)
        response.responses = [
            alter_loggers(found, asked, context.broker.node_id, validate_only=request.validate_only)
            if found.resource_type == ResourceType.BROKER_LOGGER
            else next(decided)
            for found in asked
        ]
    return response


def alter_loggers(found: Resource, asked: list[Resource], node_id: int, *, validate_only: bool) -> Result:
    result = Result(resource_type=found.resource_type, resource_name=found.resource_name, error_message=None)
    same = [each for each in asked if each.resource_type == found.resource_type]
    try:
        if sum(each.resource_name == found.resource_name for each in same) > 1:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        check_request(found)
        loggers.check_node(found.resource_name, node_id)
        loggers.check(found.configs)
        if not validate_only:
            loggers.apply(found.configs)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
    return result
