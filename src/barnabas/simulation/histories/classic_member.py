"""A member of a classic group, eager or cooperative: joins, leads if elected, syncs, sends heartbeats,
commits.

In: a client and a group. Out: it reports all responses to the group's checks. It follows the protocol in the
simplest way: after any unexpected response it joins again.
Does not know: other members, except what a group leader receives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from barnabas.client.groups.membership import GroupSettings, JoinedMember, Membership, Offer, Step
from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.protocol.messages.heartbeat import HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupResponse
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from barnabas.protocol.messages.sync_group import SyncGroupResponse
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

R = TypeVar("R", bound=Message)

EAGER, COOPERATIVE = "eager", "cooperative"
JOIN_TIMEOUT_MS = 20_000
LEAVE_VERSION = LeaveGroupRequest.schema.versions.last
SUBSCRIPTION_VERSION = 3


class ClassicMember:
    def __init__(self, client: SimulatedClient, group: Group, instance_id: str | None) -> None:
        self._client = client
        self._group = group
        self._partitions = 0  # number of the topic's partitions when it joined
        self._is_cooperative = group.kind != EAGER
        self._protocol = COOPERATIVE if self._is_cooperative else EAGER
        self._positions = Positions(client, group)
        self._membership = Membership(
            GroupSettings(
                group.name,
                instance_id=instance_id,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
            )
        )
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

    def _step_after(self, response: R | None, read: Callable[[R], Step]) -> Step | None:
        """The next step after a response; None if there is none, or none of the group's coordinator."""
        if response is None or response.error_code in COORDINATOR_ERRORS:  # type: ignore[attr-defined]
            return None
        try:
            step = read(response)
        except KafkaError:
            step = Step.LOST
        if step is Step.LOST:
            self._own(())
        return step

    # -- joining -----------------------------------------------------------------------------------

    async def _join(self) -> bool:
        """Join and sync. True if the member has an assignment now."""
        group, membership = self._group, self._membership
        newest = group.generations.newest
        self._partitions = group.partitions()
        response = await self._client.ask(
            membership.join_request([Offer(self._protocol, self._metadata())]),
            JoinGroupResponse,
            purpose="join",
            timeout_ms=JOIN_TIMEOUT_MS,
        )
        if self._step_after(response, membership.joined) is not Step.GO_ON or response is None:
            return False
        if group.has_leaders:
            group.generations.joined(newest, membership.generation)
        plan: dict[str, frozenset[int]] = {}
        if membership.assigns:
            plan = self._plan(membership.members)
            group.generations.planned(membership.generation, plan)
        is_assigned = await self._sync(plan)
        # A restarted process does not know which partitions the previous one was asked to revoke.
        return is_assigned and not (response.skip_assignment and self._is_cooperative)

    def _metadata(self) -> bytes:
        part = ConsumerProtocolSubscription.TopicPartition
        owned = (
            [part(topic=self._group.topic, partitions=sorted(self._owned))] if self._is_cooperative else []
        )
        subscription = ConsumerProtocolSubscription(
            topics=[self._group.topic], owned_partitions=owned, generation_id=self._membership.generation
        )
        return SUBSCRIPTION_VERSION.to_bytes(2, "big") + subscription.encode(SUBSCRIPTION_VERSION)

    def _plan(self, joined: Sequence[JoinedMember]) -> dict[str, frozenset[int]]:
        """Assign partitions to members. Cooperative members keep theirs, up to their share; the rest is
        assigned in the next generation."""
        members = sorted(each.member_id for each in joined)
        shares: dict[str, list[int]] = {member: [] for member in members}
        taken: set[int] = set()
        if self._is_cooperative:
            share = -(-self._partitions // len(members))
            for member, owned in sorted(owners(joined).items()):
                shares[member] = [p for p in sorted(owned) if p < self._partitions][:share]
                taken |= owned
        for partition in range(self._partitions):
            if partition not in taken:
                shares[min(members, key=lambda member: (len(shares[member]), member))].append(partition)
        return {member: frozenset(share) for member, share in shares.items()}

    async def _sync(self, plan: dict[str, frozenset[int]]) -> bool:
        group, membership = self._group, self._membership
        assignments = {
            member: encode_assignment(group.topic, partitions) for member, partitions in plan.items()
        }
        response = await self._client.ask(
            membership.sync_request(assignments),
            SyncGroupResponse,
            purpose="join",
            timeout_ms=JOIN_TIMEOUT_MS,
        )
        if self._step_after(response, membership.synced) is not Step.GO_ON or response is None:
            return False
        assigned = decode_assignment(response.assignment)
        if group.has_leaders:
            member_id = membership.member_id
            identity = membership.settings.instance_id or member_id
            group.generations.assigned(membership.generation, identity, member_id, assigned)
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
        group, membership = self._group, self._membership
        while True:
            await asyncio.sleep(self._client.rng.uniform(0.5, 1.5) * BEAT_S)
            newest, generation = group.generations.newest, membership.generation
            code = await self._positions.commit(
                membership.member_id, generation, membership.settings.instance_id
            )
            if code is ErrorCode.NONE and self._owned and group.has_leaders:
                group.generations.accepted(newest, generation, "a commit")
            response = None if code is None else HeartbeatResponse(error_code=code)
            step = self._step_after(response, lambda found: membership.step_after(found.error_code, "commit"))
            if step in (None, Step.GO_ON):
                step = await self._beat()
            if step not in (None, Step.GO_ON):
                return
            if group.partitions() != self._partitions:
                return  # the group leader must assign the new partitions
            if not group.is_calm and self._client.rng.random() < LEAVE_CHANCE:
                await self._leave()
                return

    async def _beat(self) -> Step | None:
        membership, generations = self._membership, self._group.generations
        newest, generation = generations.newest, membership.generation
        request = membership.heartbeat_request()
        response = await self._client.ask(request, HeartbeatResponse)
        if response is not None and response.error_code == ErrorCode.NONE and self._group.has_leaders:
            generations.accepted(newest, generation, "a heartbeat")
        return self._step_after(response, lambda beat: membership.handle_heartbeat_response(request, beat))

    async def _leave(self) -> None:
        request = self._membership.leave_request(LEAVE_VERSION, "enough")
        self._own(())
        await self._client.ask(request, LeaveGroupResponse)
        self._membership.left()
        await asyncio.sleep(self._client.rng.expovariate(1.0))


def owners(members: Iterable[JoinedMember]) -> dict[str, set[int]]:
    """The partitions that members claim to own. If two claim one, the newer generation wins."""
    claims: dict[int, tuple[int, str]] = {}
    for member in members:
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
