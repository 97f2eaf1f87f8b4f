"""Transactions move with their folder: what one broker left open the other goes on with, or ends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol import ApiKey
from barnabas.testing import Broker
from barnabas.testing.apache import ApacheKafka

from .conftest import ALIKE
from .members import group
from .requests import fetch
from .talk import Talk
from .transacting import READ_COMMITTED, Transacting, wait_for_marker

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("java"), pytest.mark.slow]

QUICK = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
TOPIC, GROUP = "moved", "moving.movers"
TIMEOUT_S = 30.0
Side = Callable[[Path], AbstractContextManager[int]]


@contextmanager
def apache(data: Path) -> Iterator[int]:
    with ApacheKafka(data, QUICK) as kafka:
        yield kafka.port


@contextmanager
def apache_killed(data: Path) -> Iterator[int]:
    kafka = ApacheKafka(data, QUICK)
    try:
        kafka.start()
        yield kafka.port
    finally:
        kafka.kill()
        kafka.close()


@contextmanager
def ours(data: Path) -> Iterator[int]:
    with Broker(data, overrides=ALIKE, in_process=False) as broker:
        yield broker.port


@contextmanager
def ours_killed(data: Path) -> Iterator[int]:
    broker = Broker(data, overrides=ALIKE, in_process=False)
    broker.start()
    try:
        yield broker.port
    finally:
        broker.kill()


def visible(talk: Talk) -> list[str]:
    """Values that a reader of committed records sees, up to where it may read now."""
    body = fetch(talk, {TOPIC: [{}]}, isolation_level=READ_COMMITTED)
    [partition] = talk.silently(ApiKey.FETCH, 12, **body)["responses"][0]["partitions"]
    assert partition["error_code"] == "NONE", partition
    aborted = sorted(
        (each["first_offset"], each["producer_id"]) for each in partition["aborted_transactions"] or ()
    )
    skipped: set[int] = set()
    values = []
    for batch in partition["records"]:
        while aborted and aborted[0][0] <= batch["base_offset"] + batch["last_offset_delta"]:
            skipped.add(aborted.pop(0)[1])
        if batch["attributes"] & 0x20:
            skipped.discard(batch["producer_id"])
        elif batch["producer_id"] not in skipped:
            values += [record["value"] for record in batch["records"]]
    return values


def committed(talk: Talk, *, stable: bool = True) -> tuple[str, int]:
    topics = [{"name": TOPIC, "partition_indexes": [0]}]
    groups = [{"group_id": GROUP, "topics": topics}]
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        [answer] = talk.silently(ApiKey.OFFSET_FETCH, 9, groups=groups, require_stable=stable)["groups"]
        if answer["error_code"] == "NONE":
            [found] = answer["topics"][0]["partitions"]
            return found["error_code"], found["committed_offset"]
        assert time.monotonic() < deadline, answer


def commit_offset(producer: Transacting, offset: int) -> None:
    partitions = [{"partition_index": 0, "committed_offset": offset}]
    body = {
        "transactional_id": producer.id,
        "group_id": GROUP,
        **producer.who(),
        "topics": [{"name": TOPIC, "partitions": partitions}],
    }
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        answer = producer.talk.silently(ApiKey.TXN_OFFSET_COMMIT, 5, **body)
        code = answer["topics"][0]["partitions"][0]["error_code"]
        if code == "NONE":
            return
        assert time.monotonic() < deadline, answer


def talk_to(port: int) -> Talk:
    talk = Talk(port, "moving")
    talk.wait_until_served(TOPIC, 1)
    return talk


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(apache, ours, marks=pytest.mark.long, id="apache then ours"),
        pytest.param(ours, apache, marks=pytest.mark.long, id="ours then apache"),
        pytest.param(apache_killed, ours_killed, marks=pytest.mark.long, id="apache killed, then ours"),
        pytest.param(ours_killed, apache_killed, id="ours killed, then apache"),
    ],
)
def test_open_transactions_go_on_at_the_other_broker(tmp_path: Path, first: Side, second: Side) -> None:
    data = tmp_path / "data"
    with first(data) as port, closing(Talk(port, "moving")) as talk:
        wanted: dict[str, Any] = {"name": TOPIC, "num_partitions": 1, "replication_factor": 1}
        talk.silently(ApiKey.CREATE_TOPICS, 7, topics=[wanted])
        talk.wait_until_served(TOPIC, 1)
        assert group(talk, "movers") == GROUP
        done, open_one, given_up = (Transacting(talk, name) for name in ("done", "open", "given-up"))
        for value, is_kept in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
            done.write(TOPIC, value)
            commit_offset(done, len(value))
            done.end(commit=is_kept, topics=(TOPIC,))
        open_one.write(TOPIC, b"open")
        commit_offset(open_one, 100)
        given_up.write(TOPIC, b"given up")
        assert visible(talk) == ["kept", "kept too"]
        assert committed(talk) == ("UNSTABLE_OFFSET_COMMIT", -1)

    with second(data) as port, closing(talk_to(port)) as talk:
        for producer in (done, open_one, given_up):
            producer.talk = talk
        assert visible(talk) == ["kept", "kept too"]
        assert committed(talk) == ("UNSTABLE_OFFSET_COMMIT", -1)
        assert committed(talk, stable=False) == ("NONE", len("kept too"))
        open_one.write(TOPIC, b"gone on")
        old_id = given_up.producer_id
        given_up.init()  # ends what was open under its name
        wait_for_marker(talk, TOPIC, 0, old_id)
        open_one.end(commit=True, topics=(TOPIC,))
        assert visible(talk) == ["kept", "kept too", "open", "gone on"]
        done.write(TOPIC, b"last")
        done.end(commit=True, topics=(TOPIC,))
        assert committed(talk) == ("NONE", 100)

    with first(data) as port, closing(talk_to(port)) as talk:
        assert visible(talk) == ["kept", "kept too", "open", "gone on", "last"]
        assert committed(talk) == ("NONE", 100)
