"""Client quotas: the usage of clients against their limits.

In: committed quotas; bytes, time and mutations as they happen. Out: how long a client must wait. A kind of
quota that is not configured is None, so that callers need to look at one attribute only. The limit of a user
and client id is looked up once, and again when quotas change; the usage so far is kept.
Does not know: connections (see `throttling`), addresses (see `connection_limits`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

from barnabas.broker.quotas import quota_callback
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.quotas import Levels, QuotaRate, RecentMean, TokenBucket
from barnabas.runtime.unexpected import UnexpectedErrors

if TYPE_CHECKING:
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.metadata.quotas import QuotasImage
    from barnabas.quotas.levels import Entity
    from barnabas.settings import BrokerSettings

MS_A_SECOND = 1000
NS_A_PERCENT = 10_000_000  # of a second: Kafka's unit of request quotas is the percent of a thread
SHARES_MAX = 10_000  # with a remembered usage
WAITS_PRUNED_FROM = 1_000
ADDRESSES = "connection_creation_rate"

Meter = TypeVar("Meter")
Shared = tuple[str, str]


class Share(Generic[Meter]):
    """The usage of all clients that share one limit."""

    __slots__ = ("_waits", "bound", "meter", "throttles")

    def __init__(self, meter: Meter, bound: float, waits: Waits | None = None) -> None:
        self.meter = meter
        self.bound = bound
        self._waits = Waits() if waits is None else waits
        self.throttles = RecentMean()  # of waits, in ms

    def throttled(self, wait_ms: int, now_ms: float) -> int:
        if wait_ms:
            self.throttles.record(wait_ms, now_ms)
            self._waits.add(now_ms + wait_ms, now_ms)
        return wait_ms


class Waits:
    """The waits that throttled clients have not ended: when each ends."""

    __slots__ = ("_ends_ms", "_prune_at")

    def __init__(self) -> None:
        self._ends_ms: list[float] = []
        self._prune_at = WAITS_PRUNED_FROM

    def add(self, end_ms: float, now_ms: float) -> None:
        self._ends_ms.append(end_ms)
        if len(self._ends_ms) >= self._prune_at:
            self._prune_at = max(2 * self.count(now_ms), WAITS_PRUNED_FROM)

    def count(self, now_ms: float) -> int:
        self._ends_ms = [each for each in self._ends_ms if each > now_ms]
        return len(self._ends_ms)


class Kind(Generic[Meter]):
    """One kind of quota: `producer_byte_rate` and its like."""

    def __init__(self, levels: Levels, new_meter: Callable[[], Meter]) -> None:
        self._levels = levels
        self._new_meter = new_meter
        self.waits = Waits()
        self._shares: dict[Shared, Share[Meter]] = {}
        self._known: dict[Shared, Share[Meter] | None] = {}

    def configure(self, levels: Levels) -> None:
        """Apply changed limits."""
        self._levels = levels
        self._known.clear()

    def of(self, user: str, client_id: str | None) -> Share[Meter] | None:
        """The share of a client; None if it has no limit."""
        key = (user, client_id or "")
        try:
            return self._known[key]
        except KeyError:
            pass
        limit = self._levels.limit(*key)
        found = None
        if limit is not None:
            found = self._shares.get(limit.shared_by)
            if found is None:
                found = self._shares[limit.shared_by] = Share(self._new_meter(), limit.bound, self.waits)
                bound_size(self._shares)
            found.bound = limit.bound
        self._known[key] = found
        bound_size(self._known)
        return found

    def shares(self) -> Iterator[tuple[Shared, Share[Meter]]]:
        return iter(list(self._shares.items()))


def bound_size(table: dict[Shared, Share[Meter]] | dict[Shared, Share[Meter] | None]) -> None:
    if len(table) > SHARES_MAX:
        table.pop(next(iter(table)))


class ClientQuotas:
    def __init__(
        self,
        settings: BrokerSettings,
        now_ms: Callable[[], float],
        unexpected: UnexpectedErrors | None = None,
    ) -> None:
        self.now_ms = now_ms  # monotonic
        self._unexpected = unexpected or UnexpectedErrors()
        self.produce: Kind[QuotaRate] | None = None
        self.fetch: Kind[QuotaRate] | None = None
        self.request: Kind[QuotaRate] | None = None
        self.mutation: Kind[TokenBucket] | None = None
        self.addresses: Levels | None = None
        # Called when quotas have changed: handlers are wrapped only while there are limits.
        self.on_change: list[Callable[[], None]] = []
        self._callback = quota_callback.load(settings["client.quota.callback.class"])
        self._windows = settings["quota.window.num"], settings["quota.window.size.seconds"] * MS_A_SECOND
        self._mutation_windows = (
            settings["controller.quota.window.num"],
            settings["controller.quota.window.size.seconds"] * MS_A_SECOND,
        )

    @property
    def longest_request_wait_ms(self) -> int:
        """The longest wait for a request quota: one sample."""
        return int(self._windows[1])

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if delta.quotas is not None:
            self.configure(image.quotas)

    def configure(self, image: QuotasImage) -> None:
        """Apply the quotas of the metadata."""
        by_entity = image.by_entity
        if self._callback is not None:
            quota_callback.tell(self._callback, by_entity, self._unexpected)
        self.produce = self._rates(self.produce, self._levels(by_entity, "producer_byte_rate"))
        self.fetch = self._rates(self.fetch, self._levels(by_entity, "consumer_byte_rate"))
        self.request = self._rates(self.request, self._levels(by_entity, "request_percentage"))
        levels = self._levels(by_entity, "controller_mutation_rate")
        if levels is None:
            self.mutation = None
        elif self.mutation is None:
            self.mutation = Kind(levels, lambda: TokenBucket(*self._mutation_windows))
        else:
            self.mutation.configure(levels)
        self.addresses = Levels.of(by_entity, ADDRESSES)
        self._unexpected.call_all(self.on_change, "applying quotas")

    def _levels(self, by_entity: Mapping[Entity, Mapping[str, float]], kind: str) -> Levels | None:
        if self._callback is not None:
            return quota_callback.CallbackLevels(self._callback, kind, self._unexpected)
        return Levels.of(by_entity, kind)

    def _rates(self, kind: Kind[QuotaRate] | None, levels: Levels | None) -> Kind[QuotaRate] | None:
        if levels is None:
            return None
        if kind is None:
            return Kind(levels, lambda: QuotaRate(*self._windows))
        kind.configure(levels)
        return kind

    # -- what happened ---------------------------------------------------------------------------

    def produced(self, user: str, client_id: str | None, size: int) -> int:
        """Count a produce request. Returns how long its client must wait."""
        share = self.produce.of(user, client_id) if self.produce is not None else None
        if share is None:
            return 0
        now_ms = self.now_ms()
        return share.throttled(share.meter.record(size, share.bound, now_ms), now_ms)

    def worked(self, user: str, client_id: str | None, spent_ns: int) -> int:
        """Count the time of a request. Returns how long its client must wait."""
        share = self.request.of(user, client_id) if self.request is not None else None
        if share is None:
            return 0
        now_ms = self.now_ms()
        wait_ms = share.meter.record(spent_ns / NS_A_PERCENT, share.bound, now_ms)
        return share.throttled(min(wait_ms, self.longest_request_wait_ms), now_ms)

    def fetching(self, user: str, client_id: str | None) -> FetchLimit | None:
        share = self.fetch.of(user, client_id) if self.fetch is not None else None
        return FetchLimit(share, self.now_ms) if share is not None else None

    def mutating(self, user: str, client_id: str | None, *, strict: bool) -> Mutations | None:
        share = self.mutation.of(user, client_id) if self.mutation is not None else None
        return Mutations(share, self.now_ms, strict=strict) if share is not None else None


class FetchLimit:
    """One fetch of a limited client."""

    __slots__ = ("_now_ms", "_share")

    def __init__(self, share: Share[QuotaRate], now_ms: Callable[[], float]) -> None:
        self._share = share
        self._now_ms = now_ms

    @property
    def bytes_max(self) -> int:
        """The largest response: half a sample's bytes, so that waits are short and the rate is even."""
        return max(1, int(self._share.bound * self._share.meter.rate.sample_ms / MS_A_SECOND / 2))

    def wait_ms(self, size: int) -> int:
        """Count a response. Returns how long the client must wait for it instead, if it is over the limit."""
        share, now_ms = self._share, self._now_ms()
        return share.throttled(share.meter.try_record(size, share.bound, now_ms), now_ms)


class Mutations:
    """One request that changes topics: created and deleted partitions count (KIP-599). Newer clients get an
    error and retry (`strict`); others are served, and wait afterwards.
    """

    __slots__ = ("_now_ms", "_share", "_strict")

    def __init__(self, share: Share[TokenBucket], now_ms: Callable[[], float], *, strict: bool) -> None:
        self._share = share
        self._now_ms = now_ms
        self._strict = strict

    def spend(self, count: int) -> None:
        share, now_ms = self._share, self._now_ms()
        if self._strict and share.meter.throttle_ms(share.bound, now_ms):
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
        share.meter.spend(count, share.bound, now_ms)

    def wait_ms(self) -> int:
        share, now_ms = self._share, self._now_ms()
        return share.throttled(share.meter.throttle_ms(share.bound, now_ms), now_ms)
