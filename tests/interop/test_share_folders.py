"""`__share_group_state`: both brokers write the same records, and each goes on with the other's folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from barnabas.testing import Broker
from barnabas.testing.apache import ApacheKafka

from .conftest import ALIKE
from .share_writing import SharePartition, make_topic, records_in
from .talk import Talk

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("java")]

UPDATES = "share.coordinator.snapshot.update.records.per.snapshot"
TIMES = "create_timestamp", "write_timestamp"
GROUP = "movers"


@contextmanager
def apache(data: Path) -> Iterator[Talk]:
    settings = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200", UPDATES: "3"}
    kafka = ApacheKafka(data, settings)
    try:
        kafka.start()
        with closing(Talk(kafka.port, "moving")) as talk:
            yield talk
    finally:
        kafka.kill()
        kafka.close()


@contextmanager
def ours(data: Path) -> Iterator[Talk]:
    broker = Broker(data, overrides=ALIKE | {UPDATES: "3"}, in_process=False)
    broker.start()
    try:
        with closing(Talk(broker.port, "moving")) as talk:
            yield talk
    finally:
        broker.kill()


def write_all_kinds(talk: Talk, topic: str, group: str) -> None:
    topic_id = make_topic(talk, topic, 2)
    state = SharePartition(talk, group, topic_id)
    other = SharePartition(talk, group, topic_id, 1)
    state.initialize(start=-1)
    other.initialize(epoch=4, start=7)
    for number in range(1, 8):
        state.write(10 * number, (10 * number + 3, 10 * number + 5, 2, 1), (500, 510 + number, 0, number))
    state.read(leader_epoch=2)
    state.write(-1, (600, 699, 4, 3), (650, 660, 2, 3), complete=17, epochs=(1, 2))
    state.write(90, complete=-1, epochs=(1, 2))
    other.delete()
    state.initialize(epoch=2, start=100)
    state.write(100, (101, 101, 2, 1), epochs=(2, 2))


def test_both_brokers_write_the_same_records(tmp_path: Path) -> None:
    found = {}
    for name, side in {"apache": apache, "ours": ours}.items():
        data = tmp_path / name
        with side(data) as talk:
            write_all_kinds(talk, "written", GROUP)
        records = records_in(data, GROUP)
        topic_id = records[0][2].key.topic_id
        lines = []
        for key, value, entry in records:
            for time in TIMES:
                if hasattr(entry.value, time):
                    value = (value or b"").replace(getattr(entry.value, time).to_bytes(8, "big"), b"<time>")
            lines.append((key.replace(topic_id, b"<id>"), value))
        found[name] = lines
    assert len(found["ours"]) > 10
    assert found["ours"] == found["apache"]


def test_each_broker_goes_on_with_the_state_of_the_other(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with ours(data) as talk:
        topic_id = make_topic(talk, "moved", 2)
        state, deleted = (SharePartition(talk, GROUP, topic_id, each) for each in range(2))
        state.initialize()
        deleted.initialize(start=5)
        for number in range(5):
            state.write(2, (10 * number, 10 * number + 5, 2 * (number % 2), 1), complete=number)
        deleted.delete()
        first = state.read(leader_epoch=1)
        assert first == (1, 2, [(2, 5, 0, 1), (10, 15, 2, 1), (20, 25, 0, 1), (30, 35, 2, 1), (40, 45, 0, 1)])

    with apache(data) as talk:
        state, deleted = (SharePartition(talk, GROUP, topic_id, each) for each in range(2))
        assert state.read() == first
        assert state.summary() == (2, 4)
        assert deleted.summary() == (-1, -1)
        for number in range(5, 12):
            state.write(12, (10 * number, 10 * number + 9, 2, 1), complete=number, epochs=(1, 1))
        deleted.initialize(epoch=3, start=50)
        second = state.read(leader_epoch=2)
        assert second[2][-1] == (50, 119, 2, 1)

    with ours(data) as talk:
        state, deleted = (SharePartition(talk, GROUP, topic_id, each) for each in range(2))
        assert state.read() == second
        assert state.summary() == (12, 11)
        assert deleted.summary() == (50, 0)
        state.write(30, (30, 119, 2, 2), epochs=(1, 2))
        assert state.read() == (1, 30, [(30, 119, 2, 2)])
