"""The response to a request that is sent in the middle of a login: ILLEGAL_SASL_STATE in its own form."""

from __future__ import annotations

from typing import Any

from barnabas.controller.refusals import refusal
from barnabas.protocol import ApiKey, ErrorCode, KafkaError, Message, apis

MESSAGE = "Unexpected Kafka request during SASL authentication."


def illegal_state_response(request: Any) -> Message | None:
    """None if the request has no response. The connection is closed after it, so a response without a place
    for an error is empty."""
    error = KafkaError(ErrorCode.ILLEGAL_SASL_STATE, MESSAGE)
    key = request.schema.key
    response: Any = apis.response_class(key)()
    if key == ApiKey.METADATA:
        topics = [
            response.MetadataResponseTopic(error_code=error.code, name=topic.name, topic_id=topic.topic_id)
            for topic in request.topics or ()
        ]
        response.topics = topics
        if hasattr(response, "error_code"):
            response.error_code = error.code
        return response  # type: ignore[no-any-return]
    if key == ApiKey.PRODUCE:
        return None if request.acks == 0 else response
    try:
        return refusal(request, error)
    except AttributeError:
        return response  # type: ignore[no-any-return]
