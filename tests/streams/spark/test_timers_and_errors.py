"""Timers run without records, committed records of repartition topics go, failures are told."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.streams.spark.local import KEEPS_OLD_RECORDS, LocalApplication

from barnabas.client.core.topology import TopicPartition
from barnabas.plans.interpreter.records import Failure, Message, Output, TaskError, Verdict, log_and_continue
from barnabas.plans.interpreter.task import Handlers
from barnabas.spark.basics.settings import OptionError
from barnabas.spark.reading.fetcher import EARLIEST
from barnabas.streams import StreamsBuilder, TestDriver
from barnabas.streams.run.error_records import DeadLetters, ProcessingLog, Sinks
from barnabas.streams.run.settings import streams_settings
from barnabas.streams.serdes.formats import LONG
from barnabas.streams.spark.purging import Purge
from barnabas.streams.spark.task_metrics import COMMITTED, DROPPED, PROCESSED
from barnabas.testing.broker import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(in_process=False, overrides=KEEPS_OLD_RECORDS) as found:
        yield found


class Ticking:
    def init(self, context: Any) -> None:
        context.schedule(60_000, "wall clock", lambda now: context.forward(Message("tick", "t", now)))

    def process(self, record: Message) -> None:
        pass


def test_a_timer_by_the_wall_clock_runs_without_records(broker: Broker, tmp_path: Path) -> None:
    builder = StreamsBuilder("ticking")
    builder.stream("ticking-in", value=str).process(Ticking).to("ticking-out", key=str, value=str)
    with LocalApplication(broker, builder.build(), tmp_path) as application:
        application.create("ticking-in", "ticking-out", partitions=1)
        application.run()
        [query] = application.queries
        assert query.timers == {0: 0}  # nobody knows yet which timers there are
        application.tick(1)
        due = query.timers[0]
        assert time.time() * 1000 < due <= time.time() * 1000 + 60_000
        application.tick(due - 1)
        assert application.read("ticking-out") == []
        past = {"now": due}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("barnabas.streams.spark.plan_logic.time.time", lambda: past["now"] / 1000)
            application.tick(due)
        assert application.read("ticking-out") == [("tick", "t", due)]
        assert query.timers[0] == due + 60_000


def test_a_query_without_timers_ticks_once(broker: Broker, tmp_path: Path) -> None:
    class Silent:
        def process(self, record: Message) -> None:
            pass

    builder = StreamsBuilder("silent")
    builder.stream("silent-in", value=str).process(Silent)
    with LocalApplication(broker, builder.build(), tmp_path) as application:
        application.create("silent-in", partitions=1)
        application.run()
        application.tick(1)
        assert application.queries[0].timers == {}


def test_committed_records_of_repartition_topics_are_deleted(broker: Broker, tmp_path: Path) -> None:
    builder = StreamsBuilder("purged")
    builder.stream("purged-in", value=str).repartition("again").to("purged-out")
    with LocalApplication(broker, builder.build(), tmp_path) as application:
        application.create("purged-in", "purged-out", partitions=1)
        application.produce("purged-in", [("a", "x", 1)] * 5)
        application.run()
        purged = [
            place for query in application.queries for place in query.places if place.topic in query.purged
        ]
        [place] = purged
        assert place == TopicPartition("purged-again-repartition", 0)
        position = application.queries[1].positions[place]
        Purge(application.cluster, 0).run_if_due({place: position})
        assert application.cluster.offsets({place: EARLIEST})[place] == position
        application.produce("purged-in", [("a", "y", 2)])
        application.run()
        assert len(application.read("purged-out")) == 6


def numbers(name: str) -> StreamsBuilder:
    builder = StreamsBuilder(name)
    records = builder.stream(f"{name}-in", value=LONG)
    records.map_values(lambda value: 100 // value, value=int).to(f"{name}-out")
    return builder


BAD = [
    ("a", (4).to_bytes(8, "big"), 1),
    ("b", b"xx", 2),
    ("c", bytes(8), 3),
    ("d", (5).to_bytes(8, "big"), 4),
]


def test_failures_become_dead_letters_and_lines_of_a_log(broker: Broker, tmp_path: Path) -> None:
    with LocalApplication(broker, numbers("letters").build(), tmp_path) as application:
        sink = Sinks([DeadLetters("letters-dead"), ProcessingLog("letters-log", "letters")])
        application.handlers = Handlers(log_and_continue, log_and_continue, log_and_continue, sink=sink)
        application.create("letters-in", "letters-out", "letters-dead", "letters-log", partitions=1)
        application.produce("letters-in", BAD, value=bytes)
        application.run()
        assert application.read("letters-out", value=int) == [("a", 25, 1), ("d", 20, 4)]
        assert application.read("letters-dead", value=bytes) == BAD[1:3]
        lines = [json.loads(value) for _, value, _ in application.read("letters-log", key=bytes)]
        assert [(line["stage"], line["error"], line["offset"]) for line in lines] == [
            ("deserialization", "ValueError", 1),
            ("processing", "ZeroDivisionError", 2),
        ]
        metrics = application.queries[0].metrics
        assert metrics.dropped == {"deserialization": 1, "processing": 1}
        assert [metrics.snapshot()[name]["0_0"] for name in (PROCESSED, DROPPED, COMMITTED)] == [4, 2, 1]


def test_headers_of_dead_letters_are_those_of_kafka_streams() -> None:
    handlers = Handlers(log_and_continue, sink=DeadLetters("dead"))
    with TestDriver(numbers("heads").build(), handlers=handlers) as driver:
        driver.input("heads-in", value=bytes).pipe("a", b"xx", 7, (("mine", b"1"),))
        [letter] = driver.written["dead"]
    found = dict(letter.headers)
    assert (letter.key, letter.value, letter.timestamp, found["mine"]) == (b"a", b"xx", 7, b"1")
    assert found.pop("__streams.errors.stacktrace")
    assert {name: value for name, value in found.items() if name != "mine"} == {
        "__streams.errors.exception": b"builtins.ValueError",
        "__streams.errors.message": b"2 bytes are no int64: 8 are needed",
        "__streams.errors.topic": b"heads-in",
        "__streams.errors.partition": b"0",
        "__streams.errors.offset": b"0",
    }


HANDLER = """
from barnabas.plans.interpreter.records import Output, Verdict

class Own:
    def handle(self, failure):
        note = Output("notes", None, str(failure.error).encode(), 1)
        return Verdict("continue" if failure.record.key != b"c" else "fail", (note,))

def confused(failure):
    raise RuntimeError("no idea")
"""


def test_handlers_of_the_user_by_module_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_handlers.py").write_text(HANDLER)
    monkeypatch.chdir(tmp_path)

    def handlers(text: str) -> Handlers:
        given = {"processing.exception.handler": text, "deserialization.exception.handler": text}
        return streams_settings("own", "localhost:9092", given).handlers

    with TestDriver(numbers("own").build(), handlers=handlers("own_handlers:Own")) as driver:
        given = driver.input("own-in", value=bytes)
        given.pipe(*BAD[1])
        assert [note.value for note in driver.written["notes"]] == [b"2 bytes are no int64: 8 are needed"]
        with pytest.raises(TaskError, match="processing of record own-in-0@1 failed in KSTREAM-MAPVALUES"):
            given.pipe(*BAD[2])
    with (
        TestDriver(numbers("own").build(), handlers=handlers("own_handlers:confused")) as driver,
        pytest.raises(TaskError, match="its handler failed: RuntimeError: no idea"),
    ):
        driver.input("own-in", value=bytes).pipe(*BAD[1])
    for text, why in (
        ("own_handlers:None_", "has no None_"),
        ("skip", "module:name"),
        ("absent:x", "imported"),
    ):
        with pytest.raises(OptionError, match=why):
            handlers(text)


def test_a_verdict_may_be_a_word_or_have_records() -> None:
    def judge(failure: Failure) -> Verdict:
        return Verdict("continue", (Output("judged", failure.record.key, None, 0),))

    with TestDriver(numbers("judged").build(), handlers=Handlers(judge)) as driver:
        driver.input("judged-in", value=bytes).pipe(*BAD[1])
        assert [each.key for each in driver.written["judged"]] == [b"b"]
        assert driver.dropped == {"deserialization": 1}
