"""APIs of features that this node lacks, with the responses of Apache Kafka where they are switched off.

Programs that guess a broker's version look for API keys; they fail if an API is not announced or the
connection is closed. Share groups and streams groups: UNSUPPORTED_VERSION, as with `share.version=0` and
`streams.version=0`.

Message classes are imported with the first request, so that the start does not wait for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.broker.api import needs
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import GROUP, TOPIC, Need, Needs, Where, each
from barnabas.broker.api.routes import handles
from barnabas.protocol import ApiKey, ErrorCode, Message
from barnabas.protocol.apis import response_class
from barnabas.security.acls.vocabulary import Operation

BOTH = "broker controller"
BROKER = "broker"
NO_SHARE_GROUPS = "Share groups are not supported by this broker."
NO_STREAMS_GROUPS = "Streams groups are not supported by this broker."

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


def groups_not_described(message: str) -> Build:
    """The error in each group of the request."""

    def build(request: Any, context: RequestContext, response: Any) -> Message:
        described = [
            response.DescribedGroup(
                group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION, error_message=message
            )
            for group_id in request.group_ids
        ]
        return response(groups=described)  # type: ignore[no-any-return]

    return build


# These APIs respond UNSUPPORTED_VERSION to everybody who may use them. Needs that a handler would ask are
# declared, so that the declarations are complete.
describe_groups = each(GROUP, Operation.DESCRIBE, "group_ids.", "groups")
described_topics = Need(Operation.DESCRIBE, TOPIC, where=Where.ITEM).asked_by_handler()
topology_topics = needs.topics(Operation.DESCRIBE).asked_by_handler()
read_topics = Need(Operation.READ, TOPIC, "topics.topic_id", Where.ITEM).asked_by_handler()
create_topics = needs.topics(Operation.CREATE).or_(needs.Instead.CLUSTER_CREATE).left_out()
no_share, no_streams = unsupported(NO_SHARE_GROUPS), unsupported(NO_STREAMS_GROUPS)


serve_refusal(ApiKey.SHARE_FETCH, "1-2", (needs.read_group, read_topics), no_share)
serve_refusal(ApiKey.SHARE_ACKNOWLEDGE, "1-2", (needs.read_group, read_topics), no_share)

serve_refusal(
    ApiKey.STREAMS_GROUP_HEARTBEAT, "0-0", (needs.read_group, topology_topics, create_topics), no_streams
)
serve_refusal(
    ApiKey.STREAMS_GROUP_DESCRIBE,
    "0-0",
    (describe_groups, described_topics),
    groups_not_described(NO_STREAMS_GROUPS),
)
