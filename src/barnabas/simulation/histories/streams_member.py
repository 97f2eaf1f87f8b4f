"""A member of a streams group (KIP-1071): sends heartbeats, runs active and standby tasks, commits.

In: a client and a group. Out: it reports all responses to the group's checks. The topology has one
subtopology that reads one topic, so a task is named by its partition. After a lost response the member
reports all tasks.
Does not know: other members.
"""

from __future__ import annotations

import asyncio

from barnabas.protocol import ErrorCode
from barnabas.protocol import uuid as uuids
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest as Request
from barnabas.protocol.messages.streams_group_heartbeat import StreamsGroupHeartbeatResponse as Response
from barnabas.simulation.histories.group_member import (
    BEAT_S,
    COORDINATOR_ERRORS,
    LEAVE_CHANCE,
    REBALANCE_MS,
    RETRY_S,
    Group,
    Positions,
    find_coordinator,
)
from barnabas.simulation.models.group_checks import Copies, Member
from barnabas.simulation.world.client import SimulatedClient

STREAMS = "streams"
LEAVE_EPOCH = -1
SUBTOPOLOGY = "0"
FORGOTTEN = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,  # the coordinator lost the group in a power loss
)


def topology(group: str, topic: str, *, has_store: bool) -> Request.Topology:
    stores = [Request.TopicInfo(name=f"{group}-store-changelog")] if has_store else []
    subtopology = Request.Topology.Subtopology(
        subtopology_id=SUBTOPOLOGY, source_topics=[topic], state_changelog_topics=stores
    )
    return Request.Topology(subtopologies=[subtopology])


class StreamsMember:
    def __init__(
        self, client: SimulatedClient, group: Group, process: str, copies: Copies, *, has_store: bool
    ) -> None:
        self._client = client
        self._group = group
        self._process = process
        self._copies = copies
        self._topology = topology(group.name, group.topic, has_store=has_store)
        self._member_id = uuids.to_text(client.rng.randbytes(16))
        self._me: Member = self._join_as(f"{client.host}/{client.lives}")
        self._positions = Positions(client, group)
        self._epoch = 0
        self._reports = True

    def _join_as(self, name: str) -> Member:
        member = self._group.ownership.join(name)
        self._copies.join(member, self._process)
        return member

    async def run(self) -> None:
        self._show()
        await find_coordinator(self._client, self._group.name)
        while True:
            response = await self._beat()
            if response is not None:
                await self._answered(response)
            await asyncio.sleep(self._client.rng.uniform(0.5, 1.5) * BEAT_S)
            if self._epoch > 0:
                await self._commit()
            if not self._group.is_calm and self._client.rng.random() < LEAVE_CHANCE:
                await self._leave()

    def _show(self) -> None:
        self._group.owned[self._client.host] = frozenset(self._me.owned)
        self._copies.shown[self._client.host] = frozenset(self._copies.of(self._me))

    async def _beat(self, epoch: int | None = None) -> Response | None:
        me, group = self._me, self._group
        sent_epoch = self._epoch if epoch is None else epoch
        joins = sent_epoch == 0
        reports = joins or self._reports
        request = Request(
            group_id=group.name,
            member_id=self._member_id,
            member_epoch=sent_epoch,
            rebalance_timeout_ms=REBALANCE_MS if joins else -1,
            topology=self._topology if joins else None,
            process_id=self._process if joins else None,
            client_tags=[] if joins else None,
            active_tasks=task_ids(me.owned) if reports else None,
            standby_tasks=task_ids(self._copies.of(me)) if reports else None,
            warmup_tasks=[] if reports else None,
        )
        self._reports = True  # until the response arrives
        sent_s = self._client.world.loop.time()
        response = await self._client.ask(request, Response)
        if response is not None and not response.error_code and epoch is None:
            self._reports = False
            if group.is_trusted:
                group.ownership.good_heartbeat(me, sent_s, sent_epoch, response.member_epoch)
            self._epoch = response.member_epoch
        return response

    async def _answered(self, response: Response) -> None:
        code = ErrorCode(response.error_code)
        if code in FORGOTTEN:
            self._rejoin()
        elif code:
            await asyncio.sleep(RETRY_S)
        elif response.active_tasks is not None:
            await self._reconcile(numbers(response.active_tasks), numbers(response.standby_tasks or []))

    async def _reconcile(self, active: set[int], standby: set[int]) -> None:
        """First stop tasks, then start new ones; the next heartbeat reports both."""
        me, group = self._me, self._group
        revoked = me.owned - active
        if revoked:
            await self._commit()
            group.ownership.released(me, active)
            self._positions.keep(me.owned)
        self._copies.keep(me, standby)
        new = active - me.owned
        if new:
            if group.is_trusted:
                group.ownership.assigned(me, sorted(new))
            else:
                me.owned |= new
            await self._positions.fetch(new, self._member_id, self._epoch)
        self._copies.assigned(me, standby, is_checked=group.is_trusted)
        self._reports = True
        self._show()

    async def _commit(self) -> None:
        missing = self._me.owned - self._positions.offsets.keys()
        if missing:
            await self._positions.fetch(missing, self._member_id, self._epoch)
        me, sent_s = self._me, self._client.world.loop.time()
        has_any = bool(self._positions.offsets)
        code = await self._positions.commit(self._member_id, self._epoch)
        if code is ErrorCode.NONE and has_any and self._group.is_trusted:
            self._group.ownership.good_commit(me, sent_s)
        if code in FORGOTTEN:
            self._rejoin()
        elif code in COORDINATOR_ERRORS:
            await asyncio.sleep(RETRY_S)

    def _rejoin(self) -> None:
        self._group.ownership.rejoin(self._me)
        self._copies.keep(self._me, set())
        self._epoch = 0
        self._reports = True
        self._positions.keep(())
        self._show()

    async def _leave(self) -> None:
        self._me.has_left = True
        self._me.owned.clear()
        self._copies.keep(self._me, set())
        self._show()
        await self._beat(LEAVE_EPOCH)
        await asyncio.sleep(self._client.rng.expovariate(1.0))
        self._member_id = uuids.to_text(self._client.rng.randbytes(16))
        self._me = self._join_as(f"{self._client.host}/{self._client.lives}/{self._member_id}")
        self._rejoin()


def task_ids(partitions: set[int]) -> list[Request.TaskIds]:
    return [Request.TaskIds(subtopology_id=SUBTOPOLOGY, partitions=sorted(partitions))] if partitions else []


def numbers(tasks: list[Response.TaskIds]) -> set[int]:
    return {number for each in tasks for number in each.partitions}
