"""Logs that one broker has shortened and moved between its dirs, opened by the other one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import ApiKey
from barnabas.testing import Broker
from barnabas.testing.apache import ApacheKafka
from barnabas.testing.waiting import wait_until

from .requests import batch, produce
from .talk import Talk

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("java"), pytest.mark.slow, pytest.mark.timeout(300)]

EARLIEST, LATEST = -2, -1
DAY_MS = 24 * 3600 * 1000
SETTINGS = {
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "200",
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.segment.delete.delay.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "200",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}


def settings(dirs: list[Path]) -> dict[str, str]:
    return {**SETTINGS, "log.dirs": ",".join(map(str, dirs)), "metadata.log.dir": str(dirs[0])}


@contextmanager
def apache(dirs: list[Path]) -> Iterator[int]:
    for path in dirs:
        path.mkdir(exist_ok=True)
    with ApacheKafka(dirs[0], settings(dirs), heap="512M") as kafka:
        yield kafka.port


@contextmanager
def ours(dirs: list[Path]) -> Iterator[int]:
    with Broker(dirs[0], overrides=settings(dirs)) as broker:
        yield broker.port


@contextmanager
def ours_killed(dirs: list[Path]) -> Iterator[int]:
    broker = Broker(dirs[0], overrides=settings(dirs), in_process=False)
    broker.start()
    try:
        yield broker.port
    finally:
        broker.kill()


Serve = Callable[[list[Path]], Any]


def offset(talk: Talk, topic: str, timestamp: int) -> int:
    partitions = [{"partition_index": 0, "timestamp": timestamp}]
    topics = [{"name": topic, "partitions": partitions}]
    answer = talk.silently(ApiKey.LIST_OFFSETS, 8, replica_id=-1, topics=topics)
    return int(answer["topics"][0]["partitions"][0]["offset"])


def fetched(talk: Talk, topic: str) -> list[tuple[int, str]]:
    """Everything from the start of the log to its end."""
    found: list[tuple[int, str]] = []
    position, end = offset(talk, topic, EARLIEST), offset(talk, topic, LATEST)
    while position < end:
        place = {"fetch_offset": position, "partition_max_bytes": 1_000_000}
        topics = [{"topic": topic, "partitions": [place]}]
        answer = talk.silently(ApiKey.FETCH, 12, max_bytes=1_000_000, session_epoch=-1, topics=topics)
        partition = answer["responses"][0]["partitions"][0]
        assert partition["error_code"] == "NONE", partition
        for one in partition["records"]:
            assert one["crc_is_right"]
            found += [
                (each["offset"], each["value"][:40]) for each in one["records"] if each["offset"] >= position
            ]
        position = found[-1][0] + 1
    return found


def shorten(talk: Talk, dirs: list[Path]) -> dict[str, list[tuple[int, str]]]:
    """One topic by age, one by request, one is moved; what is left of them."""
    now_ms = int(time.time() * 1000)
    aged = talk.topic("aged", retention_ms=str(7 * DAY_MS), segment_ms=str(DAY_MS // 2))
    for days in (12, 10, 6, 5, 2):
        records = batch(b"%d days" % days, time_ms=now_ms - days * DAY_MS)
        talk.silently(ApiKey.PRODUCE, 9, **produce(talk, aged, records))
    cut = talk.topic("cut")
    moved = talk.topic("moved")
    for number in range(10):
        for name in (cut, moved):
            talk.silently(ApiKey.PRODUCE, 9, **produce(talk, name, batch(b"number %d" % number)))
    partitions = [{"partition_index": 0, "offset": 7}]
    answer = talk.silently(
        ApiKey.DELETE_RECORDS, 2, topics=[{"name": cut, "partitions": partitions}], timeout_ms=5_000
    )
    assert answer["topics"][0]["partitions"][0]["low_watermark"] == 7
    [source] = [path for path in dirs if (path / f"{moved}-0").exists()]
    target = next(path for path in dirs if path != source)
    talk.silently(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        2,
        dirs=[{"path": str(target), "topics": [{"name": moved, "partitions": [0]}]}],
    )
    wait_until(lambda: (target / f"{moved}-0").exists(), 30)
    wait_until(lambda: offset(talk, aged, EARLIEST) == 2, 60)
    checkpoints = [path / "log-start-offset-checkpoint" for path in dirs]
    wait_until(lambda: any(path.exists() and f"{cut} 0 7" in path.read_text() for path in checkpoints), 30)
    left = {name: fetched(talk, name) for name in (aged, cut, moved)}
    assert {name: len(records) for name, records in left.items()} == {aged: 3, cut: 3, moved: 10}
    return left


def kept_alive(talk: Talk) -> None:
    """Takes records again, in every topic."""
    for suffix in ("aged", "cut", "moved"):
        name = talk.name(suffix)
        talk.wait_until_served(name, 1)
        end = offset(talk, name, LATEST)
        records = batch(b"more", time_ms=int(time.time() * 1000))
        talk.silently(ApiKey.PRODUCE, 9, **produce(talk, name, records))
        assert offset(talk, name, LATEST) == end + 1


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(ours, apache, marks=pytest.mark.long),
        (ours_killed, apache),
        pytest.param(apache, ours, marks=pytest.mark.long),
    ],
    ids=lambda f: f.__name__,
)
def test_what_one_has_shortened_and_moved_the_other_opens(
    first: Serve, second: Serve, tmp_path: Path
) -> None:
    dirs = [tmp_path / "one", tmp_path / "two"]
    with first(dirs) as port, closing(Talk(port, "folders")) as talk:
        left = shorten(talk, dirs)
    with second(dirs) as port, closing(Talk(port, "folders")) as talk:
        for name in left:
            talk.wait_until_served(name, 1)
        assert {name: fetched(talk, name) for name in left} == left
        assert offset(talk, talk.name("cut"), EARLIEST) == 7
        kept_alive(talk)
        [moved] = [path for path in dirs if (path / f"{talk.name('moved')}-0").exists()]
        assert moved
