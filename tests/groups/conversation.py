"""Turns commands of the transcripts into requests of clients, and their responses into lines.

In: `join as=a group=g ...` and the like, for a side: our shard, or a broker of Apache Kafka to compare with.
Out: lines. Member ids are shown as `a.1`: the first that client `a` got.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

from barnabas.protocol import NULL_UUID, ErrorCode, Message
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.offset_delete import OffsetDeleteRequest
from barnabas.protocol.messages.offset_fetch import OffsetFetchRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest

GENERATED = re.compile(r"([\w.]*)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")

Words = dict[str, str]


class Side(Protocol):
    """Serves the requests of a transcript."""

    def ask(self, client: str, request: Message, version: int) -> Message | None:
        """The response, or None while the client waits."""

    def heard(self) -> dict[str, Message]:
        """The responses to waiting clients since the last call."""

    def topic_id(self, name: str) -> bytes: ...


class Conversation:
    def __init__(self, side: Side) -> None:
        self.side = side
        self.ids: dict[str, str] = {}  # shown name -> real id
        self.names: dict[str, str] = {}
        self.own: dict[str, str] = {}  # client -> its latest id
        self.generation: dict[str, int] = {}
        self.uses: dict[str, str] = {}  # client -> its waiting request

    def answer(self, verb: str, words: Words) -> str:
        """The result of a command, followed by what other clients get because of it."""
        client = words.get("as", "admin")
        version = int(words["version"]) if "version" in words else VERSIONS[verb]
        request = getattr(self, "request_" + verb)(words, version)
        self.uses[client] = verb
        answer = self.side.ask(client, request, version)
        said = [f"{client} waits" if answer is None else self.shown(client, answer)]
        return "\n".join(said + self.overheard())

    def overheard(self) -> list[str]:
        return [self.shown(client, answer) for client, answer in self.side.heard().items()]

    # Names

    def name(self, member_id: str) -> str:
        """The shown form of a member id; unknown ids are shown as they are."""
        if member_id not in self.names:
            made = GENERATED.fullmatch(member_id)
            if made is None:
                return member_id or "nobody"
            known = sum(name.startswith(made[1] + ".") for name in self.ids)
            self.names[member_id] = f"{made[1]}.{known + 1}"
            self.ids[self.names[member_id]] = member_id
        return self.names[member_id]

    def member(self, words: Words) -> str:
        asked = words.get("member")
        if asked is None:
            return self.own.get(words.get("as", ""), "")
        return "" if asked == "none" else self.ids.get(asked, asked)

    # Requests

    def request_join(self, words: Words, version: int) -> Message:
        names = [name for name in words.get("protocols", "range").split(",") if name]
        topics = words.get("topics", "t").split(",")
        metadata = b"\0\0" + ConsumerProtocolSubscription(topics=topics).encode(0)
        return JoinGroupRequest(
            group_id=words.get("group", "g"),
            member_id=self.member(words),
            group_instance_id=words.get("instance"),
            session_timeout_ms=int(words.get("session", 10_000)),
            rebalance_timeout_ms=int(words.get("rebalance", 3_000)),
            protocol_type=words.get("type", "consumer"),
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata) for name in names
            ],
        )

    def request_sync(self, words: Words, version: int) -> Message:
        given = dict(part.split(":") for part in words.get("give", "").split(",") if part)
        part = SyncGroupRequest.SyncGroupRequestAssignment
        client = words.get("as", "")
        return SyncGroupRequest(
            group_id=words.get("group", "g"),
            member_id=self.member(words),
            generation_id=int(words.get("generation", self.generation.get(client, 0))),
            group_instance_id=words.get("instance"),
            protocol_type=None if words.get("type") == "none" else words.get("type", "consumer"),
            protocol_name=words.get("protocol", "range"),
            assignments=[
                part(member_id=self.ids.get(name, name), assignment=text.encode())
                for name, text in given.items()
            ],
        )

    def request_heartbeat(self, words: Words, version: int) -> Message:
        return HeartbeatRequest(
            group_id=words.get("group", "g"),
            member_id=self.member(words),
            generation_id=int(words.get("generation", self.generation.get(words.get("as", ""), 0))),
            group_instance_id=words.get("instance"),
        )

    def request_leave(self, words: Words, version: int) -> Message:
        if version < 3:
            return LeaveGroupRequest(group_id=words.get("group", "g"), member_id=self.member(words))
        identity = LeaveGroupRequest.MemberIdentity
        if "members" not in words:
            one = identity(member_id=self.member(words), group_instance_id=words.get("instance"))
            return LeaveGroupRequest(group_id=words.get("group", "g"), members=[one])
        found = []
        for text in words["members"].split(","):
            name, _, instance = text.partition("/")
            member_id = self.ids.get(name, name)
            found.append(identity(member_id=member_id, group_instance_id=instance or None))
        return LeaveGroupRequest(group_id=words.get("group", "g"), members=found)

    def request_commit(self, words: Words, version: int) -> Message:
        """`offsets=t:0=5,t:1=7`; topics by id from version 10 on."""
        request_topic = OffsetCommitRequest.OffsetCommitRequestTopic
        topics: dict[str, Any] = {}
        for text in words.get("offsets", "t:0=5").split(","):
            where, offset = text.split("=")
            name, partition = where.split(":")
            topic = topics.setdefault(name, request_topic())
            topic.name, topic.topic_id = (name, NULL_UUID) if version < 10 else ("", self.side.topic_id(name))
            topic.partitions.append(
                request_topic.OffsetCommitRequestPartition(
                    partition_index=int(partition),
                    committed_offset=int(offset),
                    committed_metadata="x" * int(words.get("metadata", 0)),
                )
            )
        client = words.get("as", "")
        return OffsetCommitRequest(
            group_id=words.get("group", "g"),
            member_id=self.member(words),
            generation_id_or_member_epoch=int(words.get("generation", self.generation.get(client, -1))),
            group_instance_id=words.get("instance"),
            retention_time_ms=int(words.get("keep", -1)),
            topics=list(topics.values()),
        )

    def request_fetch(self, words: Words, version: int) -> Message:
        """`of=t:0,t:1`, or all."""
        wanted: dict[str, list[int]] = {}
        for text in words.get("of", "").split(","):
            if text:
                name, partition = text.split(":")
                wanted.setdefault(name, []).append(int(partition))
        groups = words.get("group", "g").split(",")
        if version < 8:
            old = OffsetFetchRequest.OffsetFetchRequestTopic
            topics = [old(name=name, partition_indexes=found) for name, found in wanted.items()]
            return OffsetFetchRequest(group_id=groups[0], topics=topics or None)
        of_group = OffsetFetchRequest.OffsetFetchRequestGroup
        new_topics = [
            of_group.OffsetFetchRequestTopics(
                name=name if version < 10 else "",
                topic_id=NULL_UUID if version < 10 else self.side.topic_id(name),
                partition_indexes=found,
            )
            for name, found in wanted.items()
        ]
        return OffsetFetchRequest(
            groups=[of_group(group_id=group, topics=new_topics or None) for group in groups],
            require_stable="stable" in words,
        )

    def request_forget(self, words: Words, version: int) -> Message:
        topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
        found: dict[str, Any] = {}
        for text in words["of"].split(","):
            name, partition = text.split(":")
            index = topic.OffsetDeleteRequestPartition(partition_index=int(partition))
            found.setdefault(name, topic(name=name)).partitions.append(index)
        return OffsetDeleteRequest(group_id=words.get("group", "g"), topics=list(found.values()))

    def request_delete(self, words: Words, version: int) -> Message:
        return DeleteGroupsRequest(groups_names=words["groups"].split(","))

    def request_list(self, words: Words, version: int) -> Message:
        states, types = words.get("states"), words.get("types")
        return ListGroupsRequest(
            states_filter=states.split(",") if states else [], types_filter=types.split(",") if types else []
        )

    def request_describe(self, words: Words, version: int) -> Message:
        return DescribeGroupsRequest(groups=words.get("groups", "g").split(","))

    # Responses

    def shown(self, client: str, answer: Any) -> str:
        verb = self.uses[client]
        return f"{client}: {getattr(self, 'show_' + verb)(client, answer)}"

    def show_join(self, client: str, answer: Any) -> str:
        given = self.name(answer.member_id)
        if GENERATED.fullmatch(answer.member_id):
            self.own[client] = answer.member_id
        if answer.error_code:
            return f"{error(answer.error_code)} {given}"
        self.generation[client] = answer.generation_id
        members = " ".join(sorted(self.name(member.member_id) for member in answer.members))
        skips = " skips assignment" if answer.skip_assignment else ""
        shown = f"generation {answer.generation_id} {answer.protocol_name} leader {self.name(answer.leader)}"
        return f"{given} in {shown}{f' [{members}]' if members else ''}{skips}"

    def show_sync(self, client: str, answer: Any) -> str:
        return error(answer.error_code) if answer.error_code else f"assigned {answer.assignment.decode()!r}"

    def show_heartbeat(self, client: str, answer: Any) -> str:
        return error(answer.error_code)

    def show_leave(self, client: str, answer: Any) -> str:
        told = [
            f"{self.name(member.member_id)}/{member.group_instance_id or '-'} {error(member.error_code)}"
            for member in answer.members
        ]
        return ", ".join(told) or error(answer.error_code)

    def show_commit(self, client: str, answer: Any) -> str:
        return " ".join(
            f"{self.topic(topic)}:{partition.partition_index} {error(partition.error_code)}"
            for topic in answer.topics
            for partition in topic.partitions
        )

    def show_fetch(self, client: str, answer: Any) -> str:
        if not answer.groups:
            return self.offsets(answer.topics, answer.error_code)
        return " | ".join(
            f"{group.group_id} {self.offsets(group.topics, group.error_code)}" for group in answer.groups
        )

    def offsets(self, topics: Any, code: int) -> str:
        if code:
            return error(code)
        return " ".join(
            f"{self.topic(topic)}:{partition.partition_index}="
            + (error(partition.error_code) if partition.error_code else str(partition.committed_offset))
            for topic in sorted(topics, key=self.topic)
            for partition in topic.partitions
        )

    def topic(self, topic: Any) -> str:
        if topic.name:
            return str(topic.name)
        return next((name for name in "tu" if self.side.topic_id(name) == topic.topic_id), "?")

    def show_forget(self, client: str, answer: Any) -> str:
        return error(answer.error_code) if answer.error_code else self.show_commit(client, with_ids(answer))

    def show_delete(self, client: str, answer: Any) -> str:
        found = sorted(f"{group.group_id} {error(group.error_code)}" for group in answer.results)
        return ", ".join(found)

    def show_list(self, client: str, answer: Any) -> str:
        found = sorted(
            f"{group.group_id} {group.protocol_type or '-'} {group.group_state} {group.group_type}".strip()
            for group in answer.groups
        )
        return ", ".join(found) or "nothing"

    def show_describe(self, client: str, answer: Any) -> str:
        return ", ".join(
            f"{group.group_id} {group.group_state} {group.protocol_type or '-'} {group.protocol_data or '-'}"
            + "".join(
                f" {self.name(member.member_id)}({member.member_assignment.decode()})"
                for member in sorted(group.members, key=lambda member: self.name(member.member_id))
            )
            + (f" {error(group.error_code)}" if group.error_code else "")
            for group in answer.groups
        )


class with_ids:
    """Responses of OffsetDelete have no topic ids; they are shown like commits."""

    def __init__(self, answer: Any) -> None:
        self.topics = answer.topics


def error(code: int) -> str:
    return "ok" if code == 0 else ErrorCode(code).name


VERSIONS = {
    "join": 9,
    "sync": 5,
    "heartbeat": 4,
    "leave": 5,
    "commit": 9,
    "fetch": 9,
    "forget": 0,
    "delete": 2,
    "list": 5,
    "describe": 6,
}
