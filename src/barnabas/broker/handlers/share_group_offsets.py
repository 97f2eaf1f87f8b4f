"""AlterShareGroupOffsets and DeleteShareGroupOffsets: where a share group without members reads on.

Both wait for share coordinators, which keep the offsets.
"""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import TOPIC, each, group, read_group
from barnabas.broker.api.routes import handles
from barnabas.metadata.versions import SHARE_VERSION
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.security.acls.vocabulary import Operation

read_topics = each(TOPIC, Operation.READ, "topics.topic_name", "responses")
SWITCHED_OFF = ErrorCode.UNSUPPORTED_VERSION


@handles(AlterShareGroupOffsetsRequest, "0-0", needs=(read_group, read_topics))
def alter_share_group_offsets(
    request: AlterShareGroupOffsetsRequest, context: RequestContext
) -> Message | Deferred | None:
    if not context.broker.image.features.level(SHARE_VERSION):
        return AlterShareGroupOffsetsResponse(error_code=SWITCHED_OFF, error_message=SWITCHED_OFF.message)
    return context.broker.groups.handle(request.group_id, request, context)


@handles(DeleteShareGroupOffsetsRequest, "0-0", needs=(group(Operation.DELETE), read_topics))
def delete_share_group_offsets(
    request: DeleteShareGroupOffsetsRequest, context: RequestContext
) -> Message | Deferred | None:
    if not context.broker.image.features.level(SHARE_VERSION):
        return DeleteShareGroupOffsetsResponse(error_code=SWITCHED_OFF, error_message=SWITCHED_OFF.message)
    return context.broker.groups.handle(request.group_id, request, context)
