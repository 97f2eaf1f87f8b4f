"""Members of classic groups on a broker: beside each other and beside another client."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from confluent_kafka import Consumer as ConfluentConsumer

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.topics import NewTopic
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import Unreachable
from barnabas.client.groups.member import Assignment, GroupMember
from barnabas.client.groups.membership import GroupSettings, JoinedMember, Offer
from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from barnabas.protocol.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.testing import waiting

PATIENCE_S = 30.0
until = partial(waiting.until, seconds=PATIENCE_S)


class Recorder:
    """A listener that writes down all calls; as the leader it gives every member the ids of all."""

    def __init__(self, metadata: bytes) -> None:
        self.metadata = metadata
        self.events: list[str] = []
        self.assignment: Assignment | None = None

    def offers(self) -> Sequence[Offer]:
        return [Offer("v0", self.metadata)]

    async def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        everyone = b",".join(sorted(each.metadata for each in members))
        return {each.member_id: everyone for each in members}

    async def on_assigned(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.events.append(f"assigned {assignment.data.decode()}")

    async def on_revoked(self) -> None:
        self.events.append("revoked")

    async def on_lost(self) -> None:
        self.events.append("lost")


def settings(group: str, **others: Any) -> GroupSettings:
    values = {"session_timeout_ms": 6_000, "rebalance_timeout_ms": 6_000, "heartbeat_interval_ms": 100}
    return GroupSettings(group, "test", **{**values, **others})


def on(broker: str, use: Callable[[Cluster], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Cluster(parse_bootstrap(broker)) as cluster:
            await use(cluster)

    asyncio.run(main())


def test_members_come_and_go_and_all_agree(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        one, two = Recorder(b"one"), Recorder(b"two")
        first, second = (GroupMember(cluster, settings(topic), each) for each in (one, two))
        first.start()
        await until(lambda: one.events == ["assigned one"])
        second.start()
        await until(lambda: "assigned one,two" in one.events and "assigned one,two" in two.events)
        assert one.events[:2] == ["assigned one", "revoked"]
        assert one.assignment and two.assignment
        assert one.assignment.generation == two.assignment.generation
        assert one.assignment.leader == two.assignment.leader
        assert first.is_stable and second.is_stable
        await first.stop()
        assert one.events[-1] == "revoked" and not first.is_stable
        await until(lambda: two.events[-1] == "assigned two")
        two.metadata = b"two again"
        second.rejoin("new metadata")
        await until(lambda: two.events[-1] == "assigned two again")
        await second.stop()

    on(broker, use)


def test_a_member_that_the_coordinator_removed_loses_its_assignment_and_joins_again(
    broker: str, topic: str
) -> None:
    async def use(cluster: Cluster) -> None:
        one = Recorder(b"one")
        member = GroupMember(cluster, settings(topic), one)
        member.start()
        await until(lambda: one.events == ["assigned one"])
        old = member.membership.member_id
        other = GroupMember(cluster, settings(topic), one)
        other.membership.member_id = old
        await other.stop()  # leaves in the name of the first
        await until(lambda: one.events == ["assigned one", "lost", "assigned one"])
        assert member.membership.member_id != old
        await member.stop()

    on(broker, use)


def test_a_session_without_responses_ends_by_the_members_own_clock(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        one = Recorder(b"one")
        member = GroupMember(cluster, settings(topic), one)
        member.start()
        await until(lambda: one.events == ["assigned one"])
        ask = member._ask

        async def unreachable(*_: Any) -> Any:
            raise Unreachable("no broker responds")

        member._ask = unreachable  # type: ignore[method-assign]
        assert member.is_stable
        member._session_ends_at = asyncio.get_running_loop().time() + 0.2
        await until(lambda: one.events == ["assigned one", "lost"])
        assert not member.is_stable
        member._ask = ask  # type: ignore[method-assign]
        await member.stop()

    on(broker, use)


def test_a_member_whose_heartbeats_break_down_fails_and_says_so(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        one = Recorder(b"one")
        member = GroupMember(cluster, settings(topic), one)
        member.start()
        await until(lambda: one.events == ["assigned one"])
        ask = member._ask

        async def nonsense(*_: Any) -> Any:
            raise ProtocolError("response", "nonsense")

        member._ask = nonsense  # type: ignore[method-assign]
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(ProtocolError):
                await member.ended()
        assert one.events == ["assigned one", "lost"]
        member._ask = ask  # type: ignore[method-assign]
        await member.stop()

    on(broker, use)


def test_a_static_member_is_fenced_by_its_successor(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        one, two = Recorder(b"one"), Recorder(b"two")
        old = GroupMember(cluster, settings(topic, instance_id="i"), one)
        old.start()
        await until(lambda: one.events == ["assigned one"])
        new = GroupMember(cluster, settings(topic, instance_id="i"), two)
        new.start()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(KafkaError) as caught:
                await old.ended()
        assert caught.value.code is ErrorCode.FENCED_INSTANCE_ID
        assert one.events[-1] == "lost"
        await until(lambda: two.events)
        await old.stop()
        await new.stop(leave=True)

    on(broker, use)


def test_a_member_that_offers_no_common_protocol_is_refused(broker: str, topic: str) -> None:
    async def use(cluster: Cluster) -> None:
        one = Recorder(b"one")
        member = GroupMember(cluster, settings(topic), one)
        member.start()
        await until(lambda: one.events)
        stranger = GroupMember(cluster, GroupSettings(topic, "another type"), Recorder(b"x"))
        stranger.start()
        with pytest.raises(KafkaError) as caught:
            await stranger.ended()
        assert caught.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        await stranger.stop()
        await member.stop()

    on(broker, use)


class Ranges(Recorder):
    """A member of a consumer group, with protocol `range` for one topic of two partitions."""

    def __init__(self, topic: str) -> None:
        super().__init__(b"\0\0" + ConsumerProtocolSubscription(topics=[topic]).encode(0))
        self.topic = topic
        self.partitions: list[int] = []

    def offers(self) -> Sequence[Offer]:
        return [Offer("range", self.metadata)]

    async def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        shares: dict[str, list[int]] = {each.member_id: [] for each in members}
        for partition in range(2):
            sorted(shares.values(), key=len)[0].append(partition)
        part = ConsumerProtocolAssignment.TopicPartition
        return {
            member: b"\0\0"
            + ConsumerProtocolAssignment(
                assigned_partitions=[part(topic=self.topic, partitions=share)] if share else []
            ).encode(0)
            for member, share in shares.items()
        }

    async def on_assigned(self, assignment: Assignment) -> None:
        found = ConsumerProtocolAssignment.decode(memoryview(assignment.data)[2:], 0)
        self.partitions = [each for part in found.assigned_partitions for each in part.partitions]

    async def on_revoked(self) -> None:
        self.partitions = []


@pytest.mark.parametrize("leads", ["ours", "theirs"])
def test_a_member_shares_a_group_with_another_client(broker: str, topic: str, leads: str) -> None:
    async def use(cluster: Cluster) -> None:
        await Admin(cluster).create_topic(NewTopic(topic, partitions=2))
        ours = Ranges(topic)
        member = GroupMember(cluster, GroupSettings(topic, heartbeat_interval_ms=100), ours)
        theirs = ConfluentConsumer(
            {
                "bootstrap.servers": broker,
                "group.id": topic,
                "partition.assignment.strategy": "range",
                "heartbeat.interval.ms": 100,
            }
        )

        async def polled(done: Callable[[], bool]) -> None:
            async with asyncio.timeout(PATIENCE_S):
                while not done():
                    await asyncio.to_thread(theirs.poll, 0.05)

        try:
            if leads == "ours":
                member.start()
                await until(lambda: ours.partitions == [0, 1])
                theirs.subscribe([topic])  # it begins to join at once, without a poll
            else:
                theirs.subscribe([topic])
                await polled(lambda: len(theirs.assignment()) == 2)
                member.start()
            await polled(lambda: len(theirs.assignment()) == 1 and len(ours.partitions) == 1)
            assert member.membership.assigns == (leads == "ours")
            assert {theirs.assignment()[0].partition, *ours.partitions} == {0, 1}
        finally:
            await asyncio.to_thread(theirs.close)
        await until(lambda: ours.partitions == [0, 1])
        await member.stop()

    on(broker, use)
