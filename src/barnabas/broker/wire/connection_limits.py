"""Limits of connections: their number by broker, listener and address, and their creation rate.

In: settings, limits of addresses, connections as they open and close. Out: whether a listener may accept
another, how long its next connection waits, whether an address is over its limit. As in Kafka, the
inter-broker listener admits connections beyond `max.connections` if clients have another listener: a broker
full of clients must stay reachable for its peers. Does not know: sockets.
"""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.quotas import Levels, QuotaRate
from barnabas.settings import BrokerSettings

MS_A_SECOND = 1000
ADDRESSES_MAX = 10_000  # with a remembered rate
UNLIMITED = 2**31 - 1
LIMITS = (
    "max.connections",
    "max.connections.per.ip",
    "max.connections.per.ip.overrides",
    "max.connection.creation.rate",
)


class ConnectionLimits:
    """One object for all listeners of a broker, one for those of its controller."""

    __slots__ = (
        "_address_rates", "_listeners", "_rate", "_rates", "_sample_count", "_sample_ms", "_settings",
        "address_levels", "address_throttle_times", "idle_seconds", "per_host", "throttle_times", "total",
    )  # fmt: skip

    def __init__(self, settings: BrokerSettings) -> None:
        self.total = 0
        self.per_host: dict[str, int] = {}
        self.address_levels: Levels | None = None
        self.throttle_times: dict[str, int] = {}  # the last wait of each listener, in ms
        self.address_throttle_times: dict[str, int] = {}  # of a connection of an address that has a limit
        self._settings = settings
        self._listeners: dict[str, int] = {}
        self._sample_count: int = settings["quota.window.num"]
        self._sample_ms: int = settings["quota.window.size.seconds"] * MS_A_SECOND
        self._rate = self._new_rate()
        self._rates: dict[str, QuotaRate] = {}
        self._address_rates: dict[str, QuotaRate] = {}
        idle_ms: int = settings["connections.max.idle.ms"]
        self.idle_seconds = idle_ms / MS_A_SECOND if idle_ms > 0 else float("inf")

    def configure(self, settings: BrokerSettings) -> None:
        """Apply changed settings."""
        self._settings = settings

    def add_listener(self, name: str) -> None:
        self._listeners.setdefault(name, 0)
        self._rates.setdefault(name, self._new_rate())
        self.throttle_times.setdefault(name, 0)
        self.address_throttle_times.setdefault(name, 0)

    def remove_listener(self, name: str) -> None:
        self._listeners.pop(name, None)
        for table in (self._rates, self.throttle_times, self.address_throttle_times):
            table.pop(name, None)

    def _new_rate(self) -> QuotaRate:
        return QuotaRate(self._sample_count, self._sample_ms)

    # -- places ----------------------------------------------------------------------------------

    @property
    def total_max(self) -> int:
        found: int = self._settings["max.connections"]
        return found

    def listener_max(self, listener: str) -> int:
        found: int = self._settings.for_listener(listener, "max.connections")
        return found

    def is_protected(self, listener: str) -> bool:
        """Whether it is the inter-broker listener, and clients have another."""
        return listener == self._settings.inter_broker_listener_name and len(self._listeners) > 1

    def has_place(self, listener: str) -> bool:
        if self._listeners.get(listener, 0) >= self.listener_max(listener):
            return False
        return self.is_protected(listener) or self.total < self.total_max

    @property
    def is_exceeded(self) -> bool:
        """More than `max.connections`: it was lowered, or the inter-broker listener admitted one."""
        return self.total > self.total_max

    def count(self, listener: str, host: str) -> None:
        self.total += 1
        self._listeners[listener] = self._listeners.get(listener, 0) + 1
        self.per_host[host] = self.per_host.get(host, 0) + 1

    def forget(self, listener: str, host: str) -> None:
        self.total -= 1
        if listener in self._listeners:
            self._listeners[listener] -= 1
        left = self.per_host.get(host, 1) - 1
        if left:
            self.per_host[host] = left
        else:
            self.per_host.pop(host, None)

    def allowed_from(self, host: str) -> int:
        settings = self._settings
        allowed: int = settings.max_connections_per_ip_overrides.get(host, settings["max.connections.per.ip"])
        return allowed

    # -- rates -----------------------------------------------------------------------------------

    def wait_ms(self, listener: str, now_ms: float) -> int:
        """Record a new connection. Returns how long the listener must accept no other."""
        wait = 0
        if not self.is_protected(listener):
            wait = self._rate.record(1, self._settings["max.connection.creation.rate"], now_ms)
        rate = self._rates.get(listener)
        if rate is not None:
            bound = self._settings.for_listener(listener, "max.connection.creation.rate")
            wait = max(wait, rate.record(1, bound, now_ms))
        wait = min(wait, self._sample_ms)
        if wait:
            self.throttle_times[listener] = wait
        return wait

    def address_wait_ms(self, host: str, listener: str, now_ms: float) -> int:
        """Record a connection from an address. Returns 0 to serve it, or after how long to close it."""
        bound = self.address_levels.address(host) if self.address_levels is not None else None
        if bound is None:
            return 0
        rate = self._address_rates.get(host)
        if rate is None:
            if len(self._address_rates) >= ADDRESSES_MAX:
                self._address_rates.pop(next(iter(self._address_rates)))
            rate = self._address_rates[host] = self._new_rate()
        wait = min(rate.try_record(1, bound, now_ms), self._sample_ms)
        if wait:
            self.address_throttle_times[listener] = wait
            # It is not accepted: it counts for nobody.
            if not self.is_protected(listener):
                self._rate.undo(1, now_ms)
            if listener in self._rates:
                self._rates[listener].undo(1, now_ms)
        return wait

    def accept_rate(self, now_ms: float) -> float:
        """Connections a second of all listeners that count for the broker."""
        return self._rate.rate.rate(now_ms)

    def accept_rates(self, now_ms: float) -> Mapping[str, float]:
        """Connections a second, of each listener."""
        return {name: rate.rate.rate(now_ms) for name, rate in self._rates.items()}
