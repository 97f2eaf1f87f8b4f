"""Single links between real nodes are cut: leader and follower, broker and the active controller, node and
clients. What was acknowledged stays, and writing goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.testing.waiting import wait_until

from .load import NUMBERS as TOPIC
from .load import Numbers, read_all
from .namespaces import HostCluster, Links, missing
from .test_kills import SOON

NODES = (1, 2, 3)
REASON = missing()
pytestmark = [pytest.mark.skipif(REASON is not None, reason=str(REASON)), pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def hosts() -> Iterator[tuple[HostCluster, Links]]:
    with Links(len(NODES)).up() as links, HostCluster(len(NODES), dict(SOON)) as cluster:
        cluster.create_topic(TOPIC, replication_factor=3)
        yield cluster, links


def leader_of(cluster: HostCluster) -> int:
    async def ask(admin: object) -> int | None:
        [topic] = await admin.describe_topics([TOPIC])  # type: ignore[attr-defined]
        return topic.partitions[0].leader  # type: ignore[no-any-return]

    return int(cluster.ask(ask) or -1)


def isr_of(cluster: HostCluster) -> set[int]:
    async def ask(admin: object) -> set[int]:
        try:
            [topic] = await admin.describe_topics([TOPIC])  # type: ignore[attr-defined]
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return set()  # this broker has not heard of the topic yet
        return set(topic.partitions[0].isr)

    return set(cluster.ask(ask))


def controller_of(cluster: HostCluster) -> int:
    async def ask(admin: object) -> int:
        return (await admin.describe_quorum()).leader_id  # type: ignore[attr-defined, no-any-return]

    return int(cluster.ask(ask))


@pytest.mark.parametrize(
    "what", ["leader and follower", "one way to the leader", "broker and controller", "clients"]
)
def test_writing_goes_on_when_a_link_is_cut_and_nothing_is_lost(
    what: str, hosts: tuple[HostCluster, Links]
) -> None:
    cluster, links = hosts
    wait_until(lambda: isr_of(cluster) == set(NODES), 60, what="all replicas are in sync")
    numbers = Numbers(cluster.bootstrap, pause_s=0.002)
    wait_until(lambda: numbers.count > 50, 60, what="load")
    leader, controller = leader_of(cluster), controller_of(cluster)
    other = next(node for node in NODES if node not in (leader, controller))
    if what == "leader and follower":
        links.cut(leader, other)
    elif what == "one way to the leader":
        links.cut(other, leader, both=False)
    elif what == "broker and controller":
        links.cut(controller, other)
    else:
        links.cut_from_clients(other)
    before = numbers.count
    wait_until(lambda: numbers.count > before + 200, 90, what="writing goes on")
    links.heal()
    wait_until(lambda: isr_of(cluster) == set(NODES), 90, what="all replicas are in sync again")
    numbers.stop()
    assert numbers.failed == []
    found = read_all(cluster.bootstrap, TOPIC)
    start = len(found) - 1 - found[::-1].index(0)  # this test's own begin behind those of the tests before
    mine = found[start:]
    assert mine == sorted(set(mine)), "duplicates, or out of order"
    assert set(numbers.acknowledged[0]) <= set(mine)
