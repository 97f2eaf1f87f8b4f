"""The time of the audit topic's brokers, as far as a reader can know it.

In: the reader's own clock, times at which the broker stored messages. Out: the time to judge by. A message
that was not there at the last look, and is older than that look, shows that the own clock is ahead; one from
the future shows that it is behind. So a host whose clock is hours off raises no alarms. The first look has
nothing to compare with: until the next one no more time has passed since the newest message than a bucket
has to become complete. Does not know: messages.
"""

from __future__ import annotations

import logging

log = logging.getLogger("barnabas.audit")
NOTED_MS = 5_000
FIRST_LOOK_MS = 600_000
NEVER = 2**62


class BrokerTime:
    def __init__(self) -> None:
        self.ahead_ms = 0  # of the own clock
        self._looked_ms: int | None = None
        self._oldest_ms = NEVER  # of the messages that are new
        self._newest_ms = 0  # of all

    def saw(self, arrived_ms: int) -> None:
        self._oldest_ms = min(self._oldest_ms, arrived_ms)
        self._newest_ms = max(self._newest_ms, arrived_ms)

    def time_ms(self, looked_ms: int, now_ms: int) -> int:
        """After a look that began at one time of the own clock and ended at another."""
        is_first, before_ms, self._looked_ms = self._looked_ms is None, self._looked_ms, looked_ms
        if before_ms is not None and self._oldest_ms < NEVER:
            self._note(max(before_ms - self._oldest_ms, min(0, now_ms - self._newest_ms)))
        elif self._newest_ms > now_ms:
            self._note(now_ms - self._newest_ms)
        self._oldest_ms = NEVER
        found = now_ms - self.ahead_ms
        return min(found, self._newest_ms + FIRST_LOOK_MS) if is_first and self._newest_ms else found

    def _note(self, ahead_ms: int) -> None:
        found = ahead_ms if abs(ahead_ms) >= NOTED_MS else 0
        if found and not self.ahead_ms:
            log.warning("the clock of this host is %d ms ahead of the brokers': reports go by theirs", found)
        self.ahead_ms = found
