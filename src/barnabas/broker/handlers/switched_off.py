"""APIs of features that this node lacks, with the responses of Apache Kafka where they are switched off.

Programs that guess a broker's version look for API keys; they fail if an API is not announced or the
connection is closed. Share groups: UNSUPPORTED_VERSION, as with `share.version=0`.

Message classes are imported with the first request, so that the start does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.broker.api import needs
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import TOPIC, Need, Needs, Where
from barnabas.broker.api.routes import handles
from barnabas.protocol import ApiKey, ErrorCode, Message
from barnabas.protocol.apis import response_class
from barnabas.security.acls.vocabulary import Operation

BOTH = "broker controller"
BROKER = "broker"
NO_SHARE_GROUPS = "Share groups are not supported by this broker."

Build = Callable[[Any, RequestContext, Any], Message]
"""Makes the response from the request, its context and the response's class."""


def serve_refusal(
    key: ApiKey, versions: str, need: Need | Needs, build: Build, listeners: str = BROKER
) -> None:
    def refuse(request: Any, context: RequestContext) -> Message:
        return build(request, context, response_class(key))

    handles(key, versions, needs=need, listeners=listeners)(refuse)


def single_error(**fields: Any) -> Build:
    """One error for the whole request."""
    return lambda request, context, response: response(**fields)


def unsupported(message: str) -> Build:
    return single_error(error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=message)


# These APIs respond UNSUPPORTED_VERSION to everybody who may use them. Needs that a handler would ask are
# declared, so that the declarations are complete.
read_topics = Need(Operation.READ, TOPIC, "topics.topic_id", Where.ITEM).asked_by_handler()
no_share = unsupported(NO_SHARE_GROUPS)


serve_refusal(ApiKey.SHARE_FETCH, "1-2", (needs.read_group, read_topics), no_share)
serve_refusal(ApiKey.SHARE_ACKNOWLEDGE, "1-2", (needs.read_group, read_topics), no_share)
