"""A member of a classic group, eager or cooperative: joins, leads if elected, syncs, sends heartbeats,
commits.

In: a client and a group. Out: it reports all responses to the group's checks. It follows the protocol in the
simplest way: after any unexpected response it joins again.
Does not know: other members, except what a group leader receives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from barnabas.simulation.histories.group_member import (
    BEAT_S,
    COORDINATOR_ERRORS,
    LEAVE_CHANCE,
    REBALANCE_MS,
    RETRY_S,
    SESSION_MS,
    Group,
    Positions,
    find_coordinator,
)
from barnabas.simulation.world.client import SimulatedClient

EAGER, COOPERATIVE = "eager", "cooperative"
JOIN_TIMEOUT_MS = 20_000
SUBSCRIPTION_VERSION = 3


class ClassicMember:
    def __init__(self, client: SimulatedClient, group: Group, instance_id: str | None) -> None:
        self._client = client
        self._group = group
        self._partitions = 0  # number of the topic's partitions when it joined
        self._instance_id = instance_id
        self._is_cooperative = group.kind != EAGER
        self._protocol = COOPERATIVE if self._is_cooperative else EAGER
        self._positions = Positions(client, group)
        self._member_id = ""
        self._generation = -1
        self._owned: frozenset[int] = frozenset()

    async def run(self) -> None:
        self._own(())
        await find_coordinator(self._client, self._group.name)
        while True:
            if not self._is_cooperative:
                self._own(())
            if await self._join():
                await self._stay()
            await asyncio.sleep(RETRY_S)

    def _own(self, partitions: Iterable[int]) -> None:
        self._owned = frozenset(partitions)
        self._positions.keep(self._owned)
        self._group.owned[self._client.host] = self._owned

    def _lost(self, code: ErrorCode | None) -> None:
        """Handle an error after which the member owns no partitions."""
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID):
            self._own(())
            if code is not ErrorCode.ILLEGAL_GENERATION:
                self._member_id, self._generation = "", -1

    # -- joining -----------------------------------------------------------------------------------

    async def _join(self) -> bool:
        """Join and sync. True if the member has an assignment now."""
        group = self._group
        newest = group.generations.newest
        self._partitions = group.partitions()
        answer = await self._client.ask(
            JoinGroupRequest(
                group_id=group.name,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type="consumer",
                protocols=[
                    JoinGroupRequest.JoinGroupRequestProtocol(name=self._protocol, metadata=self._metadata())
                ],
            ),
            JoinGroupResponse,
            purpose="join",
            timeout_ms=JOIN_TIMEOUT_MS,
        )
        if answer is None:
            return False
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            return False
        self._lost(code)
        if code:
            return False
        self._member_id, self._generation = answer.member_id, answer.generation_id
        if group.has_leaders:
            group.generations.joined(newest, self._generation)
        plan: dict[str, frozenset[int]] = {}
        if answer.leader == self._member_id and not answer.skip_assignment:
            plan = self._plan(answer)
            group.generations.planned(self._generation, plan)
        is_assigned = await self._sync(plan)
        # A restarted process does not know which partitions the previous one was asked to revoke.
        return is_assigned and not (answer.skip_assignment and self._is_cooperative)

    def _metadata(self) -> bytes:
        part = ConsumerProtocolSubscription.TopicPartition
        owned = (
            [part(topic=self._group.topic, partitions=sorted(self._owned))] if self._is_cooperative else []
        )
        subscription = ConsumerProtocolSubscription(
            topics=[self._group.topic], owned_partitions=owned, generation_id=self._generation
        )
        return SUBSCRIPTION_VERSION.to_bytes(2, "big") + subscription.encode(SUBSCRIPTION_VERSION)

    def _plan(self, answer: JoinGroupResponse) -> dict[str, frozenset[int]]:
        """Assign partitions to members. Cooperative members keep theirs, up to their share; the rest is
        assigned in the next generation."""
        members = sorted(each.member_id for each in answer.members)
        shares: dict[str, list[int]] = {member: [] for member in members}
        taken: set[int] = set()
        if self._is_cooperative:
            share = -(-self._partitions // len(members))
            for member, owned in sorted(owners(answer).items()):
                shares[member] = [p for p in sorted(owned) if p < self._partitions][:share]
                taken |= owned
        for partition in range(self._partitions):
            if partition not in taken:
                shares[min(members, key=lambda member: (len(shares[member]), member))].append(partition)
        return {member: frozenset(share) for member, share in shares.items()}

    async def _sync(self, plan: dict[str, frozenset[int]]) -> bool:
        group = self._group
        answer = await self._client.ask(
            SyncGroupRequest(
                group_id=group.name,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
                protocol_type="consumer",
                protocol_name=self._protocol,
                assignments=[
                    SyncGroupRequest.SyncGroupRequestAssignment(
                        member_id=member, assignment=encode_assignment(group.topic, partitions)
                    )
                    for member, partitions in plan.items()
                ],
            ),
            SyncGroupResponse,
            purpose="join",
            timeout_ms=JOIN_TIMEOUT_MS,
        )
        if answer is None:
            return False
        code = ErrorCode(answer.error_code)
        self._lost(code)
        if code:
            return False
        assigned = decode_assignment(answer.assignment)
        if group.has_leaders:
            identity = self._instance_id or self._member_id
            group.generations.assigned(self._generation, identity, self._member_id, assigned)
        revoked = self._owned - assigned
        self._own(self._owned & assigned if self._is_cooperative else ())
        if revoked and self._is_cooperative:
            return False  # other members wait for this one: join again at once
        new = assigned - self._owned
        while new:
            fetched = await self._positions.fetch(new, None, -1)
            if fetched is ErrorCode.NONE:
                break
            if fetched is not None and fetched not in COORDINATOR_ERRORS:
                return False
            await asyncio.sleep(RETRY_S)
        self._own(assigned)
        return True

    # -- staying -----------------------------------------------------------------------------------

    async def _stay(self) -> None:
        """Send heartbeats and commits until a response shows that a rebalance is due."""
        group = self._group
        while True:
            await asyncio.sleep(self._client.rng.uniform(0.5, 1.5) * BEAT_S)
            newest = group.generations.newest
            code = await self._positions.commit(self._member_id, self._generation, self._instance_id)
            if code is ErrorCode.NONE and self._owned and group.has_leaders:
                group.generations.accepted(newest, self._generation, "a commit")
            if code in (None, ErrorCode.NONE) or code in COORDINATOR_ERRORS:
                code = await self._beat()
            self._lost(code)
            if code is not None and code is not ErrorCode.NONE and code not in COORDINATOR_ERRORS:
                return
            if group.partitions() != self._partitions:
                return  # the group leader must assign the new partitions
            if not group.is_calm and self._client.rng.random() < LEAVE_CHANCE:
                await self._leave()
                return

    async def _beat(self) -> ErrorCode | None:
        newest = self._group.generations.newest
        answer = await self._client.ask(
            HeartbeatRequest(
                group_id=self._group.name,
                generation_id=self._generation,
                member_id=self._member_id,
                group_instance_id=self._instance_id,
            ),
            HeartbeatResponse,
        )
        if answer is None:
            return None
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE and self._group.has_leaders:
            self._group.generations.accepted(newest, self._generation, "a heartbeat")
        return code

    async def _leave(self) -> None:
        member = LeaveGroupRequest.MemberIdentity(
            member_id=self._member_id, group_instance_id=self._instance_id, reason="enough"
        )
        self._own(())
        await self._client.ask(
            LeaveGroupRequest(group_id=self._group.name, members=[member]), LeaveGroupResponse
        )
        self._member_id, self._generation = "", -1
        await asyncio.sleep(self._client.rng.expovariate(1.0))


def owners(answer: JoinGroupResponse) -> dict[str, set[int]]:
    """The partitions that members claim to own. If two claim one, the newer generation wins."""
    claims: dict[int, tuple[int, str]] = {}
    for member in answer.members:
        said = ConsumerProtocolSubscription.decode(memoryview(member.metadata)[2:], SUBSCRIPTION_VERSION)
        for part in said.owned_partitions:
            for partition in part.partitions:
                claim = said.generation_id, member.member_id
                claims[partition] = max(claim, claims.get(partition, claim))
    found: dict[str, set[int]] = {}
    for partition, (_, member_id) in claims.items():
        found.setdefault(member_id, set()).add(partition)
    return found


def encode_assignment(topic: str, partitions: frozenset[int]) -> bytes:
    part = ConsumerProtocolAssignment.TopicPartition(topic=topic, partitions=sorted(partitions))
    return b"\0\0" + ConsumerProtocolAssignment(assigned_partitions=[part]).encode(0)


def decode_assignment(data: bytes) -> frozenset[int]:
    if not data:
        return frozenset()
    assignment = ConsumerProtocolAssignment.decode(memoryview(data)[2:], 0)
    return frozenset(p for part in assignment.assigned_partitions for p in part.partitions)
