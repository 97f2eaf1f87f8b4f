"""A transactional producer in a conversation, of today's kind or of an older one.

In: a `Talk` to write to. Out: the same requests with every broker; what depends on when a broker gets round
to its markers is waited for. Does not know: which broker it talks to, what the answers should be.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

from barnabas.protocol import ApiKey

from .requests import batch, fetch, produce
from .talk import Talk

TIMEOUT_S = 20.0
TRANSACTION = 1  # the key type of FindCoordinator
NOT_YET = (
    "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "NOT_COORDINATOR",
    "CONCURRENT_TRANSACTIONS",
)
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
STARTED_MS = int(time.time() * 1000) - 600_000
_batches = itertools.count()  # each is younger than the one before
ADD, ADD_OFFSETS, END = ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN


class Transacting:
    """`is_new`: transaction version 2, in which partitions need not be added and epochs grow."""

    def __init__(self, talk: Talk, suffix: str = "id", *, is_new: bool = True) -> None:
        self.talk = talk
        self.id = talk.name(suffix)
        self.is_new = is_new
        self.producer_id, self.epoch = -1, -1
        self.sequences: dict[tuple[str, int, int], int] = {}
        self.init()

    @property
    def produce_version(self) -> int:
        return 12 if self.is_new else 11

    def init(self) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            self.talk.silently(ApiKey.FIND_COORDINATOR, 4, key_type=TRANSACTION, coordinator_keys=[self.id])
            answer = self.talk.silently(
                ApiKey.INIT_PRODUCER_ID, 5, transactional_id=self.id, transaction_timeout_ms=60_000
            )
            if answer["error_code"] == "NONE":
                self.producer_id, self.epoch = answer["producer_id"], answer["producer_epoch"]
                self.talk.neutral("producer_id", self.producer_id)  # named in the order of birth
                return
            assert answer["error_code"] in NOT_YET and time.monotonic() < deadline, answer

    def who(self) -> dict[str, Any]:
        return {"producer_id": self.producer_id, "producer_epoch": self.epoch}

    def add(self, topic: str, *partitions: int) -> None:
        """The older flow, silently; waits until the transaction before is over."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.talk.silently(
                ADD,
                3,
                v3_and_below_transactional_id=self.id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self.epoch,
                v3_and_below_topics=[{"name": topic, "partitions": list(partitions)}],
            )
            results = answer["results_by_topic_v3_and_below"][0]["results_by_partition"]
            codes = {each["partition_error_code"] for each in results}
            if codes == {0}:
                return
            assert 51 in codes and time.monotonic() < deadline, answer

    def add_offsets(self, group: str) -> None:
        """The same for the offsets of a group."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.talk.silently(
                ADD_OFFSETS, 3, transactional_id=self.id, **self.who(), group_id=group
            )
            if answer["error_code"] == "NONE":
                return
            assert answer["error_code"] in NOT_YET and time.monotonic() < deadline, answer

    def commit_offsets(
        self, label: str, group: str, offsets: dict[str, dict[int, int]], version: int = 5, **fields: Any
    ) -> None:
        """TxnOffsetCommit, written down."""
        topics = [
            {
                "name": name,
                "partitions": [
                    {"partition_index": index, "committed_offset": offset, "committed_metadata": "word"}
                    for index, offset in partitions.items()
                ],
            }
            for name, partitions in offsets.items()
        ]
        body = {"transactional_id": self.id, "group_id": group, **self.who(), "topics": topics, **fields}
        self.talk.ask(label, ApiKey.TXN_OFFSET_COMMIT, version, **body)

    def batch(self, topic: str, *values: bytes, partition: int = 0, **fields: Any) -> bytes:
        """The next batch for a partition; `fields` may say otherwise."""
        place = topic, partition, self.epoch
        sequence = self.sequences.get(place, 0)
        self.sequences[place] = sequence + len(values)
        time_ms = STARTED_MS + next(_batches)  # markers are younger
        given = {**self.who(), "base_sequence": sequence, "transactional": True, "time_ms": time_ms, **fields}
        return batch(*values, **given)

    def send(self, label: str, topic: str, *values: bytes, partition: int = 0, **fields: Any) -> None:
        """One batch, written down."""
        version = fields.pop("version", self.produce_version)
        transactional_id = fields.pop("transactional_id", self.id)
        data = self.batch(topic, *values, partition=partition, **fields)
        body = produce(self.talk, topic, {partition: data}, transactional_id=transactional_id)
        self.talk.ask(label, ApiKey.PRODUCE, version, **body)

    def write(self, topic: str, *values: bytes, partition: int = 0) -> None:
        """One batch in the transaction, whatever that takes; nothing is written down."""
        if not self.is_new:
            self.add(topic, partition)
        data = self.batch(topic, *values, partition=partition)
        body = produce(self.talk, topic, {partition: data}, transactional_id=self.id)
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            answer = self.talk.silently(ApiKey.PRODUCE, self.produce_version, **body)
            code = answer["responses"][0]["partition_responses"][0]["error_code"]
            if code == "NONE":
                return
            assert code in NOT_YET and time.monotonic() < deadline, answer

    def end(self, *, commit: bool, topics: tuple[str, ...] = (), partitions: int = 1) -> None:
        """The end of the transaction, and its markers on all partitions of the topics; until the coordinator
        has done with it."""
        deadline = time.monotonic() + TIMEOUT_S
        body = {"transactional_id": self.id, **self.who(), "committed": commit}
        while True:
            answer = self.talk.silently(END, 5 if self.is_new else 3, **body)
            if answer["error_code"] == "NONE":
                break
            assert answer["error_code"] in NOT_YET and time.monotonic() < deadline, answer
        if self.is_new:
            self.producer_id, self.epoch = answer["producer_id"], answer["producer_epoch"]
        for topic in topics:
            for partition in range(partitions):
                wait_for_marker(self.talk, topic, partition, self.producer_id)
        while not self.is_over():
            assert time.monotonic() < deadline

    def is_over(self) -> bool:
        answer = self.talk.silently(ApiKey.DESCRIBE_TRANSACTIONS, 0, transactional_ids=[self.id])
        return str(answer["transaction_states"][0]["transaction_state"]).startswith("Complete")


def wait_for_marker(talk: Talk, topic: str, partition: int, producer_id: int) -> None:
    """Until the producer has no transaction open there."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        wanted = [{"name": topic, "partition_indexes": [partition]}]
        answer = talk.silently(ApiKey.DESCRIBE_PRODUCERS, 0, topics=wanted)
        [found] = answer["topics"][0]["partitions"]
        if not any(
            each["current_txn_start_offset"] >= 0
            for each in found["active_producers"]
            if each["producer_id"] == producer_id
        ):
            return
        assert time.monotonic() < deadline, answer


def write_marker(
    talk: Talk,
    label: str,
    producer_id: int,
    epoch: int,
    topics: dict[str, list[int]],
    *,
    commit: bool = False,
    coordinator_epoch: int = 0,
    version: int = 2,
    transaction_version: int = 0,
) -> None:
    marker = {
        "producer_id": producer_id,
        "producer_epoch": epoch,
        "transaction_result": commit,
        "topics": [{"name": name, "partition_indexes": indexes} for name, indexes in topics.items()],
        "coordinator_epoch": coordinator_epoch,
        "transaction_version": transaction_version,
    }
    talk.ask(label, ApiKey.WRITE_TXN_MARKERS, version, markers=[marker])


TIMES = {"end": -1, "start": -2, "largest time": -3, "any time": 0}


def look(talk: Talk, label: str, topic: str, *, offset: int = 0, is_quick: bool = False) -> None:
    """What a reader of committed records, and one of all, sees of a partition. Where markers follow quickly,
    it is by chance which one has the largest time."""
    for name, level in (("committed", READ_COMMITTED), ("all", READ_UNCOMMITTED)):
        asked = {topic: [{"fetch_offset": offset}]}
        talk.ask(f"{label}, {name}", ApiKey.FETCH, 12, **fetch(talk, asked, isolation_level=level))
        for what, timestamp in TIMES.items():
            if is_quick and what == "largest time":
                continue
            wanted = [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": timestamp}]}]
            body = {"replica_id": -1, "isolation_level": level, "topics": wanted}
            talk.ask(f"{label}, {what} of {name}", ApiKey.LIST_OFFSETS, 8, **body)
    wanted = [{"name": topic, "partition_indexes": [0]}]
    talk.ask(f"{label}, producers", ApiKey.DESCRIBE_PRODUCERS, 0, topics=wanted)
