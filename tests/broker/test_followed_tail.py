"""A follower's fetches by the shortcut and by the codec: the same responses, the same offsets."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.api.routes import Router
from barnabas.broker.fetch.fetch_stats import FetchStats
from barnabas.broker.handlers import fetch  # noqa: F401
from barnabas.broker.metrics import Metrics
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.partitions import Partitions
from barnabas.broker.partitions.topic_rules import TopicRules
from barnabas.broker.produce.tick import Tick
from barnabas.broker.wire.channel import Channel
from barnabas.broker.wire.follower_shortcut import FollowerShortcut
from barnabas.client.core.frames import decode_response, request_frame
from barnabas.connection.arena import Arena
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.records.batch import next_size
from barnabas.records.record import Record, build_batch
from barnabas.records.validation import AppendRules
from barnabas.replication.fetch_sessions import FetchSessions
from barnabas.settings import TopicSettings
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings

NOW_MS = 1_700_000_000_000
TOPIC_ID = b"t" * 16
LEADER, FOLLOWER, STRANGER = 1, 2, 3
VERSION = 18
FETCH = 1
Topic = FetchRequest.FetchTopic


class Following(Channel):
    """Counts the fetches that took the shortcut, unless it knows none."""

    def __init__(self, listener: Any, *, has_shortcut: bool) -> None:
        super().__init__(listener, "127.0.0.1")
        self.has_shortcut = has_shortcut
        self.shortcuts = 0

    def learn_fetch(self, request: Any, session: Any, follower: int) -> None:
        if self.has_shortcut:
            if self.shortcut is None:
                self.shortcut = CountedShortcut(self)
            super().learn_fetch(request, session, follower)


class CountedShortcut(FollowerShortcut):
    def serve(self, frame: memoryview, version: int, correlation_id: int) -> bool:
        done = super().serve(frame, version, correlation_id)
        self._channel.shortcuts += done  # type: ignore[attr-defined]
        return done


class Broker:
    """A leader of two partitions with one follower, which fetches over one connection."""

    def __init__(self, folder: Path, *, has_shortcut: bool) -> None:
        self.later: list[Callable[[], None]] = []
        self.timers: list[Any] = []
        self.sent: list[bytes] = []
        self.tick = Tick(Arena(), self.later.append, lambda due, done: done({}), lambda: NOW_MS / 1000)
        self.throttle = SimpleNamespace(is_unlimited=True, must_wait=self._must_wait, count=lambda *_: None)
        self.seen = 0
        self.metrics = Metrics()
        partitions = Partitions(lambda: EMPTY_IMAGE)
        loop = SimpleNamespace(
            time=lambda: NOW_MS / 1000, call_soon=self.later.append, call_later=self._timer
        )
        broker = SimpleNamespace(
            clock=SimpleNamespace(now_ms=lambda: NOW_MS),
            fetch_sessions=FetchSessions(10, random.Random(1)),
            partitions=partitions,
            metrics=self.metrics,
            leader_throttle=self.throttle,
            quotas=SimpleNamespace(fetch=None),
            fetch_bytes_max=1 << 20,
            fetch_stats=FetchStats(),
            followers_seen=self._seen,
            image=EMPTY_IMAGE,
            access=None,
            loop=loop,
        )
        self.partitions = [self._partition(folder, index) for index in range(2)]
        for partition in self.partitions:
            partitions.add(partition)
        listener = SimpleNamespace(
            tick=self.tick,
            router=Router("broker", self.metrics),
            broker=broker,
            loop=loop,
            frame_bytes_max=1 << 20,
            name="PLAINTEXT",
            share=None,
            connected=lambda channel: True,
        )
        self.channel = Following(listener, has_shortcut=has_shortcut)
        self.channel.connection_made(self)  # type: ignore[arg-type]
        self.correlation_id = 0

    def _partition(self, folder: Path, index: int) -> Partition:
        log = Log.create(str(folder / f"t-{index}"), LogSettings(), now_ms=NOW_MS)
        partition = Partition("t", index, TOPIC_ID, log, LEADER, self.tick, self.metrics.topic("t"))
        partition.configure(TopicRules(TopicSettings(), LogSettings(), AppendRules()))
        partition.lead(0, (LEADER, FOLLOWER), (LEADER, FOLLOWER))
        return partition

    def _seen(self, follower: int) -> None:
        self.seen += 1

    def _must_wait(self, partition: Partition, follower: int) -> bool:
        return not self.throttle.is_unlimited

    def _timer(self, delay: float, call: Callable[[], None]) -> Any:
        timer = SimpleNamespace(call=call, is_done=False)
        timer.cancel = lambda: setattr(timer, "is_done", True)
        self.timers.append(timer)
        return timer

    # What a transport does

    def write(self, data: bytes) -> None:
        self.sent.append(bytes(data))

    def get_extra_info(self, name: str) -> None:
        return None

    # What happens

    def append(self, size: int, *indexes: int) -> None:
        for index in indexes:
            data = bytearray(build_batch([Record(offset=0, timestamp=NOW_MS, value=b"v" * size)]))
            self.partitions[index].append(memoryview(data), 1, 13, NOW_MS)
        self.tick.close()
        self.settle()

    def ask(self, request: FetchRequest) -> None:
        self.correlation_id += 1
        data = b"".join(request_frame(request, VERSION, self.correlation_id, "follower"))
        self.channel.get_buffer(len(data))[: len(data)] = data
        self.channel.buffer_updated(len(data))
        self.settle()

    def settle(self) -> None:
        while self.later:
            self.later.pop(0)()

    def end_waiting(self) -> None:
        for timer in self.timers:
            if not timer.is_done:
                timer.is_done = True
                timer.call()
        self.timers = []
        self.settle()

    def answers(self) -> list[FetchResponse]:
        data, found = b"".join(self.sent), []
        self.sent = []
        while data:
            (size,) = struct.unpack_from(">i", data)
            found.append(decode_response(data[4 : 4 + size], FetchResponse, FETCH, VERSION))
            data = data[4 + size :]
        return found

    @property
    def state(self) -> list[tuple[int, ...]]:
        return [
            (
                each.high_watermark,
                each.leader_epoch,
                *(follower.log_end_offset for follower in each.state.followers.values()),
            )
            for each in self.partitions
        ]


class Follower:
    """The offsets that it has, and its next fetch."""

    def __init__(self) -> None:
        self.ends = [0, 0]
        self.epochs = [0, 0]
        self.session_id = self.session_epoch = 0
        self.changed = [0, 1]

    def request(self) -> FetchRequest:
        asked = [
            Topic.FetchPartition(
                partition=index,
                current_leader_epoch=self.epochs[index],
                fetch_offset=self.ends[index],
                last_fetched_epoch=self.epochs[index],
                log_start_offset=0,
                partition_max_bytes=1 << 20,
            )
            for index in self.changed
        ]
        request = FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=FOLLOWER, replica_epoch=9),
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self.session_id,
            session_epoch=self.session_epoch,
            topics=[Topic(topic_id=TOPIC_ID, partitions=asked)] if asked else [],
        )
        if self.session_epoch:
            self.session_epoch += 1
        self.changed = []
        return request

    def take(self, answer: FetchResponse) -> None:
        if answer.error_code:
            self.session_id = self.session_epoch = 0
            self.changed = [0, 1]
            return
        if not self.session_epoch:
            self.session_id, self.session_epoch = answer.session_id, 1
        for topic in answer.responses:
            for data in topic.partitions:
                if data.records:
                    self.ends[data.partition_index] += len(list(batches(data.records)))
                if data.records or data.error_code:
                    self.changed.append(data.partition_index)


def batches(records: Any) -> Iterator[memoryview]:
    """They have one record each."""
    rest = memoryview(records)
    while rest:
        size = next_size(rest, 0)
        assert size is not None
        yield rest[:size]
        rest = rest[size:]


class Pair:
    """The same done to a broker that knows the shortcut and to one that does not."""

    def __init__(self, folder: Path) -> None:
        (folder / "short").mkdir()
        (folder / "long").mkdir()
        self.short = Broker(folder / "short", has_shortcut=True)
        self.long = Broker(folder / "long", has_shortcut=False)
        self.follower = Follower()
        self.is_waiting = False
        self.answers: list[FetchResponse] = []

    def both(self, do: Callable[[Broker], None]) -> None:
        do(self.short)
        do(self.long)
        self.compare()

    def ask(self) -> None:
        request = self.follower.request()
        self.is_waiting = True
        self.both(lambda broker: broker.ask(request))

    def compare(self) -> None:
        short, long = self.short.answers(), self.long.answers()
        assert short == long
        assert self.short.state == self.long.state
        self.answers += short
        for answer in short:
            self.is_waiting = False
            self.follower.take(answer)


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


def appending(size: int, *indexes: int) -> Callable[[Broker], None]:
    return lambda broker: broker.append(size, *indexes)


def keep_up(pair: Pair, times: int, index: int = 0) -> None:
    for _ in range(times):
        if not pair.is_waiting:
            pair.ask()
        pair.both(appending(20, index))


def test_a_follower_that_keeps_up_takes_the_shortcut(pair: Pair) -> None:
    keep_up(pair, 20)
    pair.ask()
    assert pair.short.channel.shortcuts >= 16
    assert pair.long.channel.shortcuts == 0
    assert pair.follower.ends == [20, 0]
    assert pair.short.state[0] == (20, 0, 20)
    assert pair.short.seen == pair.long.seen


def test_records_of_another_partition_are_sent_at_once(pair: Pair) -> None:
    keep_up(pair, 10)
    assert not pair.is_waiting
    pair.both(appending(20, 1))  # while no fetch waits
    pair.ask()
    assert not pair.is_waiting
    assert pair.follower.ends == [10, 1]


def test_a_fetch_that_timed_out_gets_the_high_watermark(pair: Pair) -> None:
    keep_up(pair, 10)
    pair.ask()
    pair.both(Broker.end_waiting)
    assert not pair.is_waiting
    assert pair.short.channel.shortcuts >= 8


def told_of_partition_0(pair: Pair) -> list[Any]:
    """In the responses since the last look."""
    answers, pair.answers = pair.answers, []
    topics = [topic for answer in answers for topic in answer.responses]
    return [data for topic in topics for data in topic.partitions if data.partition_index == 0]


def test_a_partition_named_again_gets_the_high_watermark_again(pair: Pair) -> None:
    """It drops the data of a partition that it has named in another fetch since."""
    keep_up(pair, 10)
    told_of_partition_0(pair)
    for _ in range(3):
        pair.follower.changed = [0]
        pair.ask()
        pair.both(Broker.end_waiting)
        assert [data.high_watermark for data in told_of_partition_0(pair)] == [10]
    pair.ask()
    pair.both(Broker.end_waiting)
    assert told_of_partition_0(pair) == []  # a fetch that does not name it confirms the responses before
    assert pair.short.channel.shortcuts >= 10


def test_a_partition_named_again_gets_its_diverging_epoch_again(pair: Pair) -> None:
    keep_up(pair, 3)
    pair.follower.ends[0] = 3

    def lead_again(broker: Broker) -> None:
        broker.partitions[0].lead(2, (LEADER, FOLLOWER), (LEADER, FOLLOWER))
        broker.settle()

    pair.both(lead_again)
    told_of_partition_0(pair)
    for _ in range(2):
        request = pair.follower.request()
        wanted = Topic.FetchPartition(
            partition=0, current_leader_epoch=2, fetch_offset=3, last_fetched_epoch=1, log_start_offset=0,
            partition_max_bytes=1 << 20,
        )  # fmt: skip
        request.topics = [Topic(topic_id=TOPIC_ID, partitions=[wanted])]
        pair.both(lambda broker, request=request: broker.ask(request))  # type: ignore[misc]
        assert [data.diverging_epoch.epoch for data in told_of_partition_0(pair)] == [0]


def test_another_leader_epoch_ends_the_shortcut(pair: Pair) -> None:
    keep_up(pair, 10)

    def lead_again(broker: Broker) -> None:
        broker.partitions[0].lead(1, (LEADER, FOLLOWER), (LEADER, FOLLOWER))
        broker.settle()

    pair.both(lead_again)
    taken = pair.short.channel.shortcuts
    pair.ask()  # of the epoch before
    assert pair.short.channel.shortcuts == taken
    assert pair.short.state[0][0] == 9  # what a fetch of an older epoch says counts for nothing


def test_a_fetch_of_another_epoch_of_its_session_is_refused(pair: Pair) -> None:
    keep_up(pair, 10)
    pair.follower.session_epoch += 1
    pair.ask()
    assert pair.follower.session_id == 0
    assert pair.short.state[0][0] == 9


def test_a_partition_that_is_named_and_forgotten_at_once_has_no_shortcut(pair: Pair) -> None:
    keep_up(pair, 2)
    for _ in range(3):
        pair.follower.changed = [0]
        request = pair.follower.request()
        gone = FetchRequest.ForgottenTopic(topic_id=TOPIC_ID, partitions=[0])
        request.forgotten_topics_data = [gone]
        pair.both(lambda broker, request=request: broker.ask(request))  # type: ignore[misc]
        pair.both(Broker.end_waiting)
    assert pair.short.channel.shortcuts == 0
    assert pair.follower.session_id  # every request was answered, none with an error


@pytest.mark.parametrize("seed", range(30))
def test_both_produce_paths_agree_in_random_histories(pair: Pair, seed: int) -> None:
    rng = random.Random(seed)
    epochs = [0, 0]

    followers, changes = [FOLLOWER, FOLLOWER], count()

    def lead_again(broker: Broker) -> None:
        isr = (LEADER, FOLLOWER) if followers[index] == FOLLOWER else (LEADER,)
        broker.partitions[index].lead(epochs[index], isr, (LEADER, followers[index]), next(changes))
        broker.settle()

    def throttle(broker: Broker) -> None:
        broker.throttle.is_unlimited = is_unlimited

    for _ in range(120):
        index = rng.choice((0, 0, 0, 1))
        what = rng.random()
        if not pair.is_waiting and what < 0.6:
            pair.ask()
        elif what < 0.85:
            size = rng.choice((20, 30, 20_000))
            indexes = (0, 1) if rng.random() < 0.2 else (index,)
            pair.both(appending(size, *indexes))
        elif what < 0.90:
            pair.both(Broker.end_waiting)
        elif what < 0.95:
            if rng.random() < 0.5:
                epochs[index] += 1
            followers[index] = FOLLOWER if followers[index] != FOLLOWER or rng.random() < 0.5 else STRANGER
            pair.both(lead_again)
        elif what < 0.97:
            is_unlimited = not pair.short.throttle.is_unlimited
            pair.both(throttle)
        else:  # it hears of the epochs
            pair.follower.epochs = list(epochs)
            pair.follower.changed = sorted({0, 1, *pair.follower.changed})
    assert pair.short.seen == pair.long.seen
