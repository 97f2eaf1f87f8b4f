"""LeaderChangeMessage: the control record that a new leader of the quorum writes first."""

from __future__ import annotations

from barnabas.protocol.message import Message, Struct
from barnabas.protocol.schema import since
from barnabas.protocol.types import NULL_UUID, Int16, Int32, Uuid


class LeaderChangeMessage(Message, versions="0-1", flexible="0+"):
    class Voter(Struct):
        voter_id: Int32 = 0
        voter_directory_id: Uuid = since("1+", NULL_UUID)

    version: Int16 = 0
    leader_id: Int32 = 0
    voters: list[Voter] = []
    granting_voters: list[Voter] = []
