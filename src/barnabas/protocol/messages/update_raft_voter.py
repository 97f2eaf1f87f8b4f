"""UpdateRaftVoter: a voter of the quorum tells its endpoints and versions."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since, tag
from barnabas.protocol.types import NULL_UUID, Int16, Int32, String, UInt16, Uuid


class UpdateRaftVoterRequest(Message, key=82, versions="0", flexible="0+"):
    class Listener(Struct):
        name: String = ""
        host: String = ""
        port: UInt16 = 0

    class KRaftVersionFeature(Struct):
        min_supported_version: Int16 = 0
        max_supported_version: Int16 = 0

    cluster_id: String | None = ""
    current_leader_epoch: Int32 = 0
    voter_id: Int32 = 0
    voter_directory_id: Uuid = NULL_UUID
    listeners: list[Listener] = []
    kraft_version_feature: KRaftVersionFeature = since("0+")


class UpdateRaftVoterResponse(Message, key=82, versions="0", flexible="0+"):
    class CurrentLeader(Struct):
        leader_id: Int32 = -1
        leader_epoch: Int32 = -1
        host: String = ""
        port: Int32 = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    current_leader: CurrentLeader = tag(0, "0+")
