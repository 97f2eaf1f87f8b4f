"""Operations that a caller is authorized for: the bit field in Metadata and describe responses.

Without an authorizer every caller is authorized for all operations that a resource supports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.security.acls.vocabulary import CLUSTER_NAME, OPERATIONS, Operation, ResourceType

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext

NOT_ASKED = -(2**31)


def all_bits(resource: ResourceType) -> int:
    return sum(1 << operation for operation in OPERATIONS[resource])


ON_TOPIC = all_bits(ResourceType.TOPIC)
ON_GROUP = all_bits(ResourceType.GROUP)
ON_CLUSTER = all_bits(ResourceType.CLUSTER)


def on_topic(context: RequestContext, name: str) -> int:
    rights = context.rights
    return ON_TOPIC if rights is None else rights.bits(ResourceType.TOPIC, name)


def on_group(context: RequestContext, name: str) -> int:
    rights = context.rights
    return ON_GROUP if rights is None else rights.bits(ResourceType.GROUP, name)


def on_cluster(context: RequestContext) -> int:
    """Of the cluster; 0 without the right to describe it."""
    rights = context.rights
    if rights is None:
        return ON_CLUSTER
    if not rights.allow_quietly(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return 0
    return rights.bits(ResourceType.CLUSTER)
