"""Transcripts of consumer groups, and of groups that change between the protocols, run against one shard."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.consumer import embedded
from barnabas.metadata.image import Provenance
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.offset_commit import OffsetCommitRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest
from replication.transcript import replay

from ..host import Host, changes_between, image_of, topic_id
from .group_client import Owned, assignment, beat

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))
TOPICS = {"t": 4, "u": 2}
ALL_VERSIONS = {"join": 9, "sync": 5, "heartbeat": 4, "leave": 5, "commit": 9, "describe": 1, "list": 5}
SUBSCRIPTION_VERSION = 3

Words = dict[str, str]


def owned(text: str) -> Owned:
    """`t:0,1+u:0` as partitions by topic; `none` as no partitions."""
    if text == "none":
        return {}
    topics = (part.split(":") for part in text.split("+"))
    return {name: set(map(int, numbers.split(","))) for name, numbers in topics}


def partitions_text(partitions: Owned | None) -> str:
    if partitions is None:
        return ""
    shown = (f"{name}:{','.join(map(str, sorted(partitions[name])))}" for name in sorted(partitions))
    return "+".join(shown) or "none"


class ConsumerTranscript:
    def __init__(self) -> None:
        self.begin({})

    def begin(self, words: Words) -> None:
        values: dict[str, Any] = {
            name: int(value) if value.isdigit() else value for name, value in words.items()
        }
        self.host = Host(GroupSettings(**{"initial_rebalance_delay_ms": 0, **values}), TOPICS)
        self.names: dict[str, str] = {}
        self.offset = 0
        self.change_topics(TOPICS)

    def answer(self, verb: str, words: Words) -> str:
        host = self.host
        said = ""
        if verb == "begin":
            self.begin(words)
            host = self.host
        elif verb == "wait":
            host.advance(int(words["ms"]))
        elif verb == "restart":
            host.restart()
        elif verb == "topics":
            self.change_topics({name: int(count) for name, count in words.items()})
        else:
            said = getattr(self, f"say_{verb}")(dict(words))
            host.advance(0)
        records = [self.record(entry.key, entry.value) for entry in host.new_records]
        host.new_records.clear()
        waited = [f"{client} heard {self.shown(answer)}" for client, answer in host.answers.items()]
        host.answers.clear()
        return "\n".join([*records, *waited, *([said] if said else [])]) or (
            "silence" if verb == "wait" else ""
        )

    def change_topics(self, topics: dict[str, int]) -> None:
        """Apply new metadata at a later offset: expressions record the offset that they searched."""
        host = self.host
        self.offset += 1
        image = replace(image_of(topics), provenance=Provenance(offset=self.offset))
        changes = changes_between(host.image, image)
        host.image = image
        assert host.shard.metadata_changed(image, changes, host.now_ms) == []

    # Commands of members and administrators

    def say_beat(self, words: Words) -> str:
        member = words.pop("as")
        epoch = int(words.pop("epoch"))
        group = words.pop("group", "g")
        options: dict[str, Any] = {"topics": words.pop("topics").split(",")} if "topics" in words else {}
        if "owns" in words:
            options["owned"] = owned(words.pop("owns"))
        for number in ("version", "timeout_ms"):
            if number in words:
                options[number] = int(words.pop(number))
        if epoch == 0:
            options = {"owned": {}, "timeout_ms": 5000, **options}
        options.update(words)
        reply = beat(self.host, group, member, epoch, **options)
        if reply.error_code:
            return f"{member}: {ErrorCode(reply.error_code).name} {reply.error_message}"
        if member != reply.member_id and reply.member_id:
            self.names[reply.member_id] = f"{member}*"
        parts = partitions_text(assignment(self.host, reply))
        return f"{member}: epoch {reply.member_epoch}{' ' + parts if parts else ''}"

    def say_describe(self, words: Words) -> str:
        request = ConsumerGroupDescribeRequest(group_ids=[words.get("group", "g")])
        reply = self.host.ask("admin", request, 1)
        assert isinstance(reply, ConsumerGroupDescribeResponse)
        [group] = reply.groups
        if group.error_code:
            return f"{ErrorCode(group.error_code).name} {group.error_message}"
        lines = [
            f"{group.group_id} {group.group_state} {group.group_epoch}/{group.assignment_epoch} "
            f"{group.assignor_name}"
        ]
        for member in sorted(group.members, key=lambda member: self.name(member.member_id)):
            now, target = (
                partitions_text({topic.topic_name: set(topic.partitions) for topic in side.topic_partitions})
                for side in (member.assignment, member.target_assignment)
            )
            kind = "classic " if member.member_type == 0 else ""
            lines.append(
                f"  {kind}{self.name(member.member_id)} epoch {member.member_epoch} {now} -> {target}"
            )
        return "\n".join(lines)

    def say_list(self, words: Words) -> str:
        reply: Any = self.host.ask("admin", ListGroupsRequest(), ALL_VERSIONS["list"])
        return "\n".join(f"{group.group_id} {group.group_type} {group.group_state}" for group in reply.groups)

    def say_commit(self, words: Words) -> str:
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        request = OffsetCommitRequest(
            group_id=words.get("group", "g"),
            member_id=words["as"],
            generation_id_or_member_epoch=int(words["epoch"]),
            topics=[
                topic(
                    name=name,
                    partitions=[
                        topic.OffsetCommitRequestPartition(partition_index=number, committed_offset=1)
                        for number in sorted(numbers)
                    ],
                )
                for name, numbers in owned(words["of"]).items()
            ],
        )
        reply: Any = self.host.ask(words["as"], request, int(words.get("version", ALL_VERSIONS["commit"])))
        self.host.new_records.clear()
        errors = {ErrorCode(each.error_code).name for topic in reply.topics for each in topic.partitions}
        return f"{words['as']}: {' '.join(sorted(errors))}"

    # Commands of members of the classic protocol

    def say_join(self, words: Words) -> str:
        client = words["as"]
        subscription = ConsumerProtocolSubscription(
            topics=words.get("topics", "t").split(","),
            owned_partitions=[
                ConsumerProtocolSubscription.TopicPartition(topic=name, partitions=sorted(numbers))
                for name, numbers in owned(words.get("owns", "none")).items()
            ],
        )
        metadata = SUBSCRIPTION_VERSION.to_bytes(2, "big") + subscription.encode(SUBSCRIPTION_VERSION)
        request = JoinGroupRequest(
            group_id="g",
            member_id=self.id_of(client) if words.get("member") != "none" else "",
            group_instance_id=words.get("instance"),
            session_timeout_ms=10_000,
            rebalance_timeout_ms=5000,
            protocol_type=words.get("type", "consumer"),
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(
                    name=name, metadata=b"?" if words.get("malformed") else metadata
                )
                for name in words.get("protocols", "range").split(",")
            ],
        )
        return self.ask(client, request, "join")

    def say_sync(self, words: Words) -> str:
        client = words["as"]
        assignments = []
        for share in words.get("give", "").split(";") if "give" in words else ():
            member, partitions = share.split("=")
            given = {topic_id(name): numbers for name, numbers in owned(partitions).items()}
            data = embedded.assignment_bytes(given, SUBSCRIPTION_VERSION.to_bytes(2, "big"), self.host.image)
            assignments.append(
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=self.id_of(member), assignment=data)
            )
        request = SyncGroupRequest(
            group_id="g",
            member_id=self.id_of(client),
            generation_id=int(words["generation"]),
            group_instance_id=words.get("instance"),
            protocol_type="consumer",
            protocol_name=words.get("protocol", "range"),
            assignments=assignments,
        )
        return self.ask(client, request, "sync")

    def say_heartbeat(self, words: Words) -> str:
        client = words["as"]
        request = HeartbeatRequest(
            group_id="g",
            member_id=self.id_of(client),
            generation_id=int(words["generation"]),
            group_instance_id=words.get("instance"),
        )
        return self.ask(client, request, "heartbeat")

    def say_leave(self, words: Words) -> str:
        client = words["as"]
        identity = LeaveGroupRequest.MemberIdentity(
            member_id="" if words.get("member") == "none" else self.id_of(client),
            group_instance_id=words.get("instance"),
        )
        return self.ask(client, LeaveGroupRequest(group_id="g", members=[identity]), "leave")

    def ask(self, client: str, request: Message, verb: str) -> str:
        answer = self.host.ask(client, request, ALL_VERSIONS[verb])
        return f"{client} waits" if answer is None else f"{client}: {self.shown(answer)}"

    def shown(self, answer: Any) -> str:
        member_id = getattr(answer, "member_id", "")
        if member_id and member_id not in self.names:
            count = sum(name.startswith("c") for name in self.names.values()) + 1
            self.names[member_id] = f"c{count}"
        if getattr(answer, "members", None) and hasattr(answer.members[0], "error_code"):
            return " ".join(ErrorCode(member.error_code).name for member in answer.members)
        words = [ErrorCode(answer.error_code).name]
        if member_id:
            words.append(self.name(member_id))
        if hasattr(answer, "generation_id") and not answer.error_code:
            words.append(f"generation {answer.generation_id} {answer.protocol_name}")
        if getattr(answer, "assignment", b""):
            partitions = embedded.assignment(bytes(answer.assignment)).assigned_partitions
            words.append(partitions_text({topic.topic: set(topic.partitions) for topic in partitions}))
        return " ".join(words)

    def id_of(self, name: str) -> str:
        return next((id for id, known in self.names.items() if known == name), "" if name[0] == "c" else name)

    def name(self, member_id: str) -> str:
        return self.names.get(member_id, member_id)

    # Records

    def record(self, key: Any, value: Any) -> str:
        kind = type(key).__name__.removeprefix("ConsumerGroup").removesuffix("Key")
        of = getattr(key, "member_id", None) or getattr(key, "regular_expression", None)
        words = [f"  {kind}", *([self.name(of)] if of else [])]
        if value is None:
            return " ".join([*words, "gone"])
        for field in ("epoch", "assignment_epoch", "member_epoch", "generation", "state"):
            number = getattr(value, field, 0)
            if number:
                words.append(f"{field}={number}")
        if hasattr(value, "subscribed_topic_names"):
            words.append(f"topics={','.join(value.subscribed_topic_names)}")
            words += [f"regex={value.subscribed_topic_regex}"] if value.subscribed_topic_regex else []
            words += ["classic"] if value.classic_member_metadata is not None else []
        if kind == "RegularExpression":
            words.append(f"topics={','.join(value.topics)}")
        for field in ("topic_partitions", "assigned_partitions", "partitions_pending_revocation"):
            if hasattr(value, field):
                words.append(f"{'- ' if 'pending' in field else ''}{self.partitions(getattr(value, field))}")
        return " ".join(words)

    def partitions(self, topics: Any) -> str:
        by_id = {topic_id(name): name for name in ("t", "u", "v")}
        return partitions_text({by_id[topic.topic_id]: set(topic.partitions) for topic in topics})


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_consumer_groups_behave_as_their_transcripts_say(path: Path) -> None:
    replay(path, ConsumerTranscript().answer)


def test_there_are_transcripts_of_consumer_groups() -> None:
    assert len(TRANSCRIPTS) >= 4
