"""kill -9 and restarts while groups work: they go on, and no committed offset is lost."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import ApiKey
from barnabas.testing import Broker
from barnabas.testing.waiting import wait_until
from clients.crowd import Crowd
from interop.frames import Closed, Wire
from interop.talk import Talk, decode, encode, request_header_version

from .progress import PROGRESS_TIMEOUT_S, kill_and_start, wait_for

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "2",
    "offsets.topic.segment.bytes": "1048576",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "500",
}
PARTITIONS = 3
RETRY_S = 0.02
PASSING = ("COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR", "UNKNOWN_TOPIC_OR_PARTITION")
COMMIT, FETCH = ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize(
    "way", [pytest.param("range", marks=pytest.mark.long), "cooperative-sticky", "consumer"]
)
def test_a_group_works_on_while_its_broker_is_killed(
    broker: Broker, kills: int, way: str, tmp_path: Path
) -> None:
    broker.create_topic("work", PARTITIONS)
    with Crowd(broker.bootstrap, "work", PARTITIONS, way, tmp_path) as crowd:
        crowd.add()
        crowd.add()
        crowd.progress()
        for _ in range(max(1, kills // 2)):
            kill_and_start(broker)
            crowd.progress()
        broker.stop()
        broker.start()
        crowd.progress()
        crowd.finish()


class Committer(threading.Thread):
    """Commits growing offsets for groups of its own, several requests on their way at a time.

    `acknowledged` holds the last offset that the broker said it has, `sent` the last one sent.
    """

    def __init__(self, port: int, number: int, topic: str) -> None:
        super().__init__(daemon=True)
        self.port, self.topic = port, topic
        self.groups = [f"committer-{number}-{n}" for n in range(5)]
        self.acknowledged = dict.fromkeys(self.groups, -1)
        self.sent = dict.fromkeys(self.groups, -1)
        self.errors: list[str] = []
        self.count = 0
        self._stop_asked = threading.Event()

    def run(self) -> None:
        offset = 0
        while not self._stop_asked.is_set():
            try:
                with Wire(self.port, timeout=10) as wire:
                    while not self._stop_asked.is_set():
                        offset += 1
                        self._round(wire, offset)
            except (OSError, Closed):
                self._stop_asked.wait(RETRY_S)

    def progress(self) -> int:
        assert not self.errors, self.errors[:3]
        return self.count

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()

    def _round(self, wire: Wire, offset: int) -> None:
        waiting = []
        for group in self.groups:
            partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": f"{offset}"}
            body = {"group_id": group, "topics": [{"name": self.topic, "partitions": [partition]}]}
            self.sent[group] = offset
            sent = wire.send(COMMIT, 9, request_header_version(COMMIT, 9), encode(COMMIT, 9, body))
            waiting.append((sent, group))
        for sent, group in waiting:
            answer = decode(COMMIT, 9, wire.receive(), sent)
            code = answer["topics"][0]["partitions"][0]["error_code"]
            if code == "NONE":
                self.acknowledged[group] = offset
                self.count += 1
            elif code not in PASSING:
                self.errors.append(code)


def committed(port: int, group: str, topic: str) -> tuple[int, str]:
    wanted = [{"name": topic, "partition_indexes": [0]}]
    found: dict[str, Any] = {}
    with closing(Talk(port, "committed")) as talk:

        def is_told() -> bool:
            [answer] = talk.silently(FETCH, 9, groups=[{"group_id": group, "topics": wanted}])["groups"]
            found.update(answer)
            return bool(answer["error_code"] == "NONE")

        wait_until(is_told, PROGRESS_TIMEOUT_S, lambda: f"the offsets of {group}, last {found}")
    [partition] = found["topics"][0]["partitions"]
    return partition["committed_offset"], partition["metadata"]


def coordinator_is_there(port: int) -> None:
    with closing(Talk(port, "find")) as talk:
        wait_until(
            lambda: talk.silently(ApiKey.FIND_COORDINATOR, 2, key="any")["error_code"] == "NONE",
            PROGRESS_TIMEOUT_S,
            "the coordinator is there",
        )


def test_no_acknowledged_commit_is_lost(broker: Broker, kills: int) -> None:
    broker.create_topic("work")
    coordinator_is_there(broker.port)
    committers = [Committer(broker.port, n, "work") for n in range(3)]
    for each in committers:
        each.start()

    def more(count: int) -> None:
        for each in committers:
            wait_for(each.progress, count)

    for _ in range(kills):
        more(200)
        broker.kill()
        before = {group: offset for each in committers for group, offset in each.acknowledged.items()}
        broker.start()
        for each in committers:
            for group in each.groups:
                offset, metadata = committed(broker.port, group, "work")
                assert offset >= before[group], f"{group} went back from {before[group]} to {offset}"
                assert metadata == f"{offset}"
    more(50)
    for each in committers:
        each.stop()

    for each in committers:
        assert not each.errors
        for group in each.groups:
            offset, _ = committed(broker.port, group, "work")
            assert each.acknowledged[group] <= offset <= each.sent[group]


def test_a_torn_tail_of_the_offsets_topic_loses_nothing_before_it(broker: Broker) -> None:
    broker.create_topic("work")
    coordinator_is_there(broker.port)
    committer = Committer(broker.port, 0, "work")
    committer.start()
    wait_for(committer.progress, 500)
    broker.kill()
    committer.stop()
    for folder in broker.data.glob("__consumer_offsets-*"):
        with sorted(folder.glob("*.log"))[-1].open("ab") as log:
            log.write(bytes(range(256)) * 3)

    broker.start()

    for group in committer.groups:
        assert committed(broker.port, group, "work")[0] >= committer.acknowledged[group]
