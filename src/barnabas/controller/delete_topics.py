"""DeleteTopics: by name or by id. A RemoveTopicRecord removes partitions and configs too.

In: the request (names up to version 5, names or ids from 6), the image. Out: records, and a result for each
topic.
Does not know: authorization, when the replicas are deleted from disk.
"""

from __future__ import annotations

from collections import Counter

from barnabas.controller.context import Context
from barnabas.controller.decision import Decision, InSteps
from barnabas.metadata.steps import Steps
from barnabas.metadata.topics import TopicImage
from barnabas.protocol import NULL_UUID, ErrorCode, KafkaError, Message
from barnabas.protocol.log_records.metadata import RemoveTopicRecord
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse

Result = DeleteTopicsResponse.DeletableTopicResult


@InSteps
def delete_topics(context: Context, request: DeleteTopicsRequest) -> Steps[Decision[DeleteTopicsResponse]]:
    if not context.settings["delete.topic.enable"]:
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled.")
    results: list[Result] = []
    names = Counter(request.topic_names)
    ids: Counter[bytes] = Counter()
    for topic in request.topics:
        if topic.name is None and topic.topic_id == NULL_UUID:
            results.append(_refusal(None, NULL_UUID, "Neither topic name nor id were specified."))
        elif topic.name is None:
            ids[topic.topic_id] += 1
        elif topic.topic_id == NULL_UUID:
            names[topic.name] += 1
        else:
            results.append(
                _refusal(topic.name, topic.topic_id, "You may not specify both topic name and topic id.")
            )
    results += [
        _refusal(name, NULL_UUID, "Duplicate topic name.") for name, times in names.items() if times > 1
    ]
    results += [
        _refusal(None, topic_id, "Duplicate topic id.") for topic_id, times in ids.items() if times > 1
    ]
    records: list[Message] = []
    topics = context.image.topics
    for topic_id in [topic_id for topic_id, times in ids.items() if times == 1]:
        found = topics.by_id.get(topic_id)
        yield
        if found is None:
            results.append(_unknown(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID))
        elif names[found.name] != 1:
            results.append(_delete(context, found, records))
    for name in [name for name, times in names.items() if times == 1]:
        found = topics.by_name.get(name)
        yield
        if found is None:
            results.append(_unknown(name, NULL_UUID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif ids[found.id] == 0:
            results.append(_delete(context, found, records))
        else:
            results.append(
                _refusal(name, found.id, "The provided topic name maps to an ID that was already supplied.")
            )
    return Decision(DeleteTopicsResponse(responses=results), records)


def _delete(context: Context, topic: TopicImage, records: list[Message]) -> Result:
    try:
        context.charge_mutations(len(topic.partitions))
    except KafkaError as error:
        return Result(name=topic.name, topic_id=topic.id, error_code=error.code, error_message=error.message)
    records.append(RemoveTopicRecord(topic_id=topic.id))
    return Result(name=topic.name, topic_id=topic.id)


def _refusal(name: str | None, topic_id: bytes, message: str) -> Result:
    return Result(name=name, topic_id=topic_id, error_code=ErrorCode.INVALID_REQUEST, error_message=message)


def _unknown(name: str | None, topic_id: bytes, code: ErrorCode) -> Result:
    message = {
        ErrorCode.UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    }[code]
    return Result(name=name, topic_id=topic_id, error_code=code, error_message=message)
