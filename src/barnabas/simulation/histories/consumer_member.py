"""A member of a group of the consumer protocol (KIP-848): sends heartbeats, revokes and adopts partitions.

In: a client and a group. Out: it reports all responses to the group's checks. After a lost response it sends
a full heartbeat.
Does not know: other members.
"""

from __future__ import annotations

import asyncio

from barnabas.protocol import ErrorCode
from barnabas.protocol import uuid as uuids
from barnabas.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
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
from barnabas.simulation.models.group_checks import Member
from barnabas.simulation.world.client import SimulatedClient

CONSUMER = "consumer"
LEAVE_EPOCH = -1
FORGOTTEN = (
    ErrorCode.FENCED_MEMBER_EPOCH,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.GROUP_ID_NOT_FOUND,  # the coordinator lost the group in a power loss
)


class ConsumerMember:
    def __init__(self, client: SimulatedClient, group: Group, topic_id: bytes) -> None:
        self._client = client
        self._group = group
        self._topic_id = topic_id
        self._member_id = uuids.to_text(client.rng.randbytes(16))
        self._me: Member = group.ownership.join(f"{client.host}/{client.lives}")
        self._positions = Positions(client, group)
        self._epoch = 0
        self._is_full = True

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

    async def _beat(self, epoch: int | None = None) -> ConsumerGroupHeartbeatResponse | None:
        me, group = self._me, self._group
        sent_epoch = self._epoch if epoch is None else epoch
        part = ConsumerGroupHeartbeatRequest.TopicPartitions
        owned = [part(topic_id=self._topic_id, partitions=sorted(me.owned))] if me.owned else []
        is_full = self._is_full or sent_epoch == 0
        request = ConsumerGroupHeartbeatRequest(
            group_id=group.name,
            member_id=self._member_id,
            member_epoch=sent_epoch,
            rebalance_timeout_ms=REBALANCE_MS if is_full else -1,
            subscribed_topic_names=[group.topic] if is_full else None,
            topic_partitions=owned if is_full else None,
        )
        self._is_full = True  # until the response arrives
        sent_s = self._client.world.loop.time()
        response = await self._client.ask(request, ConsumerGroupHeartbeatResponse)
        if response is not None and not response.error_code and epoch is None:
            self._is_full = False
            if group.is_trusted:
                group.ownership.good_heartbeat(me, sent_s, sent_epoch, response.member_epoch)
            self._epoch = response.member_epoch
        return response

    async def _answered(self, response: ConsumerGroupHeartbeatResponse) -> None:
        code = ErrorCode(response.error_code)
        if code in FORGOTTEN:
            self._rejoin()
        elif code:
            await asyncio.sleep(RETRY_S)
        elif response.assignment is not None:
            parts = response.assignment.topic_partitions
            await self._reconcile(
                {p for part in parts if part.topic_id == self._topic_id for p in part.partitions}
            )

    async def _reconcile(self, target: set[int]) -> None:
        """First revoke partitions, then adopt new ones; the next, full heartbeat reports both."""
        me, group = self._me, self._group
        revoked = me.owned - target
        if revoked:
            await self._commit()
            group.ownership.released(me, target)
            self._positions.keep(me.owned)
        new = target - me.owned
        if new:
            if group.is_trusted:
                group.ownership.assigned(me, sorted(new))
            else:
                me.owned |= new
            await self._positions.fetch(new, self._member_id, self._epoch)
        if revoked or new:
            self._is_full = True
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
        self._epoch = 0
        self._is_full = True
        self._positions.keep(())
        self._show()

    async def _leave(self) -> None:
        self._me.has_left = True
        self._me.owned.clear()
        self._show()
        await self._beat(LEAVE_EPOCH)
        await asyncio.sleep(self._client.rng.expovariate(1.0))
        self._member_id = uuids.to_text(self._client.rng.randbytes(16))
        self._me = self._group.ownership.join(f"{self._client.host}/{self._client.lives}/{self._member_id}")
        self._rejoin()
