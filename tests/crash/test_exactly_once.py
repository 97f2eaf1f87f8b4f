"""kill -9 of brokers and of programs that read, transform and write: each input is once in the output."""

from __future__ import annotations

import random
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.records.record import Record
from barnabas.testing import Broker, apache, maven
from barnabas.testing.waiting import wait_until
from broker.conversation import Conversation
from broker.read_committed import ReadCommitted
from broker.transactional import end_offset

from .moving import Filler, Mover
from .progress import PROGRESS_TIMEOUT_S, kill_and_start, wait_for
from .transactors import TRANSACTIONAL

SETTINGS = TRANSACTIONAL
HERE = Path(__file__).parent
PARTITIONS = 3
WORDS = [b"to", b"be", b"or", b"not", b"that", b"is"]
READ_COMMITTED = 1
FETCH_VERSION = 12

pytestmark = pytest.mark.timeout(1800)


def committed(talk: Conversation, topic: str, partition: int) -> list[Record]:
    """All that a reader of committed records sees, which is all there is: nothing is left open."""
    reader = ReadCommitted()
    records: list[Record] = []
    end = end_offset(talk, topic, partition, committed=True)
    while reader.offset < end:
        asked = FetchRequest.FetchTopic.FetchPartition(
            partition=partition, fetch_offset=reader.offset, partition_max_bytes=1 << 20
        )
        topics = [FetchRequest.FetchTopic(topic=topic, partitions=[asked])]
        request = FetchRequest(max_bytes=1 << 24, isolation_level=READ_COMMITTED, topics=topics)
        [found] = talk.ask(request, FETCH_VERSION).responses[0].partitions
        aborted = [(each.producer_id, each.first_offset) for each in found.aborted_transactions or ()]
        records += reader.feed(bytes(found.records), aborted)
    return records


def disturb(broker: Broker, mover: Mover, kills: int, most: int, seed: int) -> None:
    """Broker or program is killed at any point, so many times."""
    rng = random.Random(seed)
    for _ in range(kills):
        wait_for(lambda: mover.moved, rng.randrange(1, most))
        if rng.random() < 0.5:
            kill_and_start(broker)
        else:
            mover.start_again()
    wait_for(lambda: mover.moved, 20)


def wait_until_moved(broker: Broker, is_done: Callable[[Conversation], bool], partitions: int) -> None:
    """Until the output is as it should be; then nothing holds up its readers any more."""

    def is_settled(talk: Conversation) -> bool:
        return all(
            end_offset(talk, "target", index, committed=True) == end_offset(talk, "target", index)
            for index in range(partitions)
        )

    with Conversation(broker) as talk:
        wait_until(lambda: is_done(talk), PROGRESS_TIMEOUT_S, "the output is complete")
        wait_until(lambda: is_settled(talk), PROGRESS_TIMEOUT_S, "no transaction is open")


def program(way: str, folder: Path, request: pytest.FixtureRequest) -> list[str]:
    """The command of a program that moves records."""
    if way == "librdkafka":
        return [sys.executable, str(HERE / "mover.py")]
    if way == "aiokafka":
        return [sys.executable, str(HERE / "aiokafka_mover.py")]
    request.getfixturevalue("java")
    return apache.compiled(HERE / "JavaMover.java", folder)


@pytest.mark.parametrize(
    "way",
    [
        "librdkafka",
        pytest.param("aiokafka", marks=pytest.mark.long),
        pytest.param("java", marks=[pytest.mark.java, pytest.mark.long]),
    ],
)
def test_each_input_is_once_in_the_output_whoever_is_killed(
    broker: Broker, kills: int, way: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    command = program(way, tmp_path, request)
    for topic in ("source", "target"):
        broker.create_topic(topic, PARTITIONS)
    filler = Filler(broker.bootstrap, "source", PARTITIONS, lambda number: b"%d" % number)
    filler.start()
    mover = Mover([*command, broker.bootstrap, "source", "target", "mover"])
    try:
        disturb(broker, mover, kills, 100, seed=41)
        filler.stop()
        wanted = Counter(filler.values)

        def is_complete(talk: Conversation) -> bool:
            found = Counter(
                record.value for index in range(PARTITIONS) for record in committed(talk, "target", index)
            )
            twice = [value for value, count in found.items() if count > 1]
            assert not twice, f"more than once in the output: {twice[:5]}"
            return found == wanted

        wait_until_moved(broker, is_complete, PARTITIONS)
    finally:
        mover.kill()


@pytest.fixture
def streams(java: None) -> None:
    """Skips where Kafka Streams cannot be had."""
    try:
        apache.streams_jars()
    except maven.MavenError as error:
        pytest.skip(str(error))


@pytest.mark.java
@pytest.mark.long
def test_a_word_count_of_kafka_streams_counts_each_word_once_whoever_is_killed(
    broker: Broker, kills: int, tmp_path: Path, streams: None
) -> None:
    command = apache.compiled(HERE / "WordCount.java", tmp_path, streams=True)
    for topic in ("source", "target"):
        broker.create_topic(topic, PARTITIONS)
    filler = Filler(broker.bootstrap, "source", PARTITIONS, lambda number: WORDS[number % len(WORDS)])
    filler.start()
    mover = Mover([*command, broker.bootstrap, "source", "target", "words", str(tmp_path / "state")])
    try:
        disturb(broker, mover, kills, 300, seed=294)
        filler.stop()
        wanted = Counter(filler.values)

        def is_complete(talk: Conversation) -> bool:
            counts: defaultdict[bytes, list[int]] = defaultdict(list)
            for index in range(PARTITIONS):
                for record in committed(talk, "target", index):
                    assert record.key is not None and record.value is not None
                    counts[record.key].append(int(record.value))
            for word, found in counts.items():
                assert found == list(range(1, len(found) + 1)), f"{word!r} was not counted one by one"
            return {word: len(found) for word, found in counts.items()} == wanted

        wait_until_moved(broker, is_complete, PARTITIONS)
    finally:
        mover.kill()


def test_offsets_kept_beside_the_results_give_each_input_once_whoever_is_killed(
    broker: Broker, kills: int, tmp_path: Path
) -> None:
    """Exactly once without transactions: what is written, and how far was read, change together."""
    broker.create_topic("source", PARTITIONS)
    path = tmp_path / "results.db"
    filler = Filler(broker.bootstrap, "source", PARTITIONS, lambda number: b"%d" % number)
    filler.start()
    command = [sys.executable, str(HERE / "keeper.py")]
    keeper = Mover([*command, broker.bootstrap, "source", str(PARTITIONS), str(path)])
    try:
        disturb(broker, keeper, kills, 100, seed=14)
        filler.stop()
        wanted = Counter(value.decode() for value in filler.values)

        def is_complete() -> bool:
            found = kept(path)
            assert not [value for value, count in found.items() if count > 1], "more than once in the results"
            return found == wanted

        wait_until(is_complete, PROGRESS_TIMEOUT_S, lambda: f"{len(kept(path))} of {len(wanted)} arrived")
    finally:
        keeper.kill()


def kept(path: Path) -> Counter[str]:
    with closing(sqlite3.connect(path)) as database:
        return Counter(value for (value,) in database.execute("SELECT value FROM results"))
