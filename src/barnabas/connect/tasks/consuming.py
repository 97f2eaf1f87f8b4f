"""The consumer of a sink task: a member of the group on one event loop that all tasks of the process share.

In: properties of a consumer, topics by name or expression. Out: records, commits; before partitions go to
another member the task's thread flushes and commits. The loop sends heartbeats while the task is busy in its
thread. Does not know: converters, what becomes of records.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from collections.abc import Coroutine, Iterable, Mapping
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from barnabas.client.admin.group_offsets import Committed, CommittedOffset
from barnabas.client.admin.offsets import FoundOffset, OffsetAdmin, OffsetSpec
from barnabas.client.cluster import Cluster
from barnabas.client.consumers.fetcher import FetchSettings
from barnabas.client.consumers.group_consumer import GroupConsumerSettings, GroupReader, OffsetReset
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.topology import TopicPartition
from barnabas.client.core.traffic import Traffic
from barnabas.client.groups.membership import GroupSettings
from barnabas.connect.plugins import ConnectError
from barnabas.connect.tasks.client_properties import connection_settings
from barnabas.connect.tasks.errors import Stopped
from barnabas.connect.tasks.polled import Fetched, HeldBytes, Polled, read
from barnabas.spark.reading.unpacking import Room

T = TypeVar("T")
RELEASE_S = 60.0  # other members wait for the rebalance meanwhile
CALL_S = 120.0
POLL_SLACK_S = 1.0
PARTITION_BYTES_MAX = 4 * 1024 * 1024  # columns of a megabyte cost a third more for each record
COMMIT_S = 5.0  # unless offset.flush.timeout.ms says otherwise
LAST_COMMIT_S = 2.0  # at most, of a task that must let go

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def client_loop() -> asyncio.AbstractEventLoop:
    """The event loop of this process' consumers, in a thread of its own."""
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="connect-consumers", daemon=True).start()
        return _loop


def on_loop(coroutine: Coroutine[Any, Any, T], timeout_s: float = CALL_S) -> T:
    return asyncio.run_coroutine_threadsafe(coroutine, client_loop()).result(timeout_s)


class ReleasingConsumer(GroupReader[Fetched]):
    """A member that gives partitions back only when the task has flushed, or after `RELEASE_S`."""

    releasing: asyncio.Event | None = None
    fetches = True  # False: executors fetch, this member only holds the partitions
    is_closing = False  # the task has flushed and ends
    losses = 0  # how often the partitions were lost without being given back

    def _set_assignment(self, partitions: Iterable[TopicPartition]) -> None:
        super()._set_assignment(partitions)
        if not self.fetches:
            self.pause(self.assignment)

    async def revoked(self) -> None:
        if self.assignment and not self.is_closing:
            self.releasing = asyncio.Event()
            self._fetcher.interrupt()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RELEASE_S):
                    await self.releasing.wait()
            self.releasing = None
        await super().revoked()

    def lost(self) -> None:
        self.losses += 1
        super().lost()


class SinkConsumer:
    """The same for a thread: every call waits for the loop."""

    def __init__(
        self,
        properties: Mapping[str, str],
        group: str,
        topics: str,
        pattern: str,
        *,
        fetches: bool = True,
        cancelled: threading.Event | None = None,
    ) -> None:
        self._cancelled = cancelled or threading.Event()
        self._properties = properties
        self._fetches = fetches
        self.group = properties.get("group.id", group)
        self._topics = [each.strip() for each in topics.split(",") if each.strip()]
        self._pattern = pattern
        self._consumer: ReleasingConsumer | None = None
        self._ending: ReleasingConsumer | None = None  # what is still to be closed
        self._cluster: Cluster | None = None
        self._polling: Future[list[Fetched]] | None = None
        self._ids: dict[str, bytes] = {}  # of the topics that are assigned
        self._room = Room()
        self._checks_crc = True
        self._is_woken = False

    @property
    def records_max(self) -> int | None:
        """`max.poll.records`, where it is given. Kafka's default of 500 would make pieces too small."""
        text = self._properties.get("max.poll.records")
        if text is not None and not (text.strip().isdecimal() and int(text) > 0):
            raise ConnectError(f"consumer setting max.poll.records is {text!r}: a number from 1 on is needed")
        return None if text is None else int(text)

    @property
    def traffic(self) -> Traffic:
        cluster = self._cluster
        return Traffic() if cluster is None else cluster.traffic

    def start(self) -> None:
        on_loop(self._start())

    async def _start(self) -> None:
        text = self._properties
        settings = connection_settings(text)
        self._cluster = Cluster(
            parse_bootstrap(settings.bootstrap_servers),
            client_id=settings.client_id,
            request_timeout_ms=settings.request_timeout_ms,
            security=settings.client_security(),
            waits_for_bootstrap=True,
        )
        try:
            reset = OffsetReset(text.get("auto.offset.reset", "earliest"))
        except ValueError:
            raise ConnectError("consumer setting auto.offset.reset may be earliest, latest or none") from None
        self._consumer = ReleasingConsumer(
            self._cluster,
            GroupConsumerSettings(
                GroupSettings(
                    self.group,
                    instance_id=text.get("group.instance.id"),
                    session_timeout_ms=int(text.get("session.timeout.ms", "45000")),
                    rebalance_timeout_ms=int(text.get("max.poll.interval.ms", "300000")),
                    heartbeat_interval_ms=int(text.get("heartbeat.interval.ms", "3000")),
                ),
                reset=reset,
                metadata_max_age_ms=int(text.get("metadata.max.age.ms", "5000")),
                fetch=FetchSettings(
                    wait_ms_max=int(text.get("fetch.max.wait.ms", "500")),
                    partition_bytes_max=int(text.get("max.partition.fetch.bytes", str(PARTITION_BYTES_MAX))),
                    read_committed=settings.is_read_committed,
                ),
            ),
            HeldBytes,
        )
        self._ending = self._consumer
        self._checks_crc = settings.check_crcs
        self._consumer.fetches = self._fetches
        if self._pattern:
            expression = re.compile(self._pattern)
            await self._consumer.subscribe_matching(lambda name: expression.fullmatch(name) is not None)
        else:
            await self._consumer.subscribe(self._topics)

    @property
    def _member(self) -> ReleasingConsumer:
        assert self._consumer is not None, "the consumer was not started"
        return self._consumer

    @property
    def assignment(self) -> tuple[TopicPartition, ...]:
        return self._member.assignment

    @property
    def losses(self) -> int:
        """How often the member lost its partitions; others may have had them since."""
        return self._member.losses

    @property
    def must_release(self) -> bool:
        """A rebalance waits until the task has flushed and committed."""
        return self._member.releasing is not None

    def release(self) -> None:
        async def set_it() -> None:
            if self._member.releasing is not None:
                self._member.releasing.set()

        on_loop(set_it())

    def poll(self, timeout_ms: float) -> list[Polled]:
        """Records by partition, or none in time. A batch that cannot be read is fetched again by the next
        poll; KafkaError if there are no records before it. TimeoutError when even positions cannot be
        found, as for a topic that was deleted: the caller polls again, and the next rebalance takes the
        partitions away."""
        waiting = asyncio.wait_for(self._member.poll(timeout_ms), timeout_ms / 1000 + POLL_SLACK_S)
        self._polling = asyncio.run_coroutine_threadsafe(waiting, client_loop())
        if self._is_woken:  # between two polls
            self._polling.cancel()
        try:
            fetched = self._polling.result(CALL_S)
        except CancelledError:
            return []
        finally:
            self._polling = None
        return self._read(fetched)

    def _read(self, fetched: list[Fetched]) -> list[Polled]:
        found: list[Polled] = []
        for each in fetched:
            try:
                found.append(read(each, self._room, checks_crc=self._checks_crc))
            except BaseException:
                self.seek({one.where: one.first for one in fetched})
                raise
        damaged = [each for each in found if each.damage is not None]
        if damaged:
            self.seek({each.where: each.next_offset for each in damaged})
            if damaged[0].damage is not None and not any(len(each.raw) for each in found):
                raise damaged[0].damage
        return found

    def wake(self) -> None:
        """From another thread: the task must stop, so the poll that runs ends now, and no other waits."""
        self._is_woken = True
        polling = self._polling
        if polling is not None:
            polling.cancel()

    def leave(self) -> None:
        """From another thread: give the partitions to others although the task does not end."""
        self.wake()
        asyncio.run_coroutine_threadsafe(self._end(), client_loop())

    def position(self, partition: TopicPartition) -> int | None:
        return self._member.position(partition)

    def seek(self, offsets: Mapping[TopicPartition, int]) -> None:
        if not offsets:
            return

        async def move() -> None:
            for partition, offset in offsets.items():
                if partition in self._member.assignment:
                    self._member.seek(partition, offset)

        on_loop(move())

    def set_paused(self, partitions: list[TopicPartition], *, is_paused: bool) -> None:
        async def change() -> None:
            (self._member.pause if is_paused else self._member.resume)(partitions)

        on_loop(change())

    def commit(
        self, offsets: Mapping[TopicPartition, int], timeout_s: float = COMMIT_S, metadata: str = ""
    ) -> None:
        """TimeoutError when the coordinator does not take them in time, as for a topic that was deleted.
        Stopped when the worker no longer waits for the task."""
        if self._cancelled.is_set():
            raise Stopped
        wanted = {each: CommittedOffset(offset, metadata=metadata) for each, offset in offsets.items()}
        on_loop(asyncio.wait_for(self._member.commit(wanted), timeout_s))

    def committed(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        found = on_loop(self._member.committed(partitions))
        return {each: offset.offset for each, offset in found.items()}

    def topic_ids(self) -> dict[str, bytes]:
        """The ids of the topics that are assigned, as far as brokers told them."""
        assert self._cluster is not None
        known = self._cluster.topology.topics
        return {each.topic: known[each.topic].topic_id for each in self.assignment if each.topic in known}

    def made_anew(self) -> list[TopicPartition]:
        """Assigned partitions whose topic was deleted and made again since the last call."""
        now = self.topic_ids()
        found = [
            each
            for each in self.assignment
            if each.topic in now and self._ids.get(each.topic, now[each.topic]) != now[each.topic]
        ]
        self._ids = {**{name: id_ for name, id_ in self._ids.items() if name not in now}, **now}
        assigned = {each.topic for each in self.assignment}
        self._ids = {name: id_ for name, id_ in self._ids.items() if name in assigned and any(id_)}
        return found

    def committed_with_metadata(self, partitions: list[TopicPartition]) -> Committed:
        return on_loop(self._member.committed(partitions))

    def ends(
        self, partitions: list[TopicPartition], *, read_committed: bool = False
    ) -> dict[TopicPartition, int]:
        """The end of each partition, or of what is committed there; those that cannot be asked now are left
        out."""
        assert self._cluster is not None
        wanted = dict.fromkeys(partitions, OffsetSpec.LATEST)
        found = on_loop(OffsetAdmin(self._cluster).list_offsets(wanted, read_committed=read_committed))
        return {each: at.offset for each, at in found.items() if isinstance(at, FoundOffset)}

    def close(self) -> None:
        on_loop(self._end())

    async def _end(self) -> None:
        consumer, self._ending = self._ending, None
        if consumer is not None:
            consumer.is_closing = True
            if consumer.releasing is not None:
                consumer.releasing.set()
            await consumer.close()
        if self._cluster is not None:
            await self._cluster.close()
