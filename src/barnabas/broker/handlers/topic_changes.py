"""CreateTopics and DeleteTopics: forwarded to the controller, with the checks that depend on each topic.

A topic is created by callers that may not see its settings; the response then leaves them out. A topic whose
existence the caller may not know is refused alike whether it exists or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.access.mapping import change_response
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import CLUSTER, TOPIC, Instead, Need, Where, each
from barnabas.broker.api.routes import handles
from barnabas.broker.handlers.forwarded import BOTH, change_topics
from barnabas.protocol import NULL_UUID, ErrorCode
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from barnabas.security.acls.vocabulary import CLUSTER_NAME, Operation

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights

CONFIGS_SINCE = 5  # of CreateTopics: the response shows the settings of the new topic
STRUCTS_SINCE = 6  # of DeleteTopics: a request may name topics by id
NOT_SHOWN = -1
REFUSED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
Deleted = DeleteTopicsResponse.DeletableTopicResult

CREATE_NEEDS = (
    each(TOPIC, Operation.CREATE, "topics.name", "topics").or_(Instead.CLUSTER_CREATE),
    Need(
        Operation.DESCRIBE_CONFIGS, TOPIC, "topics.name", Where.ITEM, "topics", version_min=CONFIGS_SINCE
    ).asked_by_handler(),
)
DELETE_NEEDS = (
    Need(Operation.DELETE, TOPIC, "topics.name", Where.ITEM, "responses")
    .or_(Instead.CLUSTER_DELETE)
    .asked_by_handler(),
    Need(Operation.DESCRIBE, TOPIC, "topics.name", Where.ITEM, "responses").asked_by_handler(),
)


@handles(CreateTopicsRequest, "2-7", needs=CREATE_NEEDS, listeners=BOTH)
def create_topics(request: CreateTopicsRequest, context: RequestContext) -> Any:
    result = change_topics(request, context)
    rights = context.rights
    if rights is None or context.version < CONFIGS_SINCE:
        return result

    def hide(response: CreateTopicsResponse) -> None:
        for topic in response.topics:
            if not topic.error_code and not rights.allow_quietly(
                Operation.DESCRIBE_CONFIGS, TOPIC, topic.name
            ):
                topic.topic_config_error_code = REFUSED
                topic.num_partitions = topic.replication_factor = NOT_SHOWN
                topic.configs = []

    return change_response(result, request.schema.key or 0, context, hide)


@handles(DeleteTopicsRequest, "1-6", needs=DELETE_NEEDS, listeners=BOTH)
def delete_topics(request: DeleteTopicsRequest, context: RequestContext) -> Any:
    rights = context.rights
    if rights is None or rights.allow_quietly(Operation.DELETE, CLUSTER, CLUSTER_NAME):
        return change_topics(request, context)
    refused: list[Deleted] = []
    if context.version < STRUCTS_SINCE:
        kept_names = []
        for name in request.topic_names:
            result = refusal(name, NULL_UUID, rights, context)
            if result is None:
                kept_names.append(name)
            else:
                refused.append(result)
        request.topic_names = kept_names
    else:
        kept = []
        for topic in request.topics:
            result = refusal(topic.name, topic.topic_id, rights, context)
            if result is None:
                kept.append(topic)
            else:
                refused.append(result)
        request.topics = kept
    if not request.topic_names and not request.topics:
        return DeleteTopicsResponse(responses=refused)

    def add(response: DeleteTopicsResponse) -> None:
        response.responses = [*response.responses, *refused]

    return change_response(change_topics(request, context), request.schema.key or 0, context, add)


def refusal(name: str | None, topic_id: bytes, rights: Rights, context: RequestContext) -> Deleted | None:
    """The result of a topic that the caller may not delete; None if the controller decides on it."""
    topics = context.broker.image.topics
    message = REFUSED.message
    if name is None:
        found = topics.by_id.get(topic_id)
        if found is None:
            return None
        if not rights.allow(Operation.DESCRIBE, TOPIC, found.name, context.api):
            return Deleted(name=None, topic_id=topic_id, error_code=REFUSED, error_message=message)
    else:
        if not rights.allow(Operation.DESCRIBE, TOPIC, name, context.api):
            return Deleted(name=name, error_code=REFUSED, error_message=message)
        found = topics.by_name.get(name)
        if found is None:
            return None
    if rights.allow(Operation.DELETE, TOPIC, found.name, context.api):
        return None
    shown_id = found.id if name is None else NULL_UUID
    return Deleted(name=found.name, topic_id=shown_id, error_code=REFUSED, error_message=message)
