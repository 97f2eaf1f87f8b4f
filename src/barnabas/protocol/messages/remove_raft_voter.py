"""RemoveRaftVoter: a controller leaves the voters of the quorum."""

from __future__ import annotations

from barnabas.protocol.message import Message
from barnabas.protocol.types import NULL_UUID, Int16, Int32, String, Uuid


class RemoveRaftVoterRequest(Message, key=81, versions="0", flexible="0+"):
    cluster_id: String | None = ""
    voter_id: Int32 = 0
    voter_directory_id: Uuid = NULL_UUID


class RemoveRaftVoterResponse(Message, key=81, versions="0", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
