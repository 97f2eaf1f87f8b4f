"""The traffic of a channel: all connections of this node to others that serve one purpose.

In: connections as they open, close and log in again, and the sizes of requests. Out: counts, as Kafka shows
them for each of its channels between nodes. Does not know: rates, names of metrics, what is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.metrics import Histogram

if TYPE_CHECKING:
    from barnabas.client.core.connection import ConnectionCore

NS_A_SECOND = 1_000_000_000


class ChannelTraffic:
    """`renewals`: nanoseconds of logins that renewed a session."""

    __slots__ = (
        "_bytes_received",
        "_bytes_sent",
        "_closed",
        "_open",
        "logins_failed",
        "made",
        "renewals",
        "renewals_failed",
        "request_bytes",
        "requests",
        "responses",
        "sessions_with_end",
        "sessions_without_end",
    )  # fmt: skip

    def __init__(self) -> None:
        self._open: dict[ConnectionCore, None] = {}
        self._bytes_received = self._bytes_sent = 0  # over connections that were closed
        self.made = self._closed = 0
        self.requests = self.responses = 0
        self.sessions_without_end = self.sessions_with_end = self.logins_failed = self.renewals_failed = 0
        self.request_bytes = Histogram()
        self.renewals = Histogram()

    # -- counting ------------------------------------------------------------------------------

    def connected(self, connection: ConnectionCore) -> None:
        """Count a connection that is ready for requests, and its login."""
        self.made += 1
        self._open[connection] = None
        if connection.settings.security.mechanism:
            if connection.has_session_end:
                self.sessions_with_end += 1
            else:
                self.sessions_without_end += 1
        connection.on_sent = self._sent
        connection.on_renewed = self._renewed

    def lost(self, connection: ConnectionCore) -> None:
        if connection in self._open:
            del self._open[connection]
            self._closed += 1
            self._bytes_received += connection.bytes_received
            self._bytes_sent += connection.bytes_sent

    def _sent(self, size: int) -> None:
        self.request_bytes.observe(size)

    def _renewed(self, seconds: float, succeeded: bool) -> None:
        if succeeded:
            self.renewals.observe(int(seconds * NS_A_SECOND))
        else:
            self.renewals_failed += 1

    # -- reading -------------------------------------------------------------------------------

    @property
    def connections(self) -> int:
        return sum(each.is_open for each in self._open)

    @property
    def closed(self) -> int:
        return self._closed + len(self._open) - self.connections

    @property
    def bytes_received(self) -> int:
        return self._bytes_received + sum(each.bytes_received for each in self._open)

    @property
    def bytes_sent(self) -> int:
        return self._bytes_sent + sum(each.bytes_sent for each in self._open)

    @property
    def logins(self) -> int:
        return self.sessions_with_end + self.sessions_without_end
