"""InitializeShareGroupState, ReadShareGroupState, WriteShareGroupState, DeleteShareGroupState and
ReadShareGroupStateSummary: brokers keep the state of share partitions at the share coordinator.

They are served whatever `share.version` is, as in Apache Kafka: the requests of clients are checked for it.
Message classes are imported with the first request, so that the start does not wait for them.
"""

from __future__ import annotations

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.needs import cluster_action
from barnabas.broker.api.routes import handles
from barnabas.broker.coordinators.split_requests import CombinedResponse
from barnabas.protocol import ApiKey, Message

VERSIONS = {
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: "0",
    ApiKey.READ_SHARE_GROUP_STATE: "0",
    ApiKey.WRITE_SHARE_GROUP_STATE: "0-1",
    ApiKey.DELETE_SHARE_GROUP_STATE: "0",
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: "0-1",
}


def handle_state(request: Message, context: RequestContext) -> CombinedResponse:
    return context.broker.share_coordinator.handle_state(request, context)


for key, versions in VERSIONS.items():
    handles(key, versions, needs=cluster_action)(handle_state)
