"""A leader's record of one follower: its log end offset, and when it was last caught up.

In: the follower's fetches. Out: whether it is caught up. If a follower fetches from the offset at which the
leader's log ended during its previous fetch, it was caught up at that time. So a follower that is always a
little behind a busy leader counts as caught up.
Does not know: the ISR, the clock.
"""

from dataclasses import dataclass

UNKNOWN_OFFSET = -1
NEVER = -(2**62)  # a time


@dataclass(slots=True)
class FollowerProgress:
    log_end_offset: int = UNKNOWN_OFFSET
    log_start_offset: int = UNKNOWN_OFFSET
    broker_epoch: int = -1  # changes when the broker restarts
    caught_up_ms: int = NEVER
    fetched_ms: int = NEVER
    leader_end_at_fetch: int = UNKNOWN_OFFSET

    def begin_epoch(self, leader_end_offset: int, now_ms: int, *, in_sync: bool) -> None:
        """Reset for a new leader epoch. A follower in the ISR counts as caught up now, so that it has
        `replica.lag.time.max.ms` to fetch."""
        self.log_end_offset = self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = -1
        self.caught_up_ms = self.fetched_ms = now_ms if in_sync else NEVER
        self.leader_end_at_fetch = leader_end_offset if in_sync else UNKNOWN_OFFSET

    def record_fetch(self, fetch_offset: int, leader_end_offset: int, now_ms: int) -> None:
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif fetch_offset >= self.leader_end_at_fetch >= 0:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.log_end_offset = fetch_offset
        self.leader_end_at_fetch = leader_end_offset
        self.fetched_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= lag_ms_max
