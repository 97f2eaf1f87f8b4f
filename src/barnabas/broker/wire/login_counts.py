"""Counts of the logins of a listener, for its metrics.

In: logins and renewals of sessions, as they end. Out: counters and a histogram. Does not know: mechanisms,
names of metrics.
"""

from __future__ import annotations

from barnabas.metrics import Histogram

NS_A_MS = 1_000_000


class LoginCounts:
    """Logins of a listener. A session that is renewed is no new login."""

    __slots__ = ("expired", "failed", "renewals", "renewals_failed", "succeeded", "without_renewal")

    def __init__(self) -> None:
        self.succeeded = self.failed = self.expired = self.renewals_failed = 0
        self.without_renewal = 0  # of clients from before Kafka 2.2, which cannot renew a session
        self.renewals = Histogram()  # nanoseconds

    def login_succeeded(self, *, can_renew: bool) -> None:
        self.succeeded += 1
        self.without_renewal += not can_renew

    def renewed(self, after_ms: int) -> None:
        self.renewals.observe(max(after_ms, 0) * NS_A_MS)

    def login_failed(self, *, is_renewal: bool) -> None:
        if is_renewal:
            self.renewals_failed += 1
        else:
            self.failed += 1
