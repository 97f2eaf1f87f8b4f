"""Lanes: a node has a connection to another for each purpose, so that requests of one purpose do not wait for
those of others.

In: nothing. Out: the names of lanes, and the lane of a request to the controller. Does not know: connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol import ApiKey

if TYPE_CHECKING:
    from barnabas.protocol import Message

# Between nodes of the quorum.
VOTES, METADATA, VOTERS = "votes", "metadata", "voters"
# To the active controller. `OTHERS` has requests of this node without a lane of their own.
HEARTBEATS, IN_SYNC, DIRECTORIES, REGISTRATION = "heartbeats", "in-sync", "directories", "registration"
FORWARDED, OTHERS = "forwarded", "others"
# To other brokers.
MARKERS, VERIFICATION, SHARE_STATE, END_OFFSETS = "markers", "verification", "share-state", "end-offsets"

TO_CONTROLLER = {
    ApiKey.ALTER_PARTITION: IN_SYNC,
    ApiKey.ASSIGN_REPLICAS_TO_DIRS: DIRECTORIES,
    ApiKey.BROKER_HEARTBEAT: HEARTBEATS,
    ApiKey.BROKER_REGISTRATION: HEARTBEATS,
    ApiKey.CONTROLLER_REGISTRATION: REGISTRATION,
}


def to_controller(request: Message) -> str:
    """The lane of a request that this node itself sends to the active controller."""
    key = request.schema.key
    return OTHERS if key is None else TO_CONTROLLER.get(ApiKey(key), OTHERS)
