"""The registry's log as one thing: read by every node, changed by the one that has taken over.

In: decisions, one at a time. Out: their replies, when this node's reader has applied their records. Whoever
changes the log first takes over the fence and reads up to a record of its own (NOOP), so that it has seen
everything that earlier writers stored. That makes two nodes that both think that they are the primary safe.
Does not know: elections, HTTP, what records mean.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError, Unreachable
from barnabas.client.core.patience import Patience
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.registry.log.changes import Decide, KeyValue, Replica
from barnabas.registry.log.fenced_writer import FencedWriter, TooLarge
from barnabas.registry.log.reader import LogReader
from barnabas.registry.log.topic import TopicSettings, ensure_topic

log = logging.getLogger("barnabas.registry")

T = TypeVar("T")

NOOP = (b'{"keytype":"NOOP","magic":0}', None)
# Brokers forget producers that are silent for a day, and transactional ids after a week: with them the fence.
RENEW_S = 6 * 3600.0
PREPARE_MS = 10_000.0


@dataclass(frozen=True, slots=True)
class LogSettings:
    topic: TopicSettings = field(default_factory=TopicSettings)
    timeout_ms: float = 500  # for a record to be written and read back
    init_timeout_ms: float = 60_000  # for the topic to be found and read at the start
    noop: KeyValue = NOOP  # the record with which a writer begins
    fence: str = ""  # a transactional id; empty: one of the topic's name
    init_setting: str = "kafkastore.init.timeout.ms"


class StoreFailed(Exception):
    """The brokers refused the records, or cannot be reached."""


class StoreTimedOut(Exception):
    """The records were not written and read back in time; they may appear later."""


class SchemaLog:
    def __init__(
        self,
        cluster: ClusterCore,
        settings: LogSettings,
        state: Replica,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._state = state
        self._place = TopicPartition(settings.topic.name, 0)
        fence = settings.fence or fence_of(settings.topic.name)
        self._writer = FencedWriter(cluster, self._place, fence, clock)
        self._reader: LogReader | None = None
        self._lock = asyncio.Lock()
        self._is_current = False  # this node took over, and has applied everything that it wrote
        self._is_preparing = False
        self._taken_over_at = 0.0
        self._failure: Exception | None = None  # of the last change

    @property
    def reader(self) -> LogReader:
        assert self._reader is not None, "the log is not started"
        return self._reader

    @property
    def next_offset(self) -> int:
        """Records before it are applied."""
        return 0 if self._reader is None else self._reader.next_offset

    async def start(self) -> None:
        """Find or create the topic, and read it. WrongTopic if it is not fit."""
        patience = self._cluster.patience(self._settings.init_timeout_ms)
        topic_id = await ensure_topic(self._cluster, self._settings.topic, patience)
        reader = self._reader = LogReader(self._cluster, self._place, topic_id, self._state)
        try:
            async with asyncio.timeout(max(patience.left_ms, 1.0) / 1000):
                await reader.start()
        except TimeoutError:
            limit_ms = self._settings.init_timeout_ms
            raise ClientError(
                f"the topic {self._place.topic} was read up to offset {reader.next_offset} within "
                f"{self._settings.init_setting}={limit_ms:.0f}, and not to its end: raise the limit"
            ) from None
        log.info("%s is read up to offset %d", self._place.topic, reader.next_offset)

    async def stop(self) -> None:
        if self._reader is not None:
            await self._reader.stop()

    def why_not_ready(self) -> str | None:
        if self._reader is None:
            return f"the topic {self._place.topic} is not read yet"
        return None if self._reader.failure is None else str(self._reader.failure)

    async def catch_up(self) -> None:
        """Apply everything that is in the log now: what another node wrote is then visible here."""
        patience = self._cluster.patience(self._settings.timeout_ms)
        await self._within(patience, self._catch_up())

    async def _catch_up(self) -> None:
        await self.reader.passed(await self.reader.end_offset() - 1)

    # -- changing ----------------------------------------------------------------------------------

    def give_up_writing(self) -> None:
        """Another node may write now: take over again before the next change."""
        self._is_current = False
        if self._reader is not None:
            self._reader.expect_own_records(False)

    @property
    def is_prepared(self) -> bool:
        """Whether a change need not take over first."""
        return self._is_current and self._now() - self._taken_over_at < RENEW_S

    async def prepare(self) -> None:
        """Take over now, so that changes need not. It may take longer than a change: connections are made,
        and a new cluster creates its topic of transactional ids."""
        async with self._lock:
            self._is_preparing = True
            try:
                patience = self._cluster.patience(max(self._settings.timeout_ms, PREPARE_MS))
                await self._noting_failure(self._within(patience, self._take_over(patience)))
            finally:
                self._is_preparing = False

    async def change(self, decide: Decide[T], may_write: Callable[[], None]) -> T:
        """`may_write` raises if this node is not the primary; it is asked again right before the write."""
        asked_at = self._now()
        await self._acquire()
        try:
            late = self._now() - asked_at > self._settings.timeout_ms / 1000
            if late and self._failure is not None:
                raise self._failure.with_traceback(None)  # each in the queue would wait as long again
            return await self._noting_failure(self._change(decide, may_write))
        finally:
            self._lock.release()

    async def _acquire(self) -> None:
        """Wait for changes before this one, but for a takeover at most as long as a change may take."""
        if not self._is_preparing:
            await self._lock.acquire()
            return
        try:
            async with asyncio.timeout(self._settings.timeout_ms / 1000):
                await self._lock.acquire()
        except TimeoutError:
            raise StoreTimedOut("this node is taking over as the primary") from None

    async def _change(self, decide: Decide[T], may_write: Callable[[], None]) -> T:
        may_write()
        if not self.is_prepared:
            patience = self._cluster.patience(self._settings.timeout_ms)
            await self._within(patience, self._take_over(patience))
        decided = await decide()
        if decided.records:
            may_write()
            patience = self._cluster.patience(self._settings.timeout_ms)
            await self._within(patience, self._write(decided.records, patience))
        return decided.reply

    async def _take_over(self, patience: Patience) -> None:
        self._is_current = False
        await self._writer.take_over(patience)
        await self._write([self._settings.noop], patience)
        self._taken_over_at = self._now()
        self.reader.expect_own_records(True)

    async def _write(self, records: Sequence[KeyValue], patience: Patience) -> None:
        self._is_current = False
        try:
            base_offset, timestamp_ms = await self._writer.write(records, patience)
        except TooLarge:
            self._is_current = True
            raise
        except BaseException:
            self.reader.expect_own_records(False)
            raise
        if not self.reader.apply_own(base_offset, records, timestamp_ms):
            await self.reader.passed(base_offset + len(records) - 1)
        self._is_current = True

    async def _within(self, patience: Patience, work: Awaitable[None]) -> None:
        """Do work in time. Errors of brokers become StoreFailed, lateness StoreTimedOut."""
        limit_ms = self._settings.timeout_ms
        try:
            async with asyncio.timeout(patience.left_ms / 1000):
                await work
        except TimeoutError:
            raise StoreTimedOut(
                f"{self._place.topic} was not written and read within {limit_ms:.0f} ms"
            ) from None
        except Unreachable as error:
            raise StoreFailed(f"no broker can be reached: {error}") from error
        except (KafkaError, ClientError) as error:
            raise StoreFailed(str(error)) from error

    async def _noting_failure(self, work: Awaitable[T]) -> T:
        self._failure = None
        try:
            return await work
        except (StoreFailed, StoreTimedOut) as error:
            self._failure = error
            raise

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


def fence_of(topic: str) -> str:
    """The transactional id whose epoch fences writers of a topic."""
    return f"schema-registry-{topic}"
