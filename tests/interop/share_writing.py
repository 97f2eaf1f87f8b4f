"""Writes share state over the wire and reads it back from the files, on either broker."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from barnabas.protocol import ApiKey, uuid
from barnabas.records.batch import headers
from barnabas.records.record import iter_records
from barnabas.shares.state.records import Entry, decode

from .talk import Talk

TIMEOUT_S = 30.0
SHARE = 2
NOT_READY = {
    "NOT_COORDINATOR",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "UNKNOWN_TOPIC_OR_PARTITION",
}
FIELDS = "first_offset", "last_offset", "delivery_state", "delivery_count"
Batch = tuple[int, int, int, int]


class SharePartition:
    """One share partition of a group, at whichever broker `talk` is with."""

    def __init__(self, talk: Talk, group: str, topic_id: bytes, partition: int = 0) -> None:
        self.talk = talk
        self.group = group
        self.topic_id = topic_id
        self.partition = partition

    def ask(self, api: ApiKey, version: int, **data: Any) -> dict[str, Any]:
        """The result of the partition, as soon as there is a coordinator."""
        partitions = [{"partition": self.partition} | data]
        topics = [{"topic_id": self.topic_id, "partitions": partitions}]
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            key = f"{self.group}:{uuid.to_text(self.topic_id)}:{self.partition}"
            answer = self.talk.silently(api, version, group_id=self.group, topics=topics)
            [result] = answer["results"][0]["partitions"]
            if result["error_code"] not in NOT_READY:
                found: dict[str, Any] = result
                return found
            self.talk.silently(ApiKey.FIND_COORDINATOR, 6, key_type=SHARE, coordinator_keys=[key])
            assert time.monotonic() < deadline, answer

    def initialize(self, epoch: int = 1, start: int = 0) -> None:
        answer = self.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, state_epoch=epoch, start_offset=start)
        assert answer["error_code"] == "NONE", answer

    def write(self, start: int, *batches: Batch, complete: int = 0, epochs: tuple[int, int] = (1, 0)) -> None:
        answer = self.ask(
            ApiKey.WRITE_SHARE_GROUP_STATE,
            1,
            state_epoch=epochs[0],
            leader_epoch=epochs[1],
            start_offset=start,
            delivery_complete_count=complete,
            state_batches=[dict(zip(FIELDS, each, strict=True)) for each in batches],
        )
        assert answer["error_code"] == "NONE", answer

    def read(self, leader_epoch: int = -1) -> tuple[int, int, list[Batch]]:
        """State epoch, start offset, batches."""
        answer = self.ask(ApiKey.READ_SHARE_GROUP_STATE, 0, leader_epoch=leader_epoch)
        assert answer["error_code"] == "NONE", answer
        batches = [tuple(each[name] for name in FIELDS) for each in answer["state_batches"]]
        return answer["state_epoch"], answer["start_offset"], batches

    def summary(self) -> tuple[int, int]:
        answer = self.ask(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1)
        return answer["start_offset"], answer["delivery_complete_count"]

    def delete(self) -> None:
        answer = self.ask(ApiKey.DELETE_SHARE_GROUP_STATE, 0)
        assert answer["error_code"] == "NONE", answer


def make_topic(talk: Talk, name: str, partitions: int = 1) -> bytes:
    wanted = {"name": name, "num_partitions": partitions, "replication_factor": 1}
    answer = talk.silently(ApiKey.CREATE_TOPICS, 7, topics=[wanted], timeout_ms=30_000)
    found: bytes = answer["topics"][0]["topic_id"]
    return found


def records_in(data: Path, group: str) -> list[tuple[bytes, bytes | None, Entry]]:
    """The records of a group in the files of `__share_group_state`, as bytes and decoded."""
    found = []
    for path in sorted(data.glob("__share_group_state-*/*.log")):
        content = path.read_bytes()
        for position, _ in headers(content):
            for record in iter_records(content, position=position):
                assert record.key is not None
                entry = decode(record.key, record.value)
                assert entry is not None
                if entry.key.group_id == group:
                    found.append((bytes(record.key), record.value, entry))
    return found
