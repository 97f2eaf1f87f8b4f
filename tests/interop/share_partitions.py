"""Members of a share group at the leader of a partition: fetches and acknowledgements with epochs that they
count, of a group whose state was initialized.

In: a `Talk` to write to. Out: the same requests with every broker.
Does not know: which broker it talks to, what the answers should be.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.protocol import ApiKey, uuid

from .requests import batch, produce
from .talk import SERVED_TIMEOUT_S, Talk

FETCH, ACKNOWLEDGE = ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
RECORD_LIMIT = 1
GROUP = 32  # type of resource
FINAL = -1
UNKNOWN = b"\x01" * 16

Acks = Sequence[tuple[int, int, Sequence[int]]]


class Member:
    """A member of a share group on the talk's connection. It counts the epochs of its session."""

    def __init__(self, talk: Talk, group: str, topic: str, name: str = "ann", partitions: int = 1) -> None:
        self.talk = talk
        self.group = group
        self.topic = topic
        self.name = name
        self.partitions = list(range(partitions))
        self.epoch = 0

    def body(self, epoch: int | None, acks: Mapping[int, Acks] | None, partitions: Sequence[int]) -> Any:
        named = list(partitions) + [each for each in acks or {} if each not in partitions]
        return {
            "group_id": self.group,
            "member_id": self.name,
            "share_session_epoch": self.epoch if epoch is None else epoch,
            "topics": [
                {
                    "topic_id": self.talk.topic_ids[self.topic],
                    "partitions": [
                        {
                            "partition_index": index,
                            "acknowledgement_batches": [
                                {"first_offset": first, "last_offset": last, "acknowledge_types": types}
                                for first, last, types in (acks or {}).get(index, ())
                            ],
                        }
                        for index in named
                    ],
                }
            ]
            if named
            else [],
        }

    def fetch(
        self,
        label: str,
        acks: Mapping[int, Acks] | None = None,
        *,
        epoch: int | None = None,
        version: int = 2,
        silent: bool = False,
        partitions: Sequence[int] | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        if partitions is None:
            partitions = self.partitions if not self.epoch else ()
        body = {
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": 1_000_000,
            "max_records": 500,
            "batch_size": 500,
            **self.body(epoch, acks, partitions),
            **more,
        }
        if version < 2:
            body.pop("share_acquire_mode", None)
        answer = (
            self.talk.silently(FETCH, version, **body)
            if silent
            else self.talk.ask(f"{self.name}: {label}", FETCH, version, **body)
        )
        if answer.get("error_code") == "NONE" and epoch is None:
            self.epoch += 1
        return answer

    def acknowledge(
        self,
        label: str,
        acks: Acks | Mapping[int, Acks],
        *,
        epoch: int | None = None,
        version: int = 2,
        **more: Any,
    ) -> None:
        by_partition = acks if isinstance(acks, Mapping) else {0: acks}
        body = {**self.body(epoch, by_partition, ()), **more}
        answer = self.talk.ask(f"{self.name}: {label}", ACKNOWLEDGE, version, **body)
        if answer.get("error_code") == "NONE" and epoch is None:
            self.epoch += 1


def share(
    talk: Talk, suffix: str = "topic", partitions: int = 1, start: int = 0, **configs: str
) -> tuple[str, str]:
    """A topic, and a group whose state is initialized."""
    topic, group = talk.topic(suffix, partitions=partitions, **configs), talk.name(f"{suffix}-group")
    initialize(talk, topic, group, partitions, start)
    return topic, group


def initialize(talk: Talk, topic: str, group: str, partitions: int = 1, start: int = 0) -> None:
    """Initialize the state of a group, as its coordinator does."""
    asked = {
        "group_id": group,
        "topics": [
            {
                "topic_id": talk.topic_ids[topic],
                "partitions": [
                    {"partition": n, "state_epoch": 1, "start_offset": start} for n in range(partitions)
                ],
            }
        ],
    }
    key = f"{group}:{uuid.to_text(talk.topic_ids[topic])}:0"
    deadline = time.monotonic() + SERVED_TIMEOUT_S
    while True:  # the topic of the state is made first
        talk.silently(ApiKey.FIND_COORDINATOR, 6, key_type=2, coordinator_keys=[key])
        answer = talk.silently(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, **asked)
        if all(p["error_code"] == "NONE" for t in answer["results"] for p in t["partitions"]):
            return
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)


def add(talk: Talk, topic: str, *sizes: int, partition: int = 0) -> None:
    """Produce batches with so many records each."""
    for size in sizes:
        talk.silently(ApiKey.PRODUCE, 9, **produce(talk, topic, {partition: batch(*[b"x"] * size)}))


def fetched(
    member: Member, label: str = "fetch", acks: Mapping[int, Acks] | None = None, **more: Any
) -> dict[str, Any]:
    return member.fetch(label, acks, max_wait_ms=5000, min_bytes=1, **more)


def patiently(member: Member, label: str) -> None:
    """Fetch until there are records, however long the share partition takes to load."""
    deadline = time.monotonic() + SERVED_TIMEOUT_S
    while not (answer := fetched(member, silent=True))["responses"]:
        assert time.monotonic() < deadline
    member.talk.note(label, answer)


def start_member(talk: Talk, group: str, topic: str, name: str = "ann", partitions: int = 1) -> Member:
    """A member whose first fetch was empty, so that the share partitions are loaded."""
    member = Member(talk, group, topic, name, partitions)
    member.fetch("begin", silent=True, max_records=0)
    return member


def configure(talk: Talk, group: str, **settings: object) -> None:
    """Settings of a group, with underscores for dots; wait until they apply."""
    values = {"share." + name.replace("_", "."): str(value) for name, value in settings.items()}
    resource = {"resource_type": GROUP, "resource_name": group}
    configs = [{"name": name, "config_operation": 0, "value": value} for name, value in values.items()]
    answer = talk.silently(
        ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[{**resource, "configs": configs}], validate_only=False
    )
    assert answer["responses"][0]["error_code"] == "NONE", answer
    deadline = time.monotonic() + SERVED_TIMEOUT_S
    while True:
        asked = [{**resource, "configuration_keys": list(values)}]
        found = talk.silently(ApiKey.DESCRIBE_CONFIGS, 4, resources=asked)["results"][0]["configs"]
        if {each["name"]: each["value"] for each in found} == values:
            return
        assert time.monotonic() < deadline, found
