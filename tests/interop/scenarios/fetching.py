"""Fetch: versions, positions, limits, waiting, epochs."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..requests import batch, fetch, produce, versions
from ..talk import Talk, scenario

PRODUCE, FETCH = ApiKey.PRODUCE, ApiKey.FETCH


def load(talk: Talk, topic: str, partition: int = 0, batches: int = 3, size: int = 0) -> None:
    for n in range(batches):
        data = batch(b"%d" % n + b"x" * size, b"+")
        answer = talk.silently(PRODUCE, 9, **produce(talk, topic, {partition: data}))
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE", answer


@scenario
def every_version_reads(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    load(talk, topic, 0)
    for version in versions(FETCH):
        for isolation in (0, 1):
            for offset in (0, 3, 6):
                body = fetch(
                    talk, {topic: [{"fetch_offset": offset}, {"partition": 1}]}, isolation_level=isolation
                )
                talk.ask(f"from {offset}, isolation {isolation}", FETCH, version, **body)


@scenario
def offsets_out_of_range(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic)
    for version in versions(FETCH):
        for offset in (-1, -2, 7, 1_000, 2**62):
            talk.ask(f"from {offset}", FETCH, version, **fetch(talk, {topic: [{"fetch_offset": offset}]}))


@scenario
def topics_and_partitions_that_are_not_there(talk: Talk) -> None:
    topic = talk.topic()
    missing = talk.name("missing")
    for version in versions(FETCH):
        nowhere = {missing: b"0123456789abcdef"}
        talk.ask("unknown topic", FETCH, version, **fetch(talk, {missing: [{}]}, topic_ids=nowhere))
        for partition in (1, -1):
            talk.ask(
                f"partition {partition} of 1",
                FETCH,
                version,
                **fetch(talk, {topic: [{"partition": partition}]}),
            )
        both = fetch(talk, {topic: [{}], missing: [{}]}, topic_ids=nowhere)
        talk.ask("one topic there, one not", FETCH, version, **both)
        talk.ask("nothing", FETCH, version, **fetch(talk, {}))
    for version in (13, 18):
        talk.ask("no topic id", FETCH, version, **fetch(talk, {topic: [{}]}, topic_ids={topic: bytes(16)}))
    talk.ask("the same partition twice", FETCH, 12, **fetch(talk, {topic: [{}, {}]}))
    talk.ask("a bad name", FETCH, 12, **fetch(talk, {"not a name": [{}]}))
    talk.ask("an internal topic", FETCH, 12, **fetch(talk, {"__cluster_metadata": [{}]}))


@scenario
def at_least_one_batch_and_no_more_than_asked(talk: Talk) -> None:
    topic = talk.topic(partitions=2)
    load(talk, topic, 0, batches=4, size=1_000)
    load(talk, topic, 1, batches=4, size=1_000)
    for version in (4, 11, 12, 18):
        for limit in (0, 1, 1_000, 1_100, 2_500, 100_000, -1):
            one = fetch(talk, {topic: [{"partition_max_bytes": limit}]})
            talk.ask(f"{limit} bytes a partition", FETCH, version, **one)
        for limit in (0, 1, 1_100, 2_500, 100_000, -1):
            two = fetch(talk, {topic: [{}, {"partition": 1}]}, max_bytes=limit)
            talk.ask(f"{limit} bytes in all", FETCH, version, **two)
        inner = fetch(talk, {topic: [{"fetch_offset": 3, "partition_max_bytes": 1}]})
        talk.ask("from inside a batch", FETCH, version, **inner)


def waiting(talk: Talk, label: str, version: int, body: dict[str, Any]) -> None:
    """Asks, and writes down whether the broker waited about as long as it was told to."""
    started = time.monotonic()
    answer = talk.silently(FETCH, version, **body)
    waited = time.monotonic() - started >= 0.9 * body["max_wait_ms"] / 1000
    talk.note(f"FETCH v{version}: {label}", {"waited": waited, **answer})


@scenario
def a_fetch_waits_for_bytes(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic)
    end = {topic: [{"fetch_offset": 6}]}
    for version in (4, 12, 18):
        waiting(talk, "nothing there", version, fetch(talk, end, max_wait_ms=300, min_bytes=1))
        waiting(
            talk, "nothing there, nothing wanted", version, fetch(talk, end, max_wait_ms=20_000, min_bytes=0)
        )
        start = {topic: [{}]}
        waiting(talk, "enough there", version, fetch(talk, start, max_wait_ms=20_000, min_bytes=1))
        waiting(talk, "not enough there", version, fetch(talk, start, max_wait_ms=300, min_bytes=1_000_000))
        wrong = {topic: [{"fetch_offset": 99}]}
        waiting(talk, "an error does not wait", version, fetch(talk, wrong, max_wait_ms=20_000, min_bytes=1))
        missing = {talk.name("missing"): [{}], topic: [{"fetch_offset": 6}]}
        waiting(
            talk,
            "an unknown topic beside",
            version,
            fetch(talk, missing, max_wait_ms=300, min_bytes=1),
        )
    waiting(talk, "no wait", 12, fetch(talk, end, max_wait_ms=0, min_bytes=1))
    waiting(talk, "no topics", 12, fetch(talk, {}, max_wait_ms=20_000, min_bytes=1))


@scenario
def a_waiting_fetch_is_answered_by_a_produce(talk: Talk) -> None:
    topic = talk.topic()
    other = Talk(talk.port, talk.prefix)
    other.topic_ids = talk.topic_ids
    try:
        for version in (4, 12, 18):
            at = talk.silently(FETCH, 12, **fetch(talk, {topic: [{}]}))["responses"][0]["partitions"][0]
            body = fetch(
                talk, {topic: [{"fetch_offset": at["high_watermark"]}]}, max_wait_ms=20_000, min_bytes=1
            )
            talk.send_only(FETCH, version, **body)
            time.sleep(0.2)  # the fetch should be waiting by now; if it is not, the answer is the same
            load(other, topic, batches=1)
            frame = talk.wire.receive()
            talk.note(f"FETCH v{version}: answered", {"bytes": len(frame)})
    finally:
        other.close()


@scenario
def answers_come_in_the_order_of_requests(talk: Talk) -> None:
    topic = talk.topic()
    body = fetch(talk, {topic: [{}]}, max_wait_ms=500, min_bytes=1)
    talk.send_only(FETCH, 12, **body)
    first = talk.wire.correlation_id
    for _ in range(3):
        talk.send_only(ApiKey.METADATA, 9, topics=[])
    order = [int.from_bytes(talk.wire.receive()[:4], "big") - first for _ in range(4)]
    talk.note("a waiting fetch, then three quick ones", {"order": "".join(map(str, order))})


@scenario
def leader_epochs(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic)
    for version in (9, 11, 12, 13, 18):
        for epoch in (-1, 0, 1, 99, -2):
            talk.ask(
                f"current epoch {epoch}",
                FETCH,
                version,
                **fetch(talk, {topic: [{"current_leader_epoch": epoch}]}),
            )
    for version in (12, 13, 18):
        for epoch, offset in ((0, 6), (0, 3), (1, 3), (5, 6), (-1, 6), (0, 100)):
            partition = {"last_fetched_epoch": epoch, "fetch_offset": offset, "current_leader_epoch": 0}
            talk.ask(
                f"last fetched epoch {epoch} at {offset}", FETCH, version, **fetch(talk, {topic: [partition]})
            )


@scenario
def a_follower_that_is_none(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic)
    for version in (4, 11, 12, 14):
        for replica in (-2, 5, 1):
            talk.ask(f"replica {replica}", FETCH, version, **fetch(talk, {topic: [{}]}, replica_id=replica))
    for version in (15, 18):
        for replica in (-2, 5):
            state = {"replica_id": replica, "replica_epoch": -1}
            talk.ask(f"replica {replica}", FETCH, version, **fetch(talk, {topic: [{}]}, replica_state=state))


@scenario
def isolation_and_rack(talk: Talk) -> None:
    topic = talk.topic()
    load(talk, topic)
    for level in (0, 1, 2, -1):
        talk.ask(f"isolation level {level}", FETCH, 12, **fetch(talk, {topic: [{}]}, isolation_level=level))
    talk.ask("a rack", FETCH, 12, **fetch(talk, {topic: [{}]}, rack_id="somewhere"))
    talk.ask("a cluster id that is not this one", FETCH, 12, **fetch(talk, {topic: [{}]}, cluster_id="other"))
