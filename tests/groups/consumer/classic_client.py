"""A classic consumer with eager rebalancing: it revokes everything, joins, syncs, reads.

In: a `Host`. Out: joins, syncs and heartbeats. The leader assigns partitions in turns.
"""

from __future__ import annotations

from typing import Any

from barnabas.groups.consumer import embedded
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.heartbeat import HeartbeatRequest
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest

from ..host import Host, topic_id
from .group_client import Owned

VERSION = 3  # of subscriptions and assignments
PROTOCOL = "roundrobin"


class ClassicClient:
    def __init__(self, host: Host, group_id: str, name: str, topics: list[str]) -> None:
        self.host = host
        self.group_id = group_id
        self.name = name
        self.topics = topics
        self.member_id = ""
        self.generation = -1
        self.owned: Owned = {}
        self.is_waiting = False

    def held(self) -> Owned:
        return self.owned

    def revoke(self) -> None:
        """Nothing to do: everything was revoked before joining."""

    def beat(self) -> None:
        """Send the next request, as the last response requires."""
        if self.is_waiting:
            answer = self.host.answers.pop(self.name, None)
            if answer is None:
                return
            self.is_waiting = False
            self.take(answer)
        elif self.generation < 0:
            self.join()
        else:
            request = HeartbeatRequest(
                group_id=self.group_id, member_id=self.member_id, generation_id=self.generation
            )
            self.take(self.host.ask(self.name, request, 4))

    def join(self) -> None:
        self.owned = {}
        metadata = ConsumerProtocolSubscription(topics=self.topics).encode(VERSION)
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(
            name=PROTOCOL, metadata=VERSION.to_bytes(2, "big") + metadata
        )
        request = JoinGroupRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=30_000,
            protocol_type="consumer",
            protocols=[protocol],
        )
        self.take(self.host.ask(self.name, request, 9))

    def take(self, answer: Any) -> None:
        if answer is None:
            self.is_waiting = True
            return
        error = ErrorCode(answer.error_code)
        if error is ErrorCode.NONE:
            if isinstance(answer, JoinGroupResponse):
                self.member_id, self.generation = answer.member_id, answer.generation_id
                self.sync(answer)
            elif hasattr(answer, "assignment"):
                data = embedded.assignment(bytes(answer.assignment)).assigned_partitions
                self.owned = {topic.topic: set(topic.partitions) for topic in data}
            return
        self.owned, self.generation = {}, -1
        if error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.join()
        elif error is not ErrorCode.REBALANCE_IN_PROGRESS:
            self.member_id = ""

    def sync(self, joined: JoinGroupResponse) -> None:
        given: dict[str, dict[bytes, set[int]]] = {member.member_id: {} for member in joined.members}
        for name in sorted(self.host.image.topics.by_name):
            readers = [
                member.member_id
                for member in joined.members
                if name in embedded.subscription(bytes(member.metadata)).topics
            ]
            count = len(self.host.image.topics.by_name[name].partitions)
            for number in range(count if readers else 0):
                share = given[readers[number % len(readers)]]
                share.setdefault(topic_id(name), set()).add(number)
        request = SyncGroupRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(
                    member_id=member_id,
                    assignment=embedded.assignment_bytes(share, VERSION.to_bytes(2, "big"), self.host.image),
                )
                for member_id, share in given.items()
            ],
        )
        self.take(self.host.ask(self.name, request, 5))

    def leave(self) -> None:
        identity = LeaveGroupRequest.MemberIdentity(member_id=self.member_id)
        self.host.ask(self.name, LeaveGroupRequest(group_id=self.group_id, members=[identity]), 5)
        self.host.answers.pop(self.name, None)
        self.member_id, self.generation, self.owned, self.is_waiting = "", -1, {}, False
