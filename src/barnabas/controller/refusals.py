"""Error responses to whole requests: one error for everything in the request.

In: a request and the error that its decision raised. Out: the response, in the form of its API.
Does not know: errors of single topics, which the decisions put into their replies.
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol import ApiKey, ErrorCode, KafkaError, Message
from barnabas.protocol.apis import response_class
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

PARTS = (
    "topics",
    "results",
    "responses",
    "filter_results",
)  # where responses hold one result for each requested item


def refusal(request: Message, error: KafkaError, version: int | None = None) -> Message:
    code, message = error.code, error.message
    if code == ErrorCode.TOPIC_DELETION_DISABLED and version is not None and version < 3:
        code = ErrorCode.INVALID_REQUEST
    if isinstance(request, CreateTopicsRequest):
        return CreateTopicsResponse(
            topics=[
                CreateTopicsResponse.CreatableTopicResult(
                    name=topic.name, error_code=code, error_message=message
                )
                for topic in request.topics
            ]
        )
    if isinstance(request, DeleteTopicsRequest):
        results = [
            DeleteTopicsResponse.DeletableTopicResult(name=name, error_code=code, error_message=message)
            for name in request.topic_names
        ]
        results += [
            DeleteTopicsResponse.DeletableTopicResult(
                name=topic.name, topic_id=topic.topic_id, error_code=code, error_message=message
            )
            for topic in request.topics
        ]
        return DeleteTopicsResponse(responses=results)
    if isinstance(request, CreatePartitionsRequest):
        return CreatePartitionsResponse(
            results=[
                CreatePartitionsResponse.CreatePartitionsTopicResult(
                    name=topic.name, error_code=code, error_message=message
                )
                for topic in request.topics
            ]
        )
    if isinstance(request, IncrementalAlterConfigsRequest):
        return IncrementalAlterConfigsResponse(
            responses=[
                IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                    error_code=code,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in request.resources
            ]
        )
    if isinstance(request, AlterConfigsRequest):
        return AlterConfigsResponse(
            responses=[
                AlterConfigsResponse.AlterConfigsResourceResponse(
                    error_code=code,
                    error_message=message,
                    resource_type=resource.resource_type,
                    resource_name=resource.resource_name,
                )
                for resource in request.resources
            ]
        )
    if request.schema.key == ApiKey.ELECT_LEADERS:
        from barnabas.controller.elections import refused_elections  # rarely needed

        return refused_elections(request, error)
    if request.schema.key == ApiKey.ALTER_USER_SCRAM_CREDENTIALS:
        from barnabas.controller.scram import refused_credentials  # imported here because it is rarely needed

        return refused_credentials(request, error)
    if request.schema.key in (ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS):
        from barnabas.controller.acls import refused_acls  # imported here because it is rarely needed

        return refused_acls(request, error)
    return _with_error(request, code, message)


def is_not_controller(response: Any) -> bool:
    """Whether the response says that another controller is active, for the whole request or for one of its
    topics."""
    parts = (response, *(part for name in PARTS for part in getattr(response, name, None) or ()))
    return any(getattr(part, "error_code", ErrorCode.NONE) == ErrorCode.NOT_CONTROLLER for part in parts)


def _with_error(request: Message, code: int, message: str) -> Message:
    """The other APIs have one error code for the whole response, and some a message."""
    key = request.schema.key
    assert key is not None
    response: Any = response_class(key)()
    response.error_code = code
    if hasattr(response, "error_message"):
        response.error_message = message
    return response  # type: ignore[no-any-return]
