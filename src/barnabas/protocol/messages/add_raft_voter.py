"""AddRaftVoter: a controller joins the voters of the quorum."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Bool, Int16, Int32, String, UInt16, Uuid


class AddRaftVoterRequest(Message, key=80, versions="0-1", flexible="0+"):
    class Listener(Struct):
        name: String = ""
        host: String = ""
        port: UInt16 = 0

    cluster_id: String | None = ""
    timeout_ms: Int32 = 0
    voter_id: Int32 = 0
    voter_directory_id: Uuid = NULL_UUID
    listeners: list[Listener] = []
    ack_when_committed: Bool = since("1+", True)


class AddRaftVoterResponse(Message, key=80, versions="0-1", flexible="0+"):
    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
