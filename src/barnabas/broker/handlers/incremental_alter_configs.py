"""IncrementalAlterConfigs: changes single settings. This broker changes the levels of its own loggers; the
controller decides on everything else.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import CLUSTER, each, of_configs
from barnabas.broker.api.routes import handles
from barnabas.broker.handlers.forwarded import to_controller
from barnabas.broker.log_lines import levels as loggers
from barnabas.controller.configs import Operation, check_request
from barnabas.metadata.configs import ResourceType
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.security.acls import vocabulary

Resource = IncrementalAlterConfigsRequest.AlterConfigsResource
Result = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse


LOGGERS_A_TURN = 50


def is_of_loggers(resource: Resource) -> bool:
    return resource.resource_type == ResourceType.BROKER_LOGGER


LOGGERS = "resources.resource_name", "responses"
NEEDS = (
    *of_configs(vocabulary.Operation.ALTER_CONFIGS, "responses"),
    each(CLUSTER, vocabulary.Operation.ALTER_CONFIGS, *LOGGERS).if_(is_of_loggers).on("broker"),
    each(CLUSTER, vocabulary.Operation.CLUSTER_ACTION, *LOGGERS).if_(is_of_loggers).on("controller"),
)


@handles(
    IncrementalAlterConfigsRequest,
    "0-1",
    needs=NEEDS,
    listeners="broker controller",
)
async def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext
) -> IncrementalAlterConfigsResponse:
    asked = request.resources
    broker = context.broker
    answered: dict[int, Result] = {}  # by position: what the controller has no part in
    named = Counter(each.resource_name for each in asked if is_of_loggers(each))
    for index, found in enumerate(asked):
        if found.resource_type == ResourceType.BROKER_LOGGER:
            is_repeated = named[found.resource_name] > 1
            is_applied = not request.validate_only
            answered[index] = alter_loggers(
                found, broker.node_id, is_repeated=is_repeated, is_applied=is_applied
            )
            if is_applied and not answered[index].error_code:
                broker.on_log_levels()
            if not len(answered) % LOGGERS_A_TURN:
                await asyncio.sleep(0)
        elif found.resource_type == ResourceType.BROKER and found.resource_name == str(broker.node_id):
            try:
                await broker.dynamic.check(
                    {
                        each.name: each.value if each.config_operation == Operation.SET else None
                        for each in found.configs
                        if each.config_operation in (Operation.SET, Operation.DELETE)
                    }
                )
            except KafkaError as error:
                answered[index] = refused(found, error)
    request.resources = [found for index, found in enumerate(asked) if index not in answered]
    response: IncrementalAlterConfigsResponse = await to_controller(request, context)
    if answered:
        decided = iter(response.responses)
        response.responses = [answered.get(index) or next(decided) for index in range(len(asked))]
    return response


def refused(found: Resource, error: KafkaError) -> Result:
    return Result(
        resource_type=found.resource_type,
        resource_name=found.resource_name,
        error_code=error.code,
        error_message=error.message,
    )


def alter_loggers(found: Resource, node_id: int, *, is_repeated: bool, is_applied: bool) -> Result:
    result = Result(resource_type=found.resource_type, resource_name=found.resource_name, error_message=None)
    try:
        if is_repeated:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
        check_request(found)
        loggers.check_node(found.resource_name, node_id)
        loggers.check(found.configs)
        if is_applied:
            loggers.apply(found.configs)
    except KafkaError as error:
        result.error_code, result.error_message = error.code, error.message
    return result
