"""VotersRecord: the control record that holds the voters of the quorum."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Int16, Int32, String, UInt16, Uuid


class VotersRecord(Message, versions="0", flexible="0+"):
    class Voter(Struct):
        class Endpoint(Struct):
            name: String = ""
            host: String = ""
            port: UInt16 = 0

        class KRaftVersionFeature(Struct):
            min_supported_version: Int16 = 0
            max_supported_version: Int16 = 0

        voter_id: Int32 = 0
        voter_directory_id: Uuid = NULL_UUID
        endpoints: list[Endpoint] = []
        kraft_version_feature: KRaftVersionFeature = since("0+")

    version: Int16 = 0
    voters: list[Voter] = []
