"""One classic group: members, generation, state, and the rules between them.

In: members that join, change and leave. Out: the leader, the common protocol, the group's record.
Does not know: requests, time (except timestamps passed in), other groups.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from barnabas.groups.basics.deadlines import Timer
from barnabas.groups.basics.shared_values import SharedValues
from barnabas.groups.classic.member import ClassicMember, Protocols, restored
from barnabas.groups.classic.members import Members
from barnabas.groups.classic.states import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    MAY_FOLLOW,
    STABLE,
    ClassicGroupState,
)
from barnabas.groups.classic.subscriptions import subscribed_topics
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.log_records.consumer_offsets import GroupMetadataValue
from barnabas.protocol.messages.join_group import JoinGroupResponse

CONSUMER_PROTOCOL_TYPE = "consumer"
NO_ENTRIES: dict[str, Any] = {}  # shared by all groups without entries; never written to
NO_TIMESTAMP = -1
JAVA_HASH_BUCKETS = 16


class Due(Enum):
    """Meaning of a group's deadline."""

    INITIAL_JOIN = "initial join"
    JOIN = "join"
    SYNC = "sync"


class PendingMember(Timer):
    """A member id that was given to a client, until the client joins with it or its time is over."""

    __slots__ = ("group", "member_id")

    def __init__(self, group: ClassicGroup, member_id: str) -> None:
        super().__init__()
        self.group = group
        self.member_id = member_id


class ClassicGroup(Timer):
    """Its deadline is the end of the join or sync phase in progress."""

    __slots__ = (
        "_subscribed",
        "_supported",
        "due",
        "generation",
        "group_id",
        "initial_delay_ms",
        "initial_remaining_ms",
        "joins_waiting",
        "leader",
        "members",
        "new_member_added",
        "pending",
        "previous_state",
        "protocol",
        "protocol_type",
        "state",
        "state_since_ms",
        "static_members",
        "unsynced",
    )

    def __init__(self, group_id: str, now_ms: int) -> None:
        super().__init__()
        self.due: Due | None = None  # the meaning of the deadline
        self.group_id = group_id
        self.state = EMPTY
        self.previous_state = DEAD
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None  # invariant: None or one of the members
        self.members = Members()
        # Empty for most groups most of the time, and then all share one object.
        self.static_members: dict[str, str] = NO_ENTRIES  # instance id -> member id
        self.pending: dict[str, PendingMember] = NO_ENTRIES  # ids given out that nobody has joined with yet
        self.unsynced: dict[str, None] = NO_ENTRIES  # members that have not synced, in order
        # protocol -> number of members; counted during a rebalance
        self._supported: dict[str, int] | None = None
        self.joins_waiting = 0  # invariant: the number of members with a join_token
        self.new_member_added = False
        self.initial_delay_ms = 0
        self.initial_remaining_ms = 0
        # Metadata not decoded yet (of one member, or of several), decoded topics, or unknown
        self._subscribed: bytes | tuple[bytes, ...] | frozenset[str] | None = None

    def transition(self, state: ClassicGroupState, now_ms: int) -> None:
        assert self.state in MAY_FOLLOW[state], f"{self.group_id}: {self.state.value} became {state.value}"
        self.previous_state = self.state
        self.state = state
        self.state_since_ms = now_ms
        if state is STABLE:
            self._supported = None

    # Members

    def add(self, member: ClassicMember, protocol_type: str) -> None:
        assert member.instance_id not in self.static_members
        if not self.members:
            self.protocol_type = protocol_type
        if member.instance_id is not None:
            self.set_static(member.instance_id, member.member_id)
        member.group_id = self.group_id
        if self.leader is None:
            self.leader = member.member_id
        self.members[member.member_id] = member
        self._count_protocols(member.protocols, 1)
        if member.join_token is not None:
            self.joins_waiting += 1
        self.remove_pending(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending id. Its waiting requests must have been answered before."""
        member = self.members.pop(member_id, None)
        if member is not None:
            assert member.join_token is None and member.sync_token is None
            self._count_protocols(member.protocols, -1)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
            member.cancel()
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        self.remove_pending(member_id)
        self.has_synced(member_id)

    def set_static(self, instance_id: str, member_id: str) -> None:
        if self.static_members is NO_ENTRIES:
            self.static_members = {}
        self.static_members[instance_id] = member_id

    def add_pending(self, member_id: str) -> PendingMember:
        """Give a new member id to a client."""
        if self.pending is NO_ENTRIES:
            self.pending = {}
        pending = self.pending[member_id] = PendingMember(self, member_id)
        return pending

    def remove_pending(self, member_id: str) -> None:
        pending = self.pending.pop(member_id, None)
        if pending is not None:
            pending.cancel()
            if not self.pending:
                self.pending = NO_ENTRIES

    def await_sync(self, member_id: str) -> None:
        if self.unsynced is NO_ENTRIES:
            self.unsynced = {}
        self.unsynced[member_id] = None

    def has_synced(self, member_id: str) -> None:
        self.unsynced.pop(member_id, None)
        if not self.unsynced:
            self.unsynced = NO_ENTRIES

    def replace_static(self, old_id: str, new_id: str) -> ClassicMember:
        """Give the same member a new id, in the same place."""
        old = self.members[old_id]
        client = (old.client_id, old.client_host)
        new = ClassicMember(
            new_id, old.instance_id, client, old.rebalance_timeout_ms, old.session_timeout_ms, old.protocols
        )
        new.assignment = old.assignment
        new.group_id = self.group_id
        old.cancel()
        del self.members[old_id]
        self.members[new_id] = new
        if self.leader == old_id:
            self.leader = new_id
        assert old.instance_id is not None
        self.set_static(old.instance_id, new_id)
        return new

    def change_protocols(self, member: ClassicMember, protocols: Protocols) -> None:
        self._count_protocols(member.protocols, -1)
        member.protocols = protocols
        self._count_protocols(protocols, 1)

    def check_member(self, member_id: str, instance_id: str | None) -> ClassicMember:
        if instance_id is not None:
            known = self.static_members.get(instance_id)
            if known is None:
                raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
            if known != member_id:
                raise KafkaError(ErrorCode.FENCED_INSTANCE_ID)
        member: ClassicMember | None = self.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)
        return member

    @property
    def have_all_joined(self) -> bool:
        return len(self.members) == self.joins_waiting and not self.pending

    @property
    def rebalance_timeout_ms(self) -> int:
        return max([0, *(member.rebalance_timeout_ms for member in self.members.values())])

    @property
    def is_simple(self) -> bool:
        """Whether nobody ever joined: the group only holds offsets."""
        return self.protocol_type is None and self.state is EMPTY and not self.pending

    # Leader, protocol, generation

    def elect_joined_leader(self) -> bool:
        """Ensure that the leader has joined: if not, the first member that did becomes leader. False if
        none did."""
        if self.leader is None:
            return False
        if self.members[self.leader].join_token is None:
            joined = (m.member_id for m in self.members.values() if m.join_token is not None)
            found = next(joined, None)
            if found is None:
                return False
            self.leader = found
        return True

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.state is EMPTY:
            return bool(protocol_type and protocols)
        size = len(self.members)
        return self.protocol_type == protocol_type and any(
            self.supported.get(name, 0) == size for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """The protocol that most members prefer, among those that all members support; ties as in Kafka."""
        size = len(self.members)
        candidates = {name for name, count in self.supported.items() if count == size}
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            votes[choice] = votes.get(choice, 0) + 1
        return max(sorted(votes, key=java_hash_order), key=votes.__getitem__)

    def next_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.protocol = self.select_protocol() if self.members else None
        self.store_subscriptions()
        self.transition(COMPLETING_REBALANCE if self.members else EMPTY, now_ms)
        self.unsynced = NO_ENTRIES

    @property
    def is_consumer_type(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    def store_subscriptions(self) -> None:
        """Keep the subscriptions of this generation until the next one begins."""
        if self.is_consumer_type and (self.protocol is not None or not self.members):
            found = {member.metadata(self.protocol): None for member in self.members.values()}
            self._subscribed = next(iter(found)) if len(found) == 1 else tuple(found)
        else:
            self._subscribed = None

    @property
    def subscribed(self) -> frozenset[str] | None:
        """The topics of this generation, decoded on first use; None if they are unknown."""
        found = self._subscribed
        if isinstance(found, bytes):
            found = (found,)
        if isinstance(found, tuple):
            found = self._subscribed = subscribed_topics(found)
        return found

    def is_subscribed(self, topic: str) -> bool:
        topics = self.subscribed
        return self.is_consumer_type if topics is None else topic in topics

    def members_for_leader(self) -> list[JoinGroupResponse.JoinGroupResponseMember]:
        """The members as JoinGroup's response shows them to the leader."""
        return [
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                metadata=member.metadata(self.protocol),
            )
            for member in self.members.values()
        ]

    # Records

    def value(self, assignments: dict[str, bytes]) -> GroupMetadataValue:
        return GroupMetadataValue(
            protocol_type=self.protocol_type or "",
            generation=self.generation,
            protocol=self.protocol,
            leader=self.leader,
            current_state_timestamp=self.state_since_ms,
            members=[
                member.record(self.protocol, assignments[member.member_id])
                for member in self.members.values()
            ],
        )

    @classmethod
    def restored(cls, group_id: str, value: GroupMetadataValue, shared: SharedValues) -> ClassicGroup:
        group = cls(group_id, value.current_state_timestamp)
        group.generation = value.generation
        group.protocol = shared.get(value.protocol)
        for record in value.members:
            member = restored(record, value.protocol, shared)
            if member.member_id not in group.members and member.instance_id not in group.static_members:
                group.add(member, value.protocol_type)
        group.state = STABLE if group.members else EMPTY
        group.protocol_type = shared.get(value.protocol_type) or None
        group.leader = value.leader if value.leader in group.members else next(iter(group.members), None)
        group.store_subscriptions()
        return group

    @property
    def supported(self) -> dict[str, int]:
        """The number of members that support each protocol."""
        supported = self._supported
        if supported is None:
            supported = self._supported = {}
            for member in self.members.values():
                self._count_protocols(member.protocols, 1)
        return supported

    def _count_protocols(self, protocols: Protocols, by: int) -> None:
        supported = self._supported
        if supported is None:
            return
        for name, _ in protocols:
            count = supported.get(name, 0) + by
            if count:
                supported[name] = count
            else:
                supported.pop(name, None)


def java_hash_order(text: str) -> int:
    """The bucket of a string in a small Java HashMap: Kafka counts votes in that order."""
    code = 0
    for letter in text:
        code = (31 * code + ord(letter)) & 0xFFFFFFFF
    return (code ^ code >> 16) % JAVA_HASH_BUCKETS
