"""One partition as its leader sees it: leader epoch, in-sync replicas, high watermark.

In: the leader's own log end, and followers' as their fetches show them. Out: the high watermark, up to which
records are on every in-sync replica and may be read. With one replica it follows the log end.
Does not know: logs, the controller that changes the ISR, the clock.
"""

from collections.abc import Sequence


class PartitionState:
    """Invariant: the high watermark never falls, except by truncation, and never passes the log end."""

    __slots__ = ("_follower_ends", "high_watermark", "isr", "leader_epoch", "log_end_offset", "replica_id")

    def __init__(self, replica_id: int, log_end_offset: int = 0, high_watermark: int = 0) -> None:
        self.replica_id = replica_id  # this broker's
        self.leader_epoch = -1
        self.isr: tuple[int, ...] = ()
        self.log_end_offset = log_end_offset
        self.high_watermark = min(high_watermark, log_end_offset)
        self._follower_ends: dict[int, int] = {}  # in-sync followers; -1 until they fetch in this epoch

    def lead(self, leader_epoch: int, isr: Sequence[int]) -> bool:
        """Become leader in an epoch, or take over a changed ISR; True when the high watermark moved.

        What a follower had in an older epoch proves nothing in a new one.
        """
        known = self._follower_ends if leader_epoch == self.leader_epoch else {}
        self.leader_epoch = leader_epoch
        self.isr = tuple(isr)
        self._follower_ends = {
            replica: known.get(replica, -1) for replica in isr if replica != self.replica_id
        }
        return self._advance()

    def advance_log_end(self, log_end_offset: int) -> bool:
        """Note an append; True when the high watermark moved."""
        self.log_end_offset = log_end_offset
        if not self._follower_ends:
            if log_end_offset <= self.high_watermark:
                return False
            self.high_watermark = log_end_offset
            return True
        return self._advance()

    def advance_follower(self, replica_id: int, log_end_offset: int) -> bool:
        """Note up to where an in-sync follower has the log; True when the high watermark moved."""
        known = self._follower_ends.get(replica_id)
        if known is None or log_end_offset <= known:
            return False
        self._follower_ends[replica_id] = log_end_offset
        return self._advance()

    def truncate(self, log_end_offset: int) -> None:
        """The log was cut: nothing above its new end is committed here any more."""
        self.log_end_offset = log_end_offset
        self.high_watermark = min(self.high_watermark, log_end_offset)

    def last_stable_offset(self, first_unstable_offset: int | None) -> int:
        """Up to where a `read_committed` consumer may read."""
        if first_unstable_offset is None:
            return self.high_watermark
        return min(first_unstable_offset, self.high_watermark)

    def _advance(self) -> bool:
        slowest = min(self._follower_ends.values(), default=self.log_end_offset)
        high_watermark = min(slowest, self.log_end_offset)
        if high_watermark <= self.high_watermark:
            return False
        self.high_watermark = high_watermark
        return True
