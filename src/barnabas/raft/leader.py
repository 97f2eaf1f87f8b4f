"""The leader's books: how far every voter has synced the log, and with it what is committed.

In: ends of logs, reported by fetches of followers and by our own disk. Out: the high watermark, which never
moves back and never rests on entries of older epochs alone; what DescribeQuorum tells.
Does not know: fetching, elections, the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol import NULL_UUID
from barnabas.raft.voters import VoterSet

OBSERVERS_MAX = 10_000


@dataclass(slots=True)
class ReplicaProgress:
    directory_id: bytes = NULL_UUID
    end_offset: int = -1  # below it everything is durable on that node
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1


class Leader:
    """One term of leadership. Invariant: everything below `high_watermark` is durable on a majority of
    voters."""

    __slots__ = (
        "_progress",
        "epoch",
        "epoch_start_offset",
        "high_watermark",
        "node_id",
        "observers",
        "voters",
    )

    def __init__(self, node_id: int, epoch: int, epoch_start_offset: int, voters: VoterSet) -> None:
        self.node_id = node_id
        self.epoch = epoch
        self.epoch_start_offset = epoch_start_offset
        self.voters = voters
        self.high_watermark = -1  # unknown until an entry of this epoch is committed
        self.observers: dict[int, ReplicaProgress] = {}
        self._progress = {voter.id: ReplicaProgress(voter.directory_id) for voter in voters.voters.values()}

    def synced(self, end_offset: int, now_ms: int) -> bool:
        """Our own log is durable up to here; True when that committed something."""
        return self.replicated(self.node_id, end_offset, now_ms, end_offset)

    def replicated(self, node_id: int, end_offset: int, now_ms: int, leader_end_offset: int) -> bool:
        """A voter's log is durable up to here; True when that committed something."""
        progress = self._progress.get(node_id)
        if progress is None:
            return False
        progress.end_offset = max(progress.end_offset, end_offset)
        progress.last_fetch_ms = now_ms
        if end_offset >= leader_end_offset:
            progress.last_caught_up_ms = now_ms
        return self._advance()

    def _advance(self) -> bool:
        ends = sorted((progress.end_offset for progress in self._progress.values()), reverse=True)
        committed = ends[self.voters.majority - 1]
        # Entries of older epochs are committed only through one of this epoch (Raft, figure 8).
        if committed <= self.epoch_start_offset or committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    def voter_progress(self) -> dict[int, ReplicaProgress]:
        return dict(self._progress)
