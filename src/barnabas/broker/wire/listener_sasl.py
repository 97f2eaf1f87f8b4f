"""SASL on one listener: what all of its connections share while they log in.

In: the node's offers, settings. Out: the offer for the next login, limits, counts of logins, and one log line
for repeated failures.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from barnabas.broker.api.routes import Router
from barnabas.broker.wire.login import BareRoute
from barnabas.broker.wire.login_counts import LoginCounts
from barnabas.protocol import ApiKey
from barnabas.settings.listener_settings import ListenerSettings

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.security.principal_builder import BuildPrincipal
    from barnabas.security.sasl.server_login import Offer

log = logging.getLogger("barnabas.logins")
FAILURES_TOLD_A_MINUTE = 20
REASON_LENGTH_MAX = 300


class ListenerSasl:
    def __init__(self, broker: Broker, listener: str, kind: str) -> None:
        settings = ListenerSettings(broker.settings, listener)
        self._offers = broker.logins
        self._listener = listener
        self._time = broker.loop.time
        # Requests of logins have routes of their own: quotas and ACLs count from the login on.
        self.router = Router(kind, broker.metrics, broker.settings["unstable.api.versions.enable"])
        self.bare_route = BareRoute(broker.metrics.api(ApiKey.SASL_AUTHENTICATE))
        self.offer()  # SecuritySettingsError if it cannot be made
        self.frame_bytes_max: int = settings["sasl.server.max.receive.size"]
        self.failure_delay_ms: int = settings["connection.failed.authentication.delay.ms"]
        self.logins = LoginCounts()
        self.large_frames = 0  # that are being received before their sender is known
        self._told = 0  # failures logged in this minute
        self._minute = 0

    def offer(self) -> Offer:
        return self._offers.of(self._listener)

    def principal_builder(self) -> BuildPrincipal:
        return self._offers.principal_builder(self._listener)

    def note_failure(self, host: str, reason: str) -> None:
        """Log a failed login: a flood of them writes some lines a minute."""
        minute = int(self._time()) // 60
        if minute != self._minute:
            if self._told > FAILURES_TOLD_A_MINUTE:
                hidden = self._told - FAILURES_TOLD_A_MINUTE
                log.warning("listener %s: %d more logins failed", self._listener, hidden)
            self._minute, self._told = minute, 0
        self._told += 1
        if self._told <= FAILURES_TOLD_A_MINUTE:
            shown = reason[:REASON_LENGTH_MAX]  # names of users may be in it, as long as they like
            log.warning("listener %s: the login from %s failed: %s", self._listener, host, shown)
