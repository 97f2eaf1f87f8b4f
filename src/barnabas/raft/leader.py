"""The leader's record of every voter's progress, from which the high watermark follows.

In: log end offsets, from followers' fetches and from our own disk. Out: the high watermark, which never moves
back and never commits entries of older epochs alone; the content of DescribeQuorum.
Does not know: fetching, elections, the clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol import NULL_UUID
from barnabas.raft.voters import VoterSet

OBSERVERS_MAX = 10_000
OBSERVER_MS = 300_000  # an observer that has not fetched for this long is removed


@dataclass(slots=True)
class ReplicaProgress:
    directory_id: bytes = NULL_UUID
    end_offset: int = -1  # everything below it is durable on that node
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    fetched_leader_end: int = -1  # the leader's log end offset at the previous fetch

    def note(self, end_offset: int, now_ms: int, leader_end_offset: int) -> None:
        """Record a fetch. A replica is caught up if it has everything that the leader had at its previous
        fetch."""
        if end_offset >= leader_end_offset:
            self.last_caught_up_ms = now_ms
        elif 0 <= self.fetched_leader_end <= end_offset:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.end_offset = end_offset
        self.last_fetch_ms = now_ms
        self.fetched_leader_end = leader_end_offset


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
        self.observers: dict[tuple[int, bytes], ReplicaProgress] = {}
        self._progress = {voter.id: ReplicaProgress(voter.directory_id) for voter in voters.voters.values()}

    def synced(self, end_offset: int, now_ms: int) -> bool:
        """Record that our own log is durable up to here; True when that committed something."""
        return self.replicated(self.node_id, end_offset, now_ms, end_offset)

    def fetched(
        self, node_id: int, directory_id: bytes, end_offset: int, now_ms: int, leader_end_offset: int
    ) -> bool:
        """Record a fetch of a voter or observer; True when that committed something."""
        if node_id < 0:
            return False
        if self.voters.is_voter(node_id, directory_id):
            return self.replicated(node_id, end_offset, now_ms, leader_end_offset)
        observer = self.observers.get((node_id, directory_id))
        if observer is None:
            if len(self.observers) >= OBSERVERS_MAX:
                return False
            observer = self.observers[node_id, directory_id] = ReplicaProgress(directory_id)
        observer.note(end_offset, now_ms, leader_end_offset)
        return False

    def forget_observers(self, now_ms: int) -> None:
        """Remove observers that have not fetched for minutes."""
        for key, observer in list(self.observers.items()):
            if now_ms - observer.last_fetch_ms > OBSERVER_MS:
                del self.observers[key]

    def replicated(self, node_id: int, end_offset: int, now_ms: int, leader_end_offset: int) -> bool:
        """Record that a voter's log is durable up to here; True when that committed something."""
        progress = self._progress.get(node_id)
        if progress is None:
            return False
        progress.note(max(progress.end_offset, end_offset), now_ms, leader_end_offset)
        return self._advance()

    def change_voters(self, voters: VoterSet) -> None:
        """Count other voters from now on. The progress of voters that remain is kept."""
        before, self.voters = self._progress, voters
        self._progress = {}
        for voter in voters.voters.values():
            known = before.get(voter.id)
            if known is not None and known.directory_id in (NULL_UUID, voter.directory_id):
                del before[voter.id]
                known.directory_id = voter.directory_id
            else:
                known = self.observers.pop((voter.id, voter.directory_id), None)
            self._progress[voter.id] = known or ReplicaProgress(voter.directory_id)
        for node_id, progress in before.items():
            self.observers[node_id, progress.directory_id] = progress

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
