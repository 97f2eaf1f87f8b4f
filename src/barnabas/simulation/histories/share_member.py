"""A member of a share group: sends heartbeats, fetches from the leaders of its partitions, and acknowledges.

In: a client and a group. Out: it accepts, releases, rejects and renews records, some of them too late, lets
locks run out, ends sessions without a word, and leaves. All of it is reported to the group's checks. When
faults are over it accepts everything.
Does not know: other members.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from barnabas.client.core.acknowledgements import GAP, AcknowledgeType, batches_of
from barnabas.client.core.address import Address
from barnabas.client.core.connection import ConnectionCore
from barnabas.client.core.errors import ClientError
from barnabas.client.core.share_fetching import SharePartitionData, read_acquired
from barnabas.client.core.share_session import AcquireMode, Place, ShareLimits, ShareSession
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, Message
from barnabas.protocol import uuid as uuids
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeResponse
from barnabas.protocol.messages.share_fetch import ShareFetchResponse
from barnabas.protocol.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.simulation.histories.group_member import BEAT_S, RETRY_S, find_coordinator
from barnabas.simulation.models.share_checks import Delivery, SharedPartition, Tenure
from barnabas.simulation.world.client import R, SimulatedClient
from barnabas.simulation.world.history import Wrong

PURPOSE = "share"
LEAVE_EPOCH = -1
WAIT_MS = 300
TIMEOUT_MS = 2_500
FORGOTTEN = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND)
LEAVE_CHANCE, CLOSE_CHANCE, DESERT_CHANCE, SLEEP_CHANCE = 0.01, 0.02, 0.02, 0.07
KEEP_CHANCE, RENEW_CHANCE, MIX_CHANCE, APART_CHANCE = 0.15, 0.07, 0.3, 0.5
MIXED = (
    AcknowledgeType.ACCEPT,
    AcknowledgeType.ACCEPT,
    AcknowledgeType.RELEASE,
    AcknowledgeType.RELEASE,
    AcknowledgeType.REJECT,
)

TenureOf = Callable[[Address, int], Tenure | None]


@dataclass(slots=True, eq=False)
class ShareGroup:
    """A share group of a history, with its checks and what its members have in common."""

    name: str
    topic: str
    topic_id: bytes
    partitions: list[SharedPartition]
    lock_s: float
    tenure: TenureOf  # of a partition of the topic on a broker
    saw: Callable[[bytes], None]  # a value was delivered
    is_calm: bool = False  # members accept everything, and none leaves
    is_over: bool = False


@dataclass(slots=True, eq=False)
class Session:
    """A share session with one broker, and the records that were acquired in it."""

    address: Address
    share: ShareSession
    connection: ConnectionCore | None = None  # of the last request: the broker ends the session with it
    held: dict[Place, dict[int, Delivery]] = field(default_factory=dict)
    gaps: dict[Place, set[int]] = field(default_factory=dict)  # acquired offsets without a record


Types = dict[Place, dict[int, int]]


class ShareGroupMember:
    def __init__(self, client: SimulatedClient, group: ShareGroup) -> None:
        self._client = client
        self._group = group
        self._process = client.process
        self._lives = 0
        self._begin()

    def _begin(self) -> None:
        self._lives += 1
        self._member_id = uuids.to_text(self._client.rng.randbytes(16))
        self._name = f"{self._client.host}/{self._client.lives}/{self._lives}"
        self._epoch = 0
        self._is_full = True
        self._assigned: set[int] = set()
        self._sessions: dict[Address, Session] = {}
        self._next_beat_s = 0.0

    async def run(self) -> None:
        client, group = self._client, self._group
        await find_coordinator(client, group.name)
        while not group.is_over:
            if client.world.loop.time() >= self._next_beat_s:
                await self._beat()
            await self._work()
            if not group.is_calm and client.rng.random() < LEAVE_CHANCE:
                await self._leave()

    # -- membership --------------------------------------------------------------------------------

    async def _beat(self) -> None:
        client, group = self._client, self._group
        self._next_beat_s = client.world.loop.time() + client.rng.uniform(0.5, 1.5) * BEAT_S
        request = ShareGroupHeartbeatRequest(
            group_id=group.name,
            member_id=self._member_id,
            member_epoch=self._epoch,
            subscribed_topic_names=[group.topic] if self._is_full or self._epoch == 0 else None,
        )
        self._is_full = True  # until the response arrives: the coordinator then repeats the assignment
        response = await client.ask(request, ShareGroupHeartbeatResponse)
        if response is None:
            return
        code = ErrorCode(response.error_code)
        if code in FORGOTTEN:
            self._epoch = 0
            self._assigned.clear()
        elif not code:
            if response.member_epoch < self._epoch and group.partitions[0].is_trusted:
                raise Wrong(f"the epoch of {self._name} went back from {self._epoch}")
            self._epoch = response.member_epoch
            self._is_full = False
            if response.assignment is not None:
                self._assigned = {
                    index
                    for part in response.assignment.topic_partitions
                    if part.topic_id == group.topic_id
                    for index in part.partitions
                }

    async def _leave(self) -> None:
        for session in list(self._sessions.values()):
            await self._close(session)
        request = ShareGroupHeartbeatRequest(
            group_id=self._group.name, member_id=self._member_id, member_epoch=LEAVE_EPOCH
        )
        await self._client.ask(request, ShareGroupHeartbeatResponse)
        await asyncio.sleep(self._client.rng.expovariate(1.0))
        self._begin()

    # -- sessions ----------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Exchange something with each leader of the partitions."""
        leaders: dict[Address, list[int]] = {}
        for index in sorted(self._assigned):
            address = await self._client.leader_of(self._group.topic, index)
            if address is not None:
                leaders.setdefault(address, []).append(index)
        if not leaders:
            await asyncio.sleep(RETRY_S)
        for address, indexes in leaders.items():
            await self._work_with(address, indexes)

    async def _work_with(self, address: Address, indexes: list[int]) -> None:
        rng, group = self._client.rng, self._group
        session = self._sessions.get(address)
        if session is None:
            session = Session(address, ShareSession(group.name, self._member_id))
            self._sessions[address] = session
        if not group.is_calm and session.held:
            if rng.random() < CLOSE_CHANCE:
                await self._close(session)
            elif rng.random() < DESERT_CHANCE:
                self._forget(session)
            elif rng.random() < SLEEP_CHANCE:
                await asyncio.sleep(group.lock_s * rng.uniform(0.5, 1.5))
        await self._renew(session)
        types = self._decide(session)
        if types and rng.random() < APART_CHANCE:
            await self._acknowledge(session, types)
            types = {}
        await self._fetch(session, indexes, types)

    def _forget(self, session: Session) -> None:
        """Begin a new session: the broker may release what this one has acquired."""
        for place, held in session.held.items():
            for delivery in held.values():
                self._group.partitions[place[1]].gave_up(delivery)
        session.held.clear()
        session.gaps.clear()
        session.share.lost()

    async def _close(self, session: Session) -> None:
        if not session.share.is_new:
            request = session.share.acknowledge_request({}, closes=True)
            self._forget(session)
            await self._ask(session, request, ShareAcknowledgeResponse)
        self._forget(session)

    async def _ask(self, session: Session, request: Message, response: type[R]) -> R | None:
        """The response; None if it is unknown whether the request was served."""
        try:
            session.connection = await self._client.cluster.connection_to(session.address, PURPOSE)
            return await session.connection.send(request, response, timeout_ms=TIMEOUT_MS)
        except ClientError:
            for index in self._assigned:
                self._client.forget_leader(self._group.topic, index)
            return None

    # -- acknowledgements --------------------------------------------------------------------------

    def _decide(self, session: Session) -> Types:
        """Decide about records that are held. Those of some partitions are kept for a while; their locks
        may run out."""
        rng, found = self._client.rng, {}
        for place, held in session.held.items():
            if not self._group.is_calm and rng.random() < KEEP_CHANCE:
                continue
            is_mixed = not self._group.is_calm and rng.random() < MIX_CHANCE
            types = {
                offset: int(rng.choice(MIXED) if is_mixed else AcknowledgeType.ACCEPT)
                for offset in sorted(held)
            }
            if is_mixed and rng.random() < KEEP_CHANCE:
                types = dict(list(types.items())[: len(types) // 2 + 1])
            if len(types) == len(held):
                types |= dict.fromkeys(session.gaps.pop(place, ()), GAP)
            if types:
                found[place] = types
        return found

    async def _renew(self, session: Session) -> None:
        """Work so long on records that their locks run out if they are not renewed."""
        rng, lock_s = self._client.rng, self._group.lock_s
        renew = int(AcknowledgeType.RENEW)
        types = {place: dict.fromkeys(held, renew) for place, held in session.held.items() if held}
        if not types or self._group.is_calm or rng.random() > RENEW_CHANCE:
            return
        await asyncio.sleep(lock_s * rng.uniform(0.3, 0.9))
        await self._acknowledge(session, types)
        await asyncio.sleep(lock_s * rng.uniform(0.3, 0.9))

    async def _acknowledge(self, session: Session, types: Types) -> None:
        sent_s, sent = self._sending(session, types)
        batches = {place: batches_of(some) for place, some in types.items()}
        request = session.share.acknowledge_request(batches)
        response = await self._ask(session, request, ShareAcknowledgeResponse)
        if response is None or response.error_code:
            self._forget(session)
            if response is not None:
                await asyncio.sleep(RETRY_S)
            return
        session.share.answered(response.error_code)
        for topic in response.responses:
            for part in topic.partitions:
                place = topic.topic_id, part.partition_index
                self._confirm(place, sent.pop(place, {}), sent_s, part.error_code)

    def _sending(self, session: Session, types: Types) -> tuple[float, dict[Place, dict[Delivery, int]]]:
        """Report what is sent. Records that are not renewed are not held any more."""
        sent: dict[Place, dict[Delivery, int]] = {}
        for place, some in types.items():
            held = session.held[place]
            tenure = self._group.tenure(session.address, place[1])
            for offset, kind in some.items():
                delivery = held.get(offset)
                if delivery is None:
                    continue  # a gap
                self._group.partitions[place[1]].acknowledging(delivery, kind, tenure)
                sent.setdefault(place, {})[delivery] = kind
                if kind != AcknowledgeType.RENEW:
                    del held[offset]
            if not held:
                del session.held[place]
        return self._client.world.loop.time(), sent

    def _confirm(self, place: Place, sent: Mapping[Delivery, int], sent_s: float, code: int) -> None:
        partition = self._group.partitions[place[1]]
        if code:
            partition.refusals += bool(sent)
            return
        for delivery, kind in sent.items():
            partition.acknowledged(delivery, kind, sent_s)

    # -- fetches -----------------------------------------------------------------------------------

    async def _fetch(self, session: Session, indexes: list[int], types: Types) -> None:
        client, group = self._client, self._group
        wanted = {(group.topic_id, index): TopicPartition(group.topic, index) for index in indexes}
        limits = ShareLimits(
            wait_ms_max=WAIT_MS,
            records_max=client.rng.choice((1, 3, 10, 50)),
            acquire_mode=client.rng.choice(list(AcquireMode)),
        )
        sent_s, sent = self._sending(session, types)
        batches = {place: batches_of(some) for place, some in types.items()}
        request = session.share.fetch_request(wanted, batches, limits)
        tenures = {index: group.tenure(session.address, index) for index in indexes}
        for index in indexes:
            group.partitions[index].fetching()
        response = await self._ask(session, request, ShareFetchResponse)
        if response is None:
            self._forget(session)
            return
        for index in indexes:
            group.partitions[index].answered()
        if response.error_code:
            self._forget(session)
            await asyncio.sleep(RETRY_S)
            return
        session.share.answered(response.error_code)
        is_any_refused = False
        for topic in response.responses:
            for data in topic.partitions:
                place = topic.topic_id, data.partition_index
                self._confirm(place, sent.pop(place, {}), sent_s, data.acknowledge_error_code)
                if data.error_code:
                    client.forget_leader(group.topic, data.partition_index)
                    is_any_refused = True
                self._receive(session, place, data, sent_s, tenures)
        if is_any_refused:
            await asyncio.sleep(RETRY_S)

    def _receive(
        self,
        session: Session,
        place: Place,
        data: SharePartitionData,
        sent_s: float,
        tenures: Mapping[int, Tenure | None],
    ) -> None:
        group, index = self._group, place[1]
        if not data.acquired_records:
            return
        acquired = read_acquired(TopicPartition(group.topic, index), data)
        if acquired.damage is not None:
            raise Wrong(f"{self._name}: {acquired.damage}")
        partition = group.partitions[index]
        tenure = group.tenure(session.address, index)
        if tenure is not tenures.get(index):
            tenure = None
        is_connected = self._connection_check(session)
        held = session.held.setdefault(place, {})
        for record in acquired.records:
            delivery = partition.delivery(
                record.offset, self._name, record.delivery_count, sent_s, tenure, is_connected
            )
            partition.delivered(delivery, record.value or b"")
            group.saw(record.value or b"")
            held[record.offset] = delivery
        session.gaps.setdefault(place, set()).update(acquired.gaps)

    def _connection_check(self, session: Session) -> Callable[[], bool]:
        """A broker that notices a reset releases the records at once, perhaps before the member notices."""
        process, connection, network = self._process, session.connection, self._client.world.network

        def check() -> bool:
            return (
                process.is_alive
                and not process.is_paused
                and connection is not None
                and connection.is_open
                and not network.is_resetting(process.host)
            )

        return check
