"""AlterConfigs: replaces all settings of a resource. The controller decides; this broker first refuses
settings of its own that it could not put in force, such as a key store that cannot be read.
"""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import of_configs
from barnabas.broker.api.routes import handles
from barnabas.broker.handlers.forwarded import to_controller
from barnabas.metadata.configs import ResourceType
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.security.acls.vocabulary import Operation

Result = AlterConfigsResponse.AlterConfigsResourceResponse


@handles(
    AlterConfigsRequest,
    "0-2",
    needs=of_configs(Operation.ALTER_CONFIGS, "responses"),
    listeners="broker controller",
)
async def alter_configs(request: AlterConfigsRequest, context: RequestContext) -> AlterConfigsResponse:
    asked, broker = request.resources, context.broker
    refused: dict[int, Result] = {}  # by position
    for index, found in enumerate(asked):
        if found.resource_type == ResourceType.BROKER and found.resource_name == str(broker.node_id):
            removed = dict.fromkeys(broker.image.configs.broker(broker.node_id))
            try:
                await broker.dynamic.check({**removed, **{each.name: each.value for each in found.configs}})
            except KafkaError as error:
                refused[index] = Result(
                    resource_type=found.resource_type,
                    resource_name=found.resource_name,
                    error_code=error.code,
                    error_message=error.message,
                )
    request.resources = [found for index, found in enumerate(asked) if index not in refused]
    response: AlterConfigsResponse = await to_controller(request, context)
    if refused:
        decided = iter(response.responses)
        response.responses = [refused.get(index) or next(decided) for index in range(len(asked))]
    return response
