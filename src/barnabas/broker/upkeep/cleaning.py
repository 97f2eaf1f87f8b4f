"""The log cleaners of a broker: as many as `log.cleaner.threads`, each looking for dirty logs.

In: settings, which may change while they run; topics that are deleted. Out: running `LogCleaner`s, which
pause for `log.cleaner.backoff.ms` when there was nothing to do and end before the logs are closed. They are
created, with the imports that they need, when the first log might need cleaning.
Does not know: how a log is chosen and cleaned.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.broker.upkeep.cleaning_state import CleaningState
from barnabas.runtime.pieces import Steps
from barnabas.runtime.shortage import is_shortage

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.upkeep.log_cleaner import LogCleaner
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage

log = logging.getLogger("barnabas.cleaner")

FIRST_LOOK_MS_MAX = 1_000
PARTITIONS_A_STEP = 64
PAUSE_MS_MIN = 1  # so that a backoff of 0 does not block the loop
WATCHED = ("log.cleaner.backoff.ms", "log.cleaner.threads")  # other settings are read at each use


class Cleaning:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._cleaners: dict[int, LogCleaner] = {}
        self._changed = asyncio.Event()
        self._stopping = False
        self.state = CleaningState(broker.log_dirs)

    # -- running -----------------------------------------------------------------------------------

    def start(self) -> None:
        if self._broker.settings["log.cleaner.enable"]:
            self._broker.dynamic.on_change(WATCHED, lambda before, after: self._changed.set())
            self._start_tasks()

    def _start_tasks(self) -> None:
        """Start missing cleaners. Surplus cleaners end by themselves."""
        for index in range(self._broker.settings["log.cleaner.threads"]):
            if index not in self._tasks:
                self._tasks[index] = self._broker.loop.create_task(self._run(index))

    @property
    def dead_count(self) -> int:
        """The number of cleaners that should run and do not."""
        settings = self._broker.settings
        wanted: int = settings["log.cleaner.threads"] if settings["log.cleaner.enable"] else 0
        return max(wanted - len(self._tasks), 0)

    async def stop(self) -> None:
        """End all passes, so that logs can be closed."""
        self._stopping = True
        self._changed.set()
        for cleaner in list(self._cleaners.values()):
            await cleaner.stop()
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()))

    async def _run(self, index: int) -> None:
        try:
            await self._pause(min(self._backoff_ms, FIRST_LOOK_MS_MAX))
            while not self._stopping and index < self._broker.settings["log.cleaner.threads"]:
                if index == 0:
                    self._start_tasks()
                self.state.begin_look(self._broker.clock.now_ms())
                if not await self._clean_one(index):
                    await self._pause(self._backoff_ms)
        except Exception:
            log.exception("cleaner %d died", index)
            raise
        finally:
            del self._tasks[index]
            if index in self._cleaners:
                await self._cleaners.pop(index).stop()

    async def _clean_one(self, index: int) -> bool:
        """Clean one log, if any is dirty. Out: whether a log was cleaned."""
        cleaner = self._cleaners.get(index) or await self._make_cleaner(index)
        if cleaner is None:
            return False
        try:
            return await cleaner.clean_dirtiest()
        except Exception as error:
            if not is_shortage(error):
                raise
            log.warning("cleaner %d waits because of a shortage: %s", index, error)
            return False

    async def _make_cleaner(self, index: int) -> LogCleaner | None:
        """Create a cleaner if any log might need cleaning."""
        if not await self._broker.pieces.run(self._has_work()) or self._stopping:
            return None
        from barnabas.broker.upkeep.log_cleaner import LogCleaner

        cleaner = self._cleaners[index] = LogCleaner(self._broker, self.state)
        return cleaner

    def _has_work(self) -> Steps[bool]:
        for count, partition in enumerate(list(self._broker.partitions)):
            if partition.log.settings.compact and len(partition.log.segments) > 1:
                return True
            if not count % PARTITIONS_A_STEP:
                yield
        return False

    @property
    def _backoff_ms(self) -> int:
        backoff_ms: int = self._broker.settings["log.cleaner.backoff.ms"]
        return backoff_ms

    async def _pause(self, duration_ms: int) -> None:
        """Wait until the time is over, or the settings change."""
        if self._stopping:
            return
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), max(duration_ms, PAUSE_MS_MIN) / 1000)
        except TimeoutError:
            pass

    # -- metadata --------------------------------------------------------------------

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Forget the checkpoints of deleted topics, so that new topics of the same name do not inherit
        them."""
        if delta.topics is None:
            return
        deleted = {topic.name for topic in delta.topics.deleted.values()}
        if not deleted:
            return
        if self.state.forget(deleted):
            self._broker.threads.run(self.state.store)
        for cleaner in self._cleaners.values():
            if cleaner.current is not None and cleaner.current.topic in deleted:
                self._broker.loop.create_task(cleaner.abandon())
