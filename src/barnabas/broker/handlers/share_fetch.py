"""ShareFetch and ShareAcknowledge: a member of a share group acquires records and says what became of them.

Share partitions and message classes are imported with the first request, so that the start does not wait for
them.
"""

from __future__ import annotations

from typing import Any

from barnabas.broker.api import needs
from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.deferred import Deferred
from barnabas.broker.api.needs import TOPIC, Need, Where
from barnabas.broker.api.routes import handles
from barnabas.protocol import ApiKey, Message
from barnabas.security.acls.vocabulary import Operation

read_topics = Need(Operation.READ, TOPIC, "topics.topic_id", Where.ITEM).asked_by_handler()


@handles(ApiKey.SHARE_FETCH, "1-2", needs=(needs.read_group, read_topics))
def share_fetch(request: Any, context: RequestContext) -> Message | Deferred:
    return context.broker.shares.fetch(request, context)


@handles(ApiKey.SHARE_ACKNOWLEDGE, "1-2", needs=(needs.read_group, read_topics))
def share_acknowledge(request: Any, context: RequestContext) -> Message | Deferred:
    return context.broker.shares.acknowledge(request, context)
