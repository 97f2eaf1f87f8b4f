"""Share groups on three nodes while each of them is killed: it leads partitions, coordinates the group, and
keeps its state. Every record is delivered, and none again after its acknowledgement was confirmed."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.testing.cluster import Cluster
from clients.share_clients import Clients, Failed, Got, Member, remove_built

from .replicated import SOON, Writer

TOPIC = "shared"
PARTITIONS = 3
POLL_MS = 200
PATIENCE_S = 120.0
MORE = 30  # records of each partition, written before, during and after each kill
SETTINGS = {
    **SOON,
    "offsets.topic.num.partitions": 3,
    "share.coordinator.state.topic.num.partitions": 3,
    "group.share.min.heartbeat.interval.ms": 500,
    "group.share.heartbeat.interval.ms": 500,
    "group.share.min.session.timeout.ms": 3_000,
    "group.share.session.timeout.ms": 3_000,
    "group.share.min.record.lock.duration.ms": 5_000,
    "group.share.record.lock.duration.ms": 5_000,
    "group.share.delivery.count.limit": 10,
}


class History:
    """What was delivered to whom, and what was certainly accepted."""

    def __init__(self) -> None:
        self.delivered: Counter[tuple[int, int]] = Counter()
        self.accepted: set[tuple[int, int]] = set()
        self.repeated: list[tuple[int, int]] = []  # delivered after they were accepted

    def work(self, member: Member) -> int:
        """Let a member poll once and accept all; how many records it got."""
        try:
            found = member.poll(POLL_MS)
            self.repeated += [place(got) for got in found if place(got) in self.accepted]
            self.delivered.update(map(place, found))
            for got in found:
                member.acknowledge(got, "ACCEPT")
            if found and not member.commit():
                self.accepted |= set(map(place, found))
        except Failed:
            return 0  # the client gave up on a broker: records come again
        return len(found)

    def work_until(self, members: list[Member], wanted: set[tuple[int, int]]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not wanted <= self.accepted:
            for member in members:
                self.work(member)
            missing = sorted(wanted - self.accepted)
            assert time.monotonic() < deadline, f"{len(missing)} records are not accepted: {missing[:5]}"


def place(got: Got) -> tuple[int, int]:
    return got.partition, int(got.value)


def written(writers: list[Writer]) -> set[tuple[int, int]]:
    return {(writer.partition, number) for writer in writers for number in writer.acknowledged}


@pytest.mark.java
@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", ["java", "librdkafka"])
def test_each_node_is_killed(kind: str) -> None:
    with Cluster(combined=3, overrides=SETTINGS) as cluster:
        cluster.create_topic(TOPIC, PARTITIONS, replication_factor=3)

        async def begin_early(admin: Admin) -> None:
            group = ConfigResource(ResourceType.GROUP, TOPIC)
            await admin.alter_configs(group, {"share.auto.offset.reset": "earliest"})

        cluster.ask(begin_early)
        writers = [Writer(cluster.bootstrap, TOPIC, partition) for partition in range(PARTITIONS)]
        history = History()
        with Clients(kind, cluster.bootstrap, TOPIC, TOPIC) as clients:
            members = [clients.open(name, explicit=True, records_max=20) for name in ("ann", "bob")]
            for node_id in (1, 2, 3):
                for writer in writers:
                    writer.write_more(MORE)
                history.work_until(members, written(writers))
                history.work(members[0])
                cluster[node_id].kill()
                for writer in writers:
                    writer.write_more(MORE)
                history.work_until(members, written(writers))
                cluster[node_id].start()
            for writer in writers:
                writer.write_more(MORE)
            history.work_until(members, written(writers))
        assert not history.repeated, history.repeated[:10]
        assert history.delivered.keys() >= written(writers)
    remove_built()
