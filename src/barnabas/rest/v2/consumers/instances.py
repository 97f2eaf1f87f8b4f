"""All consumer instances of this proxy: created, found, expired, bounded in number.

In: groups and names. Out: instances, or ApiError: 40902 for a name that is taken, 40403 for one that is not
there, 429 when there are too many. Instances that nobody used for long leave their groups.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field

from barnabas.client.consumers.fetcher import FetchSettings
from barnabas.client.consumers.group_consumer import OffsetReset
from barnabas.rest.kafka_errors import THROTTLED
from barnabas.rest.v2.consumers.instance import Instance, no_instance
from barnabas.services.errors import ApiError

log = logging.getLogger("barnabas.rest")

NAME_TAKEN = 40902
SWEEP_S = 1.0
CLOSE_S_MAX = 10.0


@dataclass(frozen=True, slots=True)
class ConsumerSettings:
    """Settings of all instances, behind each the property that sets it."""

    instances_max: int = 1_000  # barnabas.consumer.instances.max
    instances_per_owner_max: int = 100  # barnabas.consumer.instances.per.principal.max
    instance_timeout_ms: int = 300_000  # consumer.instance.timeout.ms
    request_timeout_ms: int = 1_000  # consumer.request.timeout.ms
    request_bytes_max: int = 64 * 1024 * 1024  # consumer.request.max.bytes
    response_bytes_max: int = 256 * 1024 * 1024  # barnabas.consumer.responses.bytes.max: of all together
    bytes_min: int = -1  # fetch.min.bytes
    wait_ms_max: int = 50_000  # of one read, below the frame's limit for a request
    reset: OffsetReset = OffsetReset.LATEST  # consumer.auto.offset.reset
    session_timeout_ms: int = 45_000  # consumer.session.timeout.ms
    heartbeat_interval_ms: int = 3_000  # consumer.heartbeat.interval.ms
    rebalance_timeout_ms: int = 60_000  # consumer.max.poll.interval.ms: members join between reads
    fetch: FetchSettings = field(default_factory=FetchSettings)


class Instances:
    def __init__(self, settings: ConsumerSettings) -> None:
        self.settings = settings
        self._instances: dict[tuple[str, str], Instance] = {}
        self._owners: Counter[object] = Counter()
        self._sweeper: asyncio.Task[None] | None = None
        self._closing: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._instances)

    def add(self, group: str, name: str, instance: Instance) -> None:
        settings, owner = self.settings, instance.owner
        if (group, name) in self._instances:
            raise ApiError(
                409,
                NAME_TAKEN,
                f"Consumer with specified consumer ID {name} already exists in group {group}.",
            )
        if len(self._instances) >= settings.instances_max:
            raise too_many(f"this proxy has {len(self._instances)} consumer instances")
        if self._owners[owner] >= settings.instances_per_owner_max:
            raise too_many(f"{self._owners[owner]} consumer instances belong to this caller")
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep())
        self._instances[group, name] = instance
        instance.used_at = asyncio.get_running_loop().time()
        self._owners[owner] += 1

    def find(self, group: str, name: str, owner: object) -> Instance:
        """The instance of this caller. One of another caller is not there."""
        instance = self._instances.get((group, name))
        if instance is None or instance.owner != owner:
            raise no_instance()
        instance.used_at = asyncio.get_running_loop().time()
        return instance

    async def remove(self, group: str, name: str, owner: object) -> None:
        self.find(group, name, owner)
        await self._pop((group, name)).close()

    def _pop(self, key: tuple[str, str]) -> Instance:
        instance = self._instances.pop(key)
        self._owners[instance.owner] -= 1
        if not self._owners[instance.owner]:
            del self._owners[instance.owner]
        return instance

    async def close(self) -> None:
        """Close all: every one leaves its group."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            await asyncio.gather(self._sweeper, return_exceptions=True)
            self._sweeper = None
        closing = [self._pop(key).close() for key in list(self._instances)]
        try:
            async with asyncio.timeout(CLOSE_S_MAX):
                await asyncio.gather(*closing, *self._closing, return_exceptions=True)
        except TimeoutError:
            log.warning("some consumer instances did not leave their groups within %s s", CLOSE_S_MAX)

    async def _sweep(self) -> None:
        while True:
            timeout_s = self.settings.instance_timeout_ms / 1000
            await asyncio.sleep(min(SWEEP_S, timeout_s / 2))
            now = asyncio.get_running_loop().time()
            for key, instance in list(self._instances.items()):
                if not instance.users and now - instance.used_at >= timeout_s:
                    log.info("consumer instance %s of group %s expired", key[1], key[0])
                    task = asyncio.create_task(self._close_quietly(self._pop(key)))
                    self._closing.add(task)
                    task.add_done_callback(self._closing.discard)

    async def _close_quietly(self, instance: Instance) -> None:
        try:
            await instance.close()
        except Exception:
            log.exception("a consumer instance did not close in order")


def too_many(state: str) -> ApiError:
    return ApiError(429, THROTTLED, f"Too many consumer instances: {state}. Delete some, or let them expire.")
