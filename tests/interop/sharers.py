"""Members of share groups in a conversation: their sessions, fetches and acknowledgements.

In: a `Talk` to write to. Out: the same requests with every broker. A group begins with the first record of
its topics, and is used once its partitions are assigned: no answer depends on how long that takes.
Does not know: which broker it talks to, what the answers should be.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.protocol import NULL_UUID, ApiKey

from .members import group
from .requests import batch, produce
from .talk import Talk

BEAT, FETCH, ACKNOWLEDGE = ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
READY_TIMEOUT_S = 30.0
PATIENCE_MS = 10_000
PAUSE_S = 0.1
GROUP_RESOURCE = 32

Batch = tuple[int, int, Sequence[int]]
Topics = Mapping[str, Mapping[int, Sequence[Batch]]]


def member_id(talk: Talk, label: str) -> str:
    """An id in the form of Kafka's UUIDs, the same in every run."""
    digest = hashlib.sha256(f"{talk.prefix} {label}".encode()).digest()[:16]
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def load(talk: Talk, topic: str, batches: Sequence[int] = (3,), partition: int = 0) -> None:
    """Batches with so many records each."""
    number = 0
    for count in batches:
        data = batch(*(b"%d" % (number + n) for n in range(count)))
        number += count
        answer = talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, {partition: data}))
        assert answer["responses"][0]["partition_responses"][0]["error_code"] == "NONE", answer


def configure(talk: Talk, name: str, **configs: str) -> None:
    """Settings of a group, with underscores for dots."""
    wanted = [
        {"name": key.replace("_", "."), "config_operation": 0, "value": value}
        for key, value in configs.items()
    ]
    resource = {"resource_type": GROUP_RESOURCE, "resource_name": name, "configs": wanted}
    answer = talk.silently(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource])
    assert answer["responses"][0]["error_code"] == "NONE", answer


def share_group(talk: Talk, topics: Sequence[str], suffix: str = "group", **configs: str) -> str:
    """A share group whose partitions are initialized; its one member has left again."""
    name = group(talk, suffix)
    configure(talk, name, **({"share_auto_offset_reset": "earliest"} | configs))
    member = {"group_id": name, "member_id": member_id(talk, f"first of {suffix}")}
    epoch, found = 0, 0
    deadline = time.monotonic() + READY_TIMEOUT_S
    while found < len(topics):
        wanted = list(topics) if epoch == 0 else None
        answer = talk.silently(BEAT, 1, **member, member_epoch=epoch, subscribed_topic_names=wanted)
        assert answer["error_code"] == "NONE" or time.monotonic() < deadline, answer
        epoch = answer["member_epoch"]
        if answer["assignment"] is not None:
            found = len(answer["assignment"]["topic_partitions"])
        if found < len(topics):
            time.sleep(PAUSE_S)
        assert time.monotonic() < deadline, answer
    talk.silently(BEAT, 1, **member, member_epoch=-1)
    return name


class Sharer:
    """A member with a share session: `epoch` is that of its next request."""

    def __init__(self, talk: Talk, name: str, label: str = "ann", version: int = 2) -> None:
        self.talk, self.name, self.label, self.version = talk, name, label, version
        self.id = member_id(talk, label)
        self.epoch = 0

    def fetch(self, what: str, topics: Topics, **fields: Any) -> dict[str, Any]:
        """Fetch, write the answer down, and go on with the next epoch."""
        answer = self.talk.ask(
            f"{self.label} {what}", FETCH, self.version, **self.fetch_body(topics, **fields)
        )
        self._step(answer, fields)
        return answer

    def silently_fetch(self, topics: Topics, **fields: Any) -> dict[str, Any]:
        answer = self.talk.silently(FETCH, self.version, **self.fetch_body(topics, **fields))
        self._step(answer, fields)
        return answer

    def acknowledge(self, what: str, topics: Topics, **fields: Any) -> dict[str, Any]:
        body = self.acknowledge_body(topics, **fields)
        answer = self.talk.ask(f"{self.label} {what}", ACKNOWLEDGE, self.version, **body)
        self._step(answer, fields)
        return answer

    def _step(self, answer: dict[str, Any], fields: dict[str, Any]) -> None:
        if "share_session_epoch" not in fields and answer.get("error_code") == "NONE":
            self.epoch += 1

    def fetch_body(
        self, topics: Topics, forget: Mapping[str, Sequence[int]] | None = None, **fields: Any
    ) -> dict[str, Any]:
        defaults: dict[str, Any] = {
            "group_id": self.name,
            "member_id": self.id,
            "share_session_epoch": self.epoch,
            "max_wait_ms": PATIENCE_MS,
            "min_bytes": 1,
            "max_bytes": 50_000_000,
            "max_records": 500,
            "batch_size": 500,
        }
        ids = self.talk.topic_ids
        return {
            **defaults,
            **fields,
            "topics": self._topics(topics),
            "forgotten_topics_data": [
                {"topic_id": ids.get(name, NULL_UUID), "partitions": list(partitions)}
                for name, partitions in (forget or {}).items()
            ],
        }

    def acknowledge_body(self, topics: Topics, **fields: Any) -> dict[str, Any]:
        defaults: dict[str, Any] = {
            "group_id": self.name,
            "member_id": self.id,
            "share_session_epoch": self.epoch,
        }
        return {**defaults, **fields, "topics": self._topics(topics)}

    def _topics(self, topics: Topics) -> list[dict[str, Any]]:
        return [
            {
                "topic_id": self.talk.topic_ids.get(name, NULL_UUID),
                "partitions": [
                    {"partition_index": index, "acknowledgement_batches": list(map(batch_fields, batches))}
                    for index, batches in partitions.items()
                ],
            }
            for name, partitions in topics.items()
        ]

    def open(self, topic: str, acquired: int) -> None:
        """Open a session on partition 0 and fetch until so many records are acquired."""
        count, topics = 0, {topic: {0: ()}}
        deadline = time.monotonic() + READY_TIMEOUT_S
        while count < acquired:
            answer = self.silently_fetch(topics if self.epoch == 0 else {})
            assert answer["error_code"] == "NONE", answer
            count += acquired_in(answer)
            assert time.monotonic() < deadline, answer


def batch_fields(batch: Batch) -> dict[str, Any]:
    first, last, types = batch
    return {"first_offset": first, "last_offset": last, "acknowledge_types": list(types)}


def acquired_in(answer: dict[str, Any]) -> int:
    return sum(
        each["last_offset"] - each["first_offset"] + 1
        for topic in answer["responses"]
        for partition in topic["partitions"]
        for each in partition["acquired_records"]
    )
