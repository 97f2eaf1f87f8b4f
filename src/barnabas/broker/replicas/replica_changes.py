"""Applies metadata changes to partitions, in the order of the log and in pieces.

In: steps that update and remove partitions. Out: the steps run one after the other (see `runtime.pieces`).
Threads create logs and rename the folders of removed ones, many at a time, since both may wait for the disk.
Later steps wait meanwhile: a new partition can use a name only when the old folder is renamed.
Does not know: what an update does (see `replicas`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from barnabas.metadata.partitions import PartitionRegistration, is_reserved_directory
from barnabas.protocol import KafkaError
from barnabas.runtime import garbage
from barnabas.runtime.pieces import WaitingSteps, Work
from barnabas.storage.dirs.new_logs import NewLog
from barnabas.storage.files.names import TopicPartition
from barnabas.storage.logs.log import Log

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.topic_rules import TopicRules
    from barnabas.storage.dirs.log_dirs import LogDirs
    from barnabas.storage.logs.context import LogContext

log = logging.getLogger("barnabas.replicas")
LOGS_A_THREAD = 32  # created or renamed by one call to a thread
ADDED_MANY = 1_000


class Change(NamedTuple):
    """A partition's registration in the metadata."""

    topic: str
    topic_id: bytes
    number: int
    registration: PartitionRegistration


class ReplicaChanges:
    def __init__(
        self,
        broker: Broker,
        update: Callable[[str, bytes, int, PartitionRegistration], None],
        remove: Callable[[str, int], None],
        rules: Callable[[str], TopicRules],
    ) -> None:
        self._broker = broker
        self._update = update
        self._remove = remove
        self._rules = rules
        self.removed: list[Log] = []  # whose folders are not renamed yet
        self._due: deque[WaitingSteps[None]] = deque()  # not begun yet
        self._work: Work[None] | None = None  # applies them, one after the other
        self._is_applying = False
        self._added = 0  # partitions since the last `freeze_startup_objects`

    def apply(self, steps: WaitingSteps[None]) -> None:
        """Run steps after those that are running; begin at once if none are."""
        self._due.append(steps)
        if not self._is_applying:
            self._is_applying = True
            self._work = self._broker.pieces.begin(self._in_order())

    def _in_order(self) -> WaitingSteps[None]:
        try:
            while self._due:
                try:
                    yield from self._due.popleft()
                except Exception:  # later steps must run
                    self._broker.unexpected.note("applying a change of the metadata")
        finally:
            self._is_applying = False

    async def settled(self) -> None:
        while self._work is not None and not self._work.is_done:
            await self._work.wait()

    # -- steps -----------------------------------------------------------------------------------

    def remove_all(self, topic: str, numbers: Iterable[int]) -> WaitingSteps[None]:
        for number in numbers:
            try:
                self._remove(topic, number)
            except Exception:  # the others must be removed
                self._broker.unexpected.note("removing", f"{topic}-{number}")
            yield from self.rename_removed(LOGS_A_THREAD)
            yield None

    def rename_removed(self, at_least: int = 1) -> WaitingSteps[None]:
        """Rename the folders of removed partitions in a thread, if there are `at_least` as many."""
        broker = self._broker
        if len(self.removed) >= at_least:
            removed, self.removed = self.removed, []
            renamed = broker.threads.folders.run(rename_all, removed, broker.log_dirs, broker.clock.now_ms())
            yield renamed
            renamed.result()

    def update_all(self, changes: Iterable[Change]) -> WaitingSteps[None]:
        """Update partitions with logs at once, the others when a thread has created their logs."""
        new: list[Change] = []
        for change in changes:
            if change.topic_id not in self._broker.image.topics.by_id:
                continue  # the topic was deleted meanwhile
            if self._needs_log(change):
                new.append(change)
                if len(new) >= LOGS_A_THREAD:
                    yield from self._add_all(new)
                    new = []
            else:
                self._update(*change)
                yield from self.rename_removed(LOGS_A_THREAD)
            yield None
        yield from self._add_all(new)
        yield from self.rename_removed()

    def _needs_log(self, change: Change) -> bool:
        broker, where = self._broker, TopicPartition(change.topic, change.number)
        return (
            broker.node_id in change.registration.replicas
            and where not in broker.log_dirs.logs
            and not broker.partitions.is_offline(*where)
        )

    def _add_all(self, changes: list[Change]) -> WaitingSteps[None]:
        broker, log_dirs = self._broker, self._broker.log_dirs
        planned = []
        for change in changes:
            with suppress(KafkaError):  # reported when the partition is added
                planned.append(self._plan(change))
        if planned:
            now_ms = broker.clock.now_ms()
            made = broker.threads.folders.run(make_all, planned, log_dirs.context, now_ms)
            yield made
            for each in planned:
                log_dirs.add_created(each)
            made.result()
        for change in changes:
            self._update(*change)
            yield None
        self._added += len(changes)
        if self._added >= ADDED_MANY:
            self._added = 0
            garbage.freeze_startup_objects()  # keeps the garbage collector from scanning them

    def _plan(self, change: Change) -> NewLog:
        node_id, registration = self._broker.node_id, change.registration
        directory = registration.directory_of(node_id)
        return self._broker.log_dirs.plan(
            TopicPartition(change.topic, change.number),
            self._rules(change.topic).log,
            topic_id=change.topic_id,
            leader_epoch=registration.leader_epoch if registration.leader == node_id else -1,
            directory_id=None if is_reserved_directory(directory) else directory,
        )


def make_all(planned: Iterable[NewLog], context: LogContext, now_ms: int) -> None:
    """Create logs, in a thread. A failure is repeated and reported when the partition is added."""
    for each in planned:
        with suppress(Exception):
            each.make(context, now_ms)


def rename_all(logs: Iterable[Log], log_dirs: LogDirs, now_ms: int) -> None:
    """Rename the folders of removed logs, in a thread."""
    for each in logs:
        try:
            log_dirs.delete_later(each, now_ms)
        except KafkaError as error:
            log.error("the folder of %s could not be deleted: %s", each.topic_partition, error.message)
        if each.producers_loaded:
            each.producers.release()
