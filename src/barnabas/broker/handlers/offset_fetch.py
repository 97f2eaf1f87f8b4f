"""OffsetFetch: the committed offsets of one group (up to version 7) or several."""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import describe_groups
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse, Split
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

BATCHED_SINCE = 8


@handles(OffsetFetchRequest, "1-10", needs=describe_groups("groups.group_id"))
def offset_fetch(request: OffsetFetchRequest, context: RequestContext) -> CombinedResponse | None:
    groups = request.groups
    if context.version < BATCHED_SINCE:
        return context.broker.groups.handle(request.group_id, request, context)
    if len(groups) == 1:
        return context.broker.groups.handle(groups[0].group_id, request, context)

    def part(indexes: list[int]) -> OffsetFetchRequest:
        return OffsetFetchRequest(
            groups=[groups[index] for index in indexes], require_stable=request.require_stable
        )

    split = Split(part, lambda response: response.groups, lambda found: OffsetFetchResponse(groups=found))
    return context.broker.groups.handle_by_key([group.group_id for group in groups], split, context)
