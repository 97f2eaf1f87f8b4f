"""Records that are deleted, partitions that move between log dirs: what is answered, and what is refused."""

from __future__ import annotations

import time
from typing import Any

from barnabas.protocol import ApiKey

from ..requests import batch, produce, versions
from ..talk import Talk, scenario

DELETE, MOVE, DIRS = ApiKey.DELETE_RECORDS, ApiKey.ALTER_REPLICA_LOG_DIRS, ApiKey.DESCRIBE_LOG_DIRS
EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3
PATIENCE_S = 20.0


def wanted(topic: str, *offsets: int) -> list[dict[str, Any]]:
    """An offset for each of the partitions 0, 1, 2 ..."""
    partitions = [{"partition_index": index, "offset": offset} for index, offset in enumerate(offsets)]
    return [{"name": topic, "partitions": partitions}]


def filled(talk: Talk, suffix: str, count: int = 5, **configs: str) -> str:
    name = talk.topic(suffix, **configs)
    for number in range(count):
        record = batch(b"%d" % number, key=b"k")
        answer = talk.silently(ApiKey.PRODUCE, 9, **produce(talk, name, record))
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE", answer
    return name


def offsets(talk: Talk, label: str, topic: str) -> None:
    for timestamp in (EARLIEST, LATEST, MAX_TIMESTAMP, 0):
        partitions = [{"partition_index": 0, "timestamp": timestamp}]
        talk.ask(
            f"{label}: {timestamp}",
            ApiKey.LIST_OFFSETS,
            8,
            replica_id=-1,
            topics=[{"name": topic, "partitions": partitions}],
        )


@scenario
def every_version_deletes_records(talk: Talk) -> None:
    for version in versions(DELETE):
        name = filled(talk, f"version-{version}")
        for offset in (0, 2, 1, 2, 4, -1, 5):
            talk.ask(f"before {offset}", DELETE, version, topics=wanted(name, offset), timeout_ms=5_000)
        offsets(talk, f"after version {version}", name)


@scenario
def offsets_that_are_not_there(talk: Talk) -> None:
    name = filled(talk, "topic")
    for offset in (6, 100, 2**63 - 1, -2, -3, -(2**63)):
        talk.ask(f"before {offset}", DELETE, 2, topics=wanted(name, offset), timeout_ms=5_000)
    talk.ask("nothing", DELETE, 2, topics=[], timeout_ms=5_000)
    talk.ask("no partitions", DELETE, 2, topics=wanted(name), timeout_ms=5_000)
    talk.ask("no time", DELETE, 2, topics=wanted(name, 1), timeout_ms=0)
    talk.ask("negative time", DELETE, 2, topics=wanted(name, 2), timeout_ms=-1)
    offsets(talk, "afterwards", name)


@scenario
def partitions_that_are_not_there(talk: Talk) -> None:
    name = filled(talk, "topic")
    other = filled(talk, "other")
    talk.ask("an unknown topic", DELETE, 2, topics=wanted(talk.name("missing"), 0), timeout_ms=5_000)
    talk.ask("one that is there and one that is not", DELETE, 2, topics=wanted(name, 1, 1), timeout_ms=5_000)
    talk.ask("two topics", DELETE, 2, topics=wanted(name, 2) + wanted(other, 9), timeout_ms=5_000)
    talk.ask("an empty name", DELETE, 2, topics=wanted("", 0), timeout_ms=5_000)


@scenario
def policies(talk: Talk) -> None:
    for policy in ("compact", "compact,delete", "delete"):
        name = filled(talk, policy.replace(",", "-"), cleanup_policy=policy)
        talk.ask(policy, DELETE, 2, topics=wanted(name, 2), timeout_ms=5_000)
        offsets(talk, policy, name)


@scenario
def what_consumers_see_afterwards(talk: Talk) -> None:
    name = filled(talk, "topic")
    talk.ask("before 3", DELETE, 2, topics=wanted(name, 3), timeout_ms=5_000)
    for offset in (0, 2, 3, 4, 5, 6):
        body = {
            "max_bytes": 1_000_000,
            "session_epoch": -1,
            "topics": [
                {"topic": name, "partitions": [{"fetch_offset": offset, "partition_max_bytes": 1_000_000}]}
            ],
        }
        talk.ask(f"fetch from {offset}", ApiKey.FETCH, 12, **body)
    epochs = [{"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}]
    talk.ask(
        "epochs",
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        4,
        replica_id=-1,
        topics=[{"topic": name, "partitions": epochs}],
    )


def own_dir(talk: Talk) -> str:
    """The only log dir there is, under the name that the broker gives it."""
    [found] = talk.silently(DIRS, 4, topics=[])["results"]
    path: str = found["log_dir"]
    return path


def to_dir(path: str, topic: str, *partitions: int) -> list[dict[str, Any]]:
    return [{"path": path, "topics": [{"name": topic, "partitions": list(partitions)}]}]


@scenario
def moves_where_there_is_one_dir(talk: Talk) -> None:
    name = filled(talk, "topic")
    for version in versions(MOVE):
        talk.ask("to where it lies", MOVE, version, dirs=to_dir(own_dir(talk), name, 0))
        talk.ask("to a dir that is not there", MOVE, version, dirs=to_dir("/nowhere", name, 0))
        talk.ask("to a relative path", MOVE, version, dirs=to_dir("data", name, 0))
        talk.ask("a partition that is not there", MOVE, version, dirs=to_dir(own_dir(talk), name, 7))
        talk.ask("an unknown topic", MOVE, version, dirs=to_dir(own_dir(talk), talk.name("missing"), 0, 1))
        talk.ask("nothing", MOVE, version, dirs=[])
        talk.ask("no partitions", MOVE, version, dirs=to_dir(own_dir(talk), name))
        talk.ask(
            "two dirs",
            MOVE,
            version,
            dirs=to_dir("/nowhere", name, 0) + to_dir(own_dir(talk), talk.name("missing"), 0),
        )
    long_name = talk.topic("n" * (215 - len(talk.prefix)))
    talk.ask("a long name", MOVE, 2, dirs=to_dir(own_dir(talk), long_name, 0))


@scenario
def a_deleted_topic_is_gone_from_its_dir(talk: Talk) -> None:
    name = filled(talk, "topic")
    talk.ask("before", DIRS, 4, topics=[{"topic": name, "partitions": [0]}])
    talk.silently(ApiKey.DELETE_TOPICS, 6, topics=[{"name": name}], timeout_ms=10_000)
    deadline = time.monotonic() + PATIENCE_S
    while talk.silently(DIRS, 4, topics=[{"topic": name, "partitions": [0]}])["results"][0]["topics"]:
        assert time.monotonic() < deadline
    talk.ask("after", DIRS, 4, topics=[{"topic": name, "partitions": [0]}])
    talk.ask("records of it", DELETE, 2, topics=wanted(name, 1), timeout_ms=5_000)
    talk.ask("a move of it", MOVE, 2, dirs=to_dir(own_dir(talk), name, 0))
