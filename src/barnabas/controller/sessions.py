"""Broker sessions: the last contact with each broker, and how far it has read the metadata log.

In: heartbeats and registrations. Out: whether a session is alive, which brokers are silent for too long. Only
the active controller has them: they are not in the log, and a new controller starts every session afresh.
Does not know: fences (they are in the image), the clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(slots=True)
class BrokerSession:
    last_contact_ms: int
    metadata_offset: int = -1
    controlled_shutdown_offset: int = -1  # -1 until it asks for a controlled shutdown


class BrokerSessions:
    __slots__ = ("_sessions", "timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self._sessions: dict[int, BrokerSession] = {}  # at most one per registered broker

    def get(self, broker_id: int) -> BrokerSession | None:
        return self._sessions.get(broker_id)

    def touch(self, broker_id: int, now_ms: int, metadata_offset: int = -1) -> BrokerSession:
        session = self._sessions.get(broker_id)
        if session is None:
            session = self._sessions[broker_id] = BrokerSession(now_ms)
        session.last_contact_ms = now_ms
        session.metadata_offset = metadata_offset
        return session

    def touch_all(self, now_ms: int) -> None:
        """Restart all sessions, because the controller itself was suspended."""
        for session in self._sessions.values():
            session.last_contact_ms = now_ms

    def remove(self, broker_id: int) -> None:
        self._sessions.pop(broker_id, None)

    def is_alive(self, broker_id: int, now_ms: int) -> bool:
        session = self._sessions.get(broker_id)
        return session is not None and session.last_contact_ms + self.timeout_ms >= now_ms

    def silent_ms(self, broker_id: int, now_ms: int) -> int:
        """The time since the last contact with a broker."""
        return now_ms - self._contact(broker_id)

    def expired(self, broker_ids: Iterable[int], now_ms: int) -> list[int]:
        """The brokers silent for longer than the timeout, the longest silent first."""
        silent = [broker for broker in broker_ids if not self.is_alive(broker, now_ms)]
        return sorted(silent, key=lambda broker: (self._contact(broker), broker))

    def until_next_expiry(self, broker_ids: Iterable[int], now_ms: int, at_most_ms: int) -> int:
        """The time until the next of these sessions could expire: 1 to `at_most_ms`."""
        for broker in broker_ids:
            left_ms = self._contact(broker) + self.timeout_ms + 1 - now_ms
            if 0 < left_ms < at_most_ms:
                at_most_ms = left_ms
        return at_most_ms

    def lowest_active_offset(self, active_brokers: Iterable[int]) -> int | None:
        """The metadata offset of the slowest active broker; None if no broker is active."""
        offsets = [
            session.metadata_offset
            for broker in active_brokers
            if (session := self._sessions.get(broker)) is not None and session.controlled_shutdown_offset < 0
        ]
        return min(offsets, default=None)

    def _contact(self, broker_id: int) -> int:
        session = self._sessions.get(broker_id)
        return session.last_contact_ms if session is not None else -1
