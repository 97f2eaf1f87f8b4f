"""Fifty thousand groups on the three nodes of `bench.cluster_stalls`: they commit, are listed, and move.

In: a cluster and the number of groups. Out: `ClusterGroups`, which sends each group's requests to its
coordinator. Does not know: how waits are measured.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.testing.waiting import wait_until
from bench import frames, group_frames
from bench.generator import LoadError
from bench.group_stalls import COMMITS_AT_ONCE, connected, exchange

if TYPE_CHECKING:
    from bench.cluster_stalls import Watched

GROUPS = 50_000
TOPIC = "probe-1"  # the groups commit offsets of a topic that exists anyway
FIND_VERSION = 4
NAMES_AT_ONCE = 1_000
SAMPLE = 500  # groups whose offsets are fetched to see that they are loaded
PATIENCE_S = 120.0

Coordinators = dict[int, list[str]]


class ClusterGroups:
    def __init__(self, watched: Watched, count: int) -> None:
        self._watched = watched
        self.names = [f"one-of-many-{number:05}" for number in range(count)]

    def coordinators(self, at: int, names: list[str]) -> Coordinators | None:
        """The groups of each node; None if a group has no coordinator now."""
        found: Coordinators = {}
        for first in range(0, len(names), NAMES_AT_ONCE):
            some = names[first : first + NAMES_AT_ONCE]
            body = FindCoordinatorRequest(coordinator_keys=some).encode(FIND_VERSION)
            answer = self._watched.ask(at, frames.request(10, FIND_VERSION, body, flexible=True))
            response = FindCoordinatorResponse.decode(answer[frames.CORRELATION_BYTES + 1 :], FIND_VERSION)
            for each in response.coordinators:
                if each.error_code:
                    return None
                found.setdefault(each.node_id, []).append(each.key)
        return found

    def need_coordinators(self, at: int) -> None:
        wait_until(lambda: self._answer(at), PATIENCE_S, "the groups have coordinators")

    def _answer(self, at: int, without: int | None = None) -> bool:
        """Whether the offsets of some groups can be fetched, and none from the node `without`."""
        from bench.cluster_stalls import pause

        found = self.coordinators(at, self.names[:SAMPLE])
        return (
            found is not None
            and without not in found
            and all(
                not group_frames.offset_fetch_error(response)
                for node_id, names in found.items()
                for response in self._exchanged(
                    node_id, names, [group_frames.offset_fetch(name, TOPIC, 0) for name in names]
                )
            )
        ) or pause()

    def until_moved(self, at: int, away_from: int) -> None:
        """Wait until other nodes have loaded the groups of this one."""
        wait_until(lambda: self._answer(at, away_from), PATIENCE_S, "the groups have moved")

    def commit(self, at: int, offset: int) -> None:
        """Let each group commit an offset at its coordinator."""
        found = self.coordinators(at, self.names)
        if found is None:
            raise LoadError("a group has no coordinator")
        error_at = group_frames.commit_error_at(TOPIC) - frames.SIZE_BYTES
        for node_id, names in found.items():
            requests = [group_frames.commit(name, TOPIC, offset) for name in names]
            for response in self._exchanged(node_id, names, requests):
                if error := struct.unpack_from(">h", response, error_at)[0]:
                    raise LoadError(f"a group's offset was refused with error {error}")

    def _exchanged(self, node_id: int, names: list[str], requests: list[bytes]) -> Iterator[bytes]:
        with connected(self._watched.port(node_id)) as connection:
            for first in range(0, len(requests), COMMITS_AT_ONCE):
                yield from exchange(connection, requests[first : first + COMMITS_AT_ONCE])

    def list_all(self) -> None:
        """List the groups of every node."""
        total = 0
        for node_id, node in self._watched.cluster.nodes.items():
            if node.is_running:
                response = self._watched.ask(node_id, frames.request(16, 2, b"", flexible=False))
                error, count = struct.unpack_from(">hi", response, frames.CORRELATION_BYTES + 4)
                if error:
                    raise LoadError(f"node {node_id} lists its groups with error {error}")
                total += count
        if total < len(self.names):
            raise LoadError(f"{total} of {len(self.names)} groups were listed")
