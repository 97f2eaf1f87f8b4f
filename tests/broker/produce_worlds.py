"""Brokers in memory that take in produce requests: with the direct way, or with the ordinary one alone."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from barnabas.broker.api.routes import Route, Router
from barnabas.broker.handlers import produce  # noqa: F401  (it declares itself)
from barnabas.broker.metrics import Metrics
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.partitions import Partitions
from barnabas.broker.partitions.topic_rules import TopicRules
from barnabas.broker.produce.purgatory import Purgatory
from barnabas.broker.produce.tick import Tick
from barnabas.broker.quotas.throttling import Guard
from barnabas.broker.wire.channel import Channel
from barnabas.connection.arena import Arena
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.protocol import ApiKey
from barnabas.records.validation import AppendRules
from barnabas.settings import TopicSettings
from barnabas.simulation.world.disk import WRITE, Failure, SimulatedDisk
from barnabas.storage.logs.context import LogContext
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings
from barnabas.transactions.outcome import TransactionEnd

NOW_MS = 1_700_000_000_000
LEADER, FOLLOWER = 1, 2
TOPICS = {"events": 4, "stamped": 2, "__internal": 1}
STAMPED = "stamped"  # whose batches get the time of the broker
FOLLOWED = 3  # the partition that has a follower
VERIFICATION = {"transaction.partition.verification.enable": True}
ALL_VERSIONS = range(3, 14)


class Direct(Router):
    """Counts the requests that became messages after all."""

    def __init__(self, metrics: Metrics) -> None:
        super().__init__("broker", metrics)
        self.decoded = 0

    def find(self, key: int, version: int) -> Route | None:
        found = super().find(key, version)
        if found is not None:
            decode = found.decode

            def counting(buffer: Any, position: int) -> tuple[Any, int]:
                self.decoded += 1
                return decode(buffer, position)

            found.decode = counting
        return found


class Ordinary(Direct):
    """Every request becomes a message."""

    def find(self, key: int, version: int) -> Route | None:
        found = super().find(key, version)
        if found is not None:
            found.layout = None
        return found


class Transport:
    def __init__(self) -> None:
        self.sent = b""
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.sent += data

    def close(self) -> None:
        self.is_closed = True

    def get_extra_info(self, name: str) -> None:
        return None

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...


class World:
    """A broker that leads some partitions, and one connection to it."""

    def __init__(self, *, is_direct: bool) -> None:
        self.later: list[Callable[[], None]] = []
        self.timers: list[tuple[float, Any]] = []
        self.now_s = 0.0
        self.tick = Tick(Arena(), self.later.append, lambda due, done: done({}), lambda: self.now_s)
        self.metrics = Metrics()
        self.partitions = Partitions(lambda: EMPTY_IMAGE)
        self.disk = SimulatedDisk()
        self.logs = LogContext(self.disk)
        self.router = (Direct if is_direct else Ordinary)(self.metrics)
        self.guarded = 0  # requests that quotas have seen
        self.lives = 0  # of topics
        loop = SimpleNamespace(
            time=lambda: self.now_s, call_soon=self.later.append, call_later=self._call_later
        )
        self.broker = SimpleNamespace(
            access=None,
            clock=SimpleNamespace(now_ms=lambda: NOW_MS + int(self.now_s * 1000)),
            partitions=self.partitions,
            metrics=self.metrics,
            image=EMPTY_IMAGE,
            loop=loop,
            purgatory=Purgatory(loop),  # type: ignore[arg-type]
            settings=VERIFICATION,
            transactions=SimpleNamespace(verifies_at_once=lambda name: True, verify=lambda *_, **options: {}),
        )
        self.listener: Any = SimpleNamespace(
            tick=self.tick,
            router=self.router,
            broker=self.broker,
            loop=loop,
            share=None,
            frame_bytes_max=1 << 20,
            name="PLAINTEXT",
            connected=lambda channel: True,
        )
        for topic in TOPICS:
            self.create(topic)
        self.connect()

    def connect(self) -> None:
        self.transport = Transport()
        self.channel = Channel(self.listener, "127.0.0.1")
        self.channel.connection_made(self.transport)  # type: ignore[arg-type]

    def _call_later(self, delay: float, call: Callable[[], None]) -> Any:
        timer = SimpleNamespace(call=call, is_done=False)
        timer.cancel = lambda: setattr(timer, "is_done", True)
        self.timers.append((self.now_s + delay, timer))
        return timer

    # What happens to it

    def create(self, topic: str) -> None:
        self.lives += 1
        for index in range(TOPICS[topic]):
            self._add(topic, index, bytes([self.lives]) * 16)

    def _add(self, topic: str, index: int, topic_id: bytes) -> None:
        folder = f"/{topic}.{self.lives}-{index}"
        log = Log.create(folder, LogSettings(), now_ms=NOW_MS, context=self.logs)
        partition = Partition(topic, index, topic_id, log, LEADER, self.tick, self.metrics.topic(topic))
        rules = AppendRules(append_time=topic == STAMPED)
        partition.configure(TopicRules(TopicSettings(), LogSettings(), rules))
        partition.is_internal = topic.startswith("__")
        replicas = (LEADER, FOLLOWER) if index == FOLLOWED else (LEADER,)
        partition.min_insync_replicas = partition.state.min_isr = len(replicas)
        partition.lead(0, replicas, replicas)
        self.partitions.add(partition)

    def delete(self, topic: str) -> None:
        for partition in [each for each in self.partitions if each.topic == topic]:
            if partition.is_dirty:
                self.tick.close()
            partition.become_follower(partition.leader_epoch)
            self.partitions.remove(partition)

    def partition(self, topic: str, index: int) -> Partition | None:
        return self.partitions.get(topic, index)

    def fail_writes(self, prefix: str) -> None:
        self.disk.failures = [Failure(frozenset({WRITE}), prefix=prefix)]

    def follow(self, partition: Partition) -> None:
        """The follower has everything."""
        partition.follower_reached(FOLLOWER, partition.log.written_offset)

    def end_transaction(self, partition: Partition, producer_id: int, epoch: int) -> None:
        partition.append_marker(TransactionEnd(producer_id, epoch, 0, True, 1), NOW_MS)
        self.tick.close()

    def guard(self, *, is_on: bool) -> None:
        def produced(*_: object) -> int:
            self.guarded += 1
            return 0

        quotas: Any = SimpleNamespace(produced=produced, worked=lambda *_: 0)
        self.router.guard(Guard(quotas) if is_on else None)

    def wait(self, seconds: float) -> None:
        self.now_s += seconds
        due = [timer for at, timer in self.timers if at <= self.now_s and not timer.is_done]
        self.timers = [(at, timer) for at, timer in self.timers if at > self.now_s]
        for timer in due:
            timer.call()

    def send(self, data: bytes) -> None:
        """Bytes arrive, as many as one read takes."""
        if self.transport.is_closed:
            self.connect()
        self.channel.get_buffer(len(data))[: len(data)] = data
        self.channel.buffer_updated(len(data))

    def settle(self) -> None:
        while self.later:
            self.later.pop(0)()

    # What is seen of it

    def take_sent(self) -> tuple[bytes, bool]:
        sent, self.transport.sent = self.transport.sent, b""
        return sent, self.transport.is_closed

    def content(self) -> dict[str, bytes]:
        """The logs."""
        found = {}
        for partition in self.partitions:
            log = partition.log
            found[f"{partition} {partition.topic_id[0]}"] = log.read(log.log_start_offset, 1 << 30).read()
        return found

    def counts(self) -> dict[str, object]:
        """Metrics and offsets."""
        found: dict[str, object] = {"guarded": self.guarded, "in purgatory": len(self.broker.purgatory)}
        for version in ALL_VERSIONS:
            found[f"version {version}"] = self.metrics.api(ApiKey.PRODUCE, version).count
        for topic in TOPICS:
            metrics = self.metrics.topic(topic)
            found[topic] = (
                metrics.bytes_in,
                metrics.messages_in,
                metrics.produce_requests,
                metrics.failed_produce_requests,
            )
        for partition in self.partitions:
            found[str(partition)] = (partition.log.end_offset, partition.high_watermark, partition.is_leader)
        return found
