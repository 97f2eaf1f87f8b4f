"""The leader that a response of the quorum names: an id, an epoch, and an address in newer versions.

In: the fields of Fetch, FetchSnapshot, Vote and similar responses. Out: `LeaderHint`.
Does not know: whether the hint is still true.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class LeaderHint(NamedTuple):
    leader_id: int = -1
    epoch: int = 0
    host: str = ""  # empty: the voters' endpoints may know it
    port: int = 0


def hint_from(leader_id: int, epoch: int, node_endpoints: Any) -> LeaderHint:
    for node in node_endpoints:
        if node.node_id == leader_id:
            return LeaderHint(leader_id, epoch, node.host, node.port)
    return LeaderHint(leader_id, epoch)
