"""Members of groups in a conversation: requests that wait on connections of their own, and what they hold.

In: a `Talk` to write to. Out: the same requests with every broker, whoever chose the member ids.
Does not know: which broker it talks to, what the answers should be.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping
from typing import Any

from barnabas.protocol import ApiKey
from barnabas.protocol.apis import request_header_version

from .frames import Wire
from .talk import Talk, decode, encode

READY_TIMEOUT_S = 10.0
SESSION_MS = 20_000
PROTOCOL_TYPE = "consumer"
NOT_YET = ("COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR")


def group(talk: Talk, suffix: str = "group") -> str:
    """A name for a group, once the coordinator is there to serve it."""
    name = talk.name(suffix)
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        found = talk.silently(ApiKey.FIND_COORDINATOR, 2, key=name)
        if found["error_code"] == "NONE":
            # Heartbeats are answered kindly while groups are loaded: this one says how it is.
            wanted = [{"group_id": name, "topics": None}]
            [asked] = talk.silently(ApiKey.OFFSET_FETCH, 9, groups=wanted)["groups"]
            if asked["error_code"] not in NOT_YET:
                return name
        assert time.monotonic() < deadline, found


def protocols(*names: str, metadata: bytes = b"metadata of ") -> list[dict[str, Any]]:
    """Assignors and a subscription to no topic each; `metadata` is the members' own part of it."""
    return [{"name": name, "metadata": subscription(user_data=metadata + name.encode())} for name in names]


def subscription(*topics: str, user_data: bytes | None = None) -> bytes:
    """A consumer's metadata (version 0 of its protocol)."""
    names = b"".join(len(name).to_bytes(2, "big") + name.encode() for name in topics)
    size = len(user_data) if user_data is not None else -1
    return b"\0\0" + struct.pack(">i", len(topics)) + names + struct.pack(">i", size) + (user_data or b"")


def join_body(name: str, member_id: str = "", **fields: Any) -> dict[str, Any]:
    """A JoinGroup request of an ordinary consumer, `fields` apart."""
    ordinary: dict[str, Any] = {
        "group_id": name,
        "session_timeout_ms": SESSION_MS,
        "rebalance_timeout_ms": SESSION_MS,
        "member_id": member_id,
        "protocol_type": PROTOCOL_TYPE,
        "protocols": protocols("range"),
    }
    return ordinary | fields


class Member:
    """Somebody in a group, with a connection of their own: what they ask may wait for others.

    `id` and `generation` (or member epoch) are what the broker last told them.
    """

    def __init__(self, talk: Talk, name: str, label: str, **fields: Any) -> None:
        self.talk, self.name, self.label = talk, name, label
        self.fields = fields
        self.id = ""
        self.generation = -1
        self.wire = Wire(talk.port)
        self._waiting: list[tuple[str, ApiKey, int, int]] = []

    def send(self, what: str, api: ApiKey, version: int, **values: Any) -> None:
        body = encode(api, version, values)
        sent = self.wire.send(api, version, request_header_version(api, version), body)
        self._waiting.append((what, api, version, sent))

    def answer(self, *, silent: bool = False) -> dict[str, Any]:
        """The answer to the oldest request that waits, written down."""
        what, api, version, sent = self._waiting.pop(0)
        answer = decode(api, version, self.wire.receive(), sent)
        if not silent:
            self.talk.note(f"{api.name} v{version}: {self.label} {what}", answer)
        return answer

    def ask(self, what: str, api: ApiKey, version: int, **values: Any) -> dict[str, Any]:
        self.send(what, api, version, **values)
        return self.answer()

    # The classic protocol.

    def send_join(self, what: str = "joins", version: int = 9, **fields: Any) -> None:
        """With a member id first where the version wants one; the answer is left to `joined`."""
        body = join_body(self.name, self.id, **(self.fields | fields))
        if not self.id and version >= 4 and not body.get("group_instance_id"):
            self.send("asks for an id", ApiKey.JOIN_GROUP, version, **body)
            body["member_id"] = self.id = self.answer()["member_id"]
        self.send(what, ApiKey.JOIN_GROUP, version, **body)

    def joined(self) -> dict[str, Any]:
        answer = self.answer()
        if answer["error_code"] == "NONE":
            self.id, self.generation = answer["member_id"], answer["generation_id"]
        return answer

    def join(self, what: str = "joins", version: int = 9, **fields: Any) -> dict[str, Any]:
        self.send_join(what, version, **fields)
        return self.joined()

    def send_sync(
        self,
        what: str = "syncs",
        version: int = 5,
        assignments: Mapping[str, bytes] | None = None,
        **fields: Any,
    ) -> None:
        body = {
            "group_id": self.name,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.fields.get("group_instance_id"),
            "protocol_type": PROTOCOL_TYPE,
            "protocol_name": "range",
            "assignments": [
                {"member_id": who, "assignment": part} for who, part in (assignments or {}).items()
            ],
        }
        self.send(what, ApiKey.SYNC_GROUP, version, **(body | fields))

    def sync(
        self,
        what: str = "syncs",
        version: int = 5,
        assignments: Mapping[str, bytes] | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        self.send_sync(what, version, assignments, **fields)
        return self.answer()

    def beat(self, what: str = "beats", version: int = 4, **fields: Any) -> dict[str, Any]:
        body = {
            "group_id": self.name,
            "generation_id": self.generation,
            "member_id": self.id,
            "group_instance_id": self.fields.get("group_instance_id"),
        }
        return self.ask(what, ApiKey.HEARTBEAT, version, **(body | fields))

    def leave(self, what: str = "leaves", version: int = 5, **fields: Any) -> dict[str, Any]:
        leaving = {"member_id": self.id, "group_instance_id": self.fields.get("group_instance_id")}
        body = {"group_id": self.name, "member_id": self.id, "members": [leaving]}
        return self.ask(what, ApiKey.LEAVE_GROUP, version, **(body | fields))

    def commit(
        self, what: str, topic: str, offset: int, version: int = 9, partition: int = 0, **fields: Any
    ) -> dict[str, Any]:
        body = {
            "group_id": self.name,
            "generation_id_or_member_epoch": self.generation,
            "member_id": self.id,
            "group_instance_id": self.fields.get("group_instance_id"),
            "topics": [commit_topic(self.talk, topic, {partition: offset})],
        }
        return self.ask(what, ApiKey.OFFSET_COMMIT, version, **(body | fields))

    # The consumer protocol.

    def heartbeat(
        self, what: str, version: int = 1, epoch: int | None = None, **fields: Any
    ) -> dict[str, Any]:
        """ConsumerGroupHeartbeat; `epoch` other than the one last told where given."""
        body = {
            "group_id": self.name,
            "member_id": self.id,
            "member_epoch": self.generation if epoch is None else epoch,
            **self.fields,
            **fields,
        }
        answer = self.ask(what, ApiKey.CONSUMER_GROUP_HEARTBEAT, version, **body)
        if answer["error_code"] == "NONE":
            self.id, self.generation = answer["member_id"], answer["member_epoch"]
        return answer

    def close(self) -> None:
        self.wire.close()


def commit_topic(
    talk: Talk, topic: str, offsets: Mapping[int, int], metadata: str | None = ""
) -> dict[str, Any]:
    return {
        "name": topic,
        "topic_id": talk.topic_ids.get(topic, b"\x01" * 16),
        "partitions": [
            {"partition_index": n, "committed_offset": offset, "committed_metadata": metadata}
            for n, offset in offsets.items()
        ],
    }


def fetch_offsets(
    talk: Talk,
    label: str,
    name: str,
    topics: Mapping[str, list[int]] | None,
    version: int = 9,
    **fields: Any,
) -> dict[str, Any]:
    """OffsetFetch of one group, in the shape of the version; None asks for all topics."""
    body: dict[str, Any] = {}
    if version < 8:
        body["group_id"] = name
        body["topics"] = _topics(talk, topics, with_id=False)
    else:
        own = {key: fields.pop(key) for key in ("member_id", "member_epoch") if key in fields}
        body["groups"] = [{"group_id": name, "topics": _topics(talk, topics, with_id=True), **own}]
    return talk.ask(label, ApiKey.OFFSET_FETCH, version, **(body | fields))


def _topics(
    talk: Talk, topics: Mapping[str, list[int]] | None, *, with_id: bool
) -> list[dict[str, Any]] | None:
    if topics is None:
        return None
    return [
        {
            "name": topic,
            "partition_indexes": list(partitions),
            **({"topic_id": talk.topic_ids.get(topic, b"\x01" * 16)} if with_id else {}),
        }
        for topic, partitions in topics.items()
    ]


def describe(talk: Talk, label: str, name: str, version: int = 6) -> dict[str, Any]:
    return talk.ask(label, ApiKey.DESCRIBE_GROUPS, version, groups=[name])


def wait_for_state(talk: Talk, name: str, state: str, members: int | None = None) -> None:
    """Waits until a classic group is in a state, with so many members; nothing is written down."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while True:
        [found] = talk.silently(ApiKey.DESCRIBE_GROUPS, 5, groups=[name])["groups"]
        if found["group_state"] == state and members in (None, len(found["members"])):
            return
        assert time.monotonic() < deadline, found


def everyone_joins(members: list[Member], **fields: Any) -> None:
    """All rejoin a group that rebalances; the transcript has their answers in the order of the list."""
    for member in members:
        member.send_join(**fields)
    for member in members:
        member.joined()


def everyone_syncs(members: list[Member], leader: Member) -> None:
    """The leader gives everybody a part named after them."""
    parts = {member.id: f"part of {member.label}".encode() for member in members}
    for member in members:
        if member is not leader:
            member.send_sync()
    leader.send_sync("syncs as the leader", assignments=parts)
    for member in members:
        member.answer()
