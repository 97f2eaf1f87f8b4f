"""State that a node of the quorum must keep across restarts: the epoch, its vote, the leader it knows.

In and out: the JSON text of `quorum-state`, version 0 (static voters, kraft.version 0) and 1 (kraft.version
1).
Does not know: the file, when it is written.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol import NULL_UUID
from barnabas.protocol.uuid import from_text, to_text

NO_NODE = -1


@dataclass(frozen=True, slots=True)
class ElectionState:
    """Invariant: in an epoch a node votes once, and a leader, once known, does not change."""

    epoch: int = 0
    leader_id: int = NO_NODE
    voted_id: int = NO_NODE
    voted_directory_id: bytes = NULL_UUID


class CorruptElectionState(ValueError):
    """The content of `quorum-state` is not valid."""


def encode(state: ElectionState, kraft_version: int, voter_ids: Sequence[int]) -> str:
    """Encode the text as Apache Kafka writes it: one line, no blanks, these names in this order."""
    fields: dict[str, object]
    if kraft_version == 0:
        fields = {
            "clusterId": "",
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter} for voter in voter_ids],
            "data_version": 0,
        }
    else:
        fields = {
            "leaderId": state.leader_id,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_id,
            "votedDirectoryId": to_text(state.voted_directory_id),
            "data_version": 1,
        }
    return json.dumps(fields, separators=(",", ":"))


def decode(text: str) -> ElectionState:
    try:
        fields = json.loads(text)
        version = fields["data_version"]
        if version not in (0, 1):
            raise CorruptElectionState(f"quorum-state has version {version}; supported are 0 and 1")
        return ElectionState(
            epoch=int(fields["leaderEpoch"]),
            leader_id=int(fields["leaderId"]),
            voted_id=int(fields["votedId"]),
            voted_directory_id=from_text(fields["votedDirectoryId"]) if version == 1 else NULL_UUID,
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, CorruptElectionState):
            raise
        raise CorruptElectionState(f"quorum-state cannot be read: {error}") from None
