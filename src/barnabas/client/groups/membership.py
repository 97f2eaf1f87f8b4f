"""One member of a classic group as a state machine: its requests, and the meaning of every response.

In: responses of the coordinator, and the offers of the member. Out: requests, and after each response the
next step. Pure. Does not know: coordinators, time, the content of metadata and assignments.

    OUTSIDE --join--> JOINING --joined--> SYNCING --synced--> STABLE
       ^                 ^                   |                   |
       |                 +--- rebalance -----+-------------------+
       +--- left, or the coordinator does not know the member ---+
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from barnabas.client.core.errors import error_of
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

NO_GENERATION = -1
SESSION_TIMEOUT_MS = 45_000
REBALANCE_TIMEOUT_MS = 300_000
HEARTBEAT_INTERVAL_MS = 3_000
MEMBERS_SINCE = 3  # the first version of LeaveGroup that names several members


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """A group, and how a member takes part in it (Kafka's consumer settings of the same names)."""

    group_id: str
    protocol_type: str = "consumer"
    instance_id: str | None = None  # static membership
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    rebalance_timeout_ms: int = REBALANCE_TIMEOUT_MS
    heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS


@dataclass(frozen=True, slots=True)
class Offer:
    """A protocol that the member supports, with its metadata for the leader."""

    protocol: str
    metadata: bytes


@dataclass(frozen=True, slots=True)
class JoinedMember:
    """A member of the group, as its leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class State(Enum):
    OUTSIDE = auto()
    JOINING = auto()  # a JoinGroup request is on its way: the coordinator expects no heartbeats
    SYNCING = auto()
    STABLE = auto()


class Step(Enum):
    """The next step of the member after a response."""

    GO_ON = auto()
    JOIN = auto()  # a rebalance: join again with the same member id
    LOST = auto()  # the coordinator gave the assignment to others, or may do so now: join again


class Membership:
    """Each method that takes a response raises KafkaError for a code that joining again does not help."""

    def __init__(self, settings: GroupSettings) -> None:
        self.settings = settings
        self.state = State.OUTSIDE
        self.member_id = ""
        self.generation = NO_GENERATION
        self.protocol = ""
        self.leader = ""
        self.members: Sequence[JoinedMember] = ()  # for the leader alone
        self.assigns = False  # whether this member is the leader and computes an assignment

    def join_request(self, offers: Iterable[Offer], reason: str = "") -> JoinGroupRequest:
        self.state = State.JOINING
        settings = self.settings
        return JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=settings.instance_id,
            protocol_type=settings.protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=offer.protocol, metadata=offer.metadata)
                for offer in offers
            ],
            reason=reason or None,
        )

    def joined(self, response: JoinGroupResponse) -> Step:
        if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = response.member_id
            return Step.JOIN
        step = self.step_after(response.error_code, "JoinGroup")
        if step is Step.GO_ON:
            self.state = State.SYNCING
            self.member_id, self.generation = response.member_id, response.generation_id
            self.protocol, self.leader = response.protocol_name or "", response.leader
            self.members = [
                JoinedMember(each.member_id, each.group_instance_id, bytes(each.metadata))
                for each in response.members
            ]
            self.assigns = response.leader == response.member_id and not response.skip_assignment
        return step

    def sync_request(self, assignments: Mapping[str, bytes]) -> SyncGroupRequest:
        """The assignments of all members from the one that `assigns`, nothing from the others."""
        return SyncGroupRequest(
            group_id=self.settings.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
            protocol_type=self.settings.protocol_type,
            protocol_name=self.protocol,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )

    def synced(self, response: SyncGroupResponse) -> Step:
        step = self.step_after(response.error_code, "SyncGroup")
        if step is Step.GO_ON:
            self.state = State.STABLE
        return step

    def heartbeat_request(self) -> HeartbeatRequest:
        return HeartbeatRequest(
            group_id=self.settings.group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self.settings.instance_id,
        )

    def handle_heartbeat_response(self, request: HeartbeatRequest, response: HeartbeatResponse) -> Step:
        """A response is old news when the member joins again meanwhile: the join tells the same."""
        is_current = (request.generation_id, request.member_id) == (self.generation, self.member_id)
        if self.state is not State.STABLE or not is_current:
            return Step.GO_ON
        return self.step_after(response.error_code, "Heartbeat")

    def leave_request(self, version: int, reason: str = "") -> LeaveGroupRequest:
        settings = self.settings
        if version < MEMBERS_SINCE:
            return LeaveGroupRequest(group_id=settings.group_id, member_id=self.member_id)
        who = LeaveGroupRequest.MemberIdentity(
            member_id=self.member_id, group_instance_id=settings.instance_id, reason=reason or None
        )
        return LeaveGroupRequest(group_id=settings.group_id, members=[who])

    def left(self) -> None:
        self._forget_member()

    def session_ended(self) -> None:
        """No response came for the session timeout: the coordinator may have removed the member."""
        self._forget_generation()

    def step_after(self, code: int, api: str) -> Step:
        """The meaning of an error code, also of a commit's."""
        if not code:
            return Step.GO_ON
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            return Step.JOIN
        error = error_of(code, f"{api} of group {self.settings.group_id}: {error_of(code).code.message}")
        self._forget_generation()
        if code == ErrorCode.ILLEGAL_GENERATION:
            return Step.LOST
        self._forget_member()
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            return Step.LOST
        raise error

    def _forget_generation(self) -> None:
        self.state = State.OUTSIDE
        self.generation = NO_GENERATION
        self.leader = ""
        self.members = ()
        self.assigns = False

    def _forget_member(self) -> None:
        self._forget_generation()
        self.member_id = ""


def coordinator_problem(code: int, group_id: str) -> KafkaError | None:
    """The error of a response for which the request is sent again, to the coordinator that is found then."""
    if not code or not error_of(code).code.retriable:
        return None
    return error_of(code, f"the coordinator of group {group_id}: {error_of(code).code.message}")
