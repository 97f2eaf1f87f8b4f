"""What happens to nodes of a cluster, as context managers: broken inside, mended after.

In: a running cluster, its links where nodes are hosts. Out: `Faults.kinds`, and when all is well again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.runtime.disk import REAL_DISK
from barnabas.storage.files import meta_properties
from barnabas.testing.cluster import Cluster, ClusterNode
from barnabas.testing.waiting import wait_until

from .load import NUMBERS
from .namespaces import Links

MENDED_S = 120.0
INTERNAL = ("__consumer_offsets", "__transaction_state")


class Faults:
    def __init__(self, cluster: Cluster, rng: random.Random, links: Links | None = None) -> None:
        self._cluster = cluster
        self._rng = rng
        self._links = links
        self.kinds: dict[str, Callable[[], AbstractContextManager[None]]] = {
            "kill -9 of a leader": lambda: self.killed(self.leader()),
            "kill -9 of the controller": lambda: self.killed(self.controller()),
            "SIGSTOP of a leader": lambda: self.paused(self.leader()),
            "SIGSTOP of the controller": lambda: self.paused(self.controller()),
            "disk wiped": lambda: self.wiped(self.anybody()),
        }
        if links is not None:
            self.kinds |= {
                "leader and follower cut": lambda: self.cut(*self.leader_and_follower()),
                "one way to the leader cut": lambda: self.cut_one_way(*self.leader_and_follower()),
                "broker and controller cut": lambda: self.cut(self.no_controller(), self.controller()),
                "leader and clients cut": lambda: self.cut_from_clients(self.leader()),
            }

    # -- who

    def leader(self) -> ClusterNode:
        partitions = self._partitions([NUMBERS])
        return self._cluster[self._rng.choice([each.leader for each in partitions if each.leader > 0])]

    def leader_and_follower(self) -> tuple[ClusterNode, ClusterNode]:
        partition = self._rng.choice(self._partitions([NUMBERS]))
        follower = self._rng.choice([each for each in partition.isr if each != partition.leader])
        return self._cluster[partition.leader], self._cluster[follower]

    def controller(self) -> ClusterNode:
        return self._cluster[self._cluster.ask(lambda admin: admin.describe_quorum()).leader_id]

    def no_controller(self) -> ClusterNode:
        active = self.controller()
        return self._rng.choice([node for node in self._cluster.brokers if node is not active])

    def anybody(self) -> ClusterNode:
        return self._rng.choice(self._cluster.brokers)

    def _partitions(self, topics: list[str]) -> list[Any]:
        async def ask(admin: Any) -> list[Any]:
            return [each for topic in await admin.describe_topics(topics) for each in topic.partitions]

        found: list[Any] = self._cluster.ask(ask)
        return found

    # -- what

    @contextmanager
    def killed(self, node: ClusterNode) -> Iterator[None]:
        node.kill()
        yield
        node.start()

    @contextmanager
    def wiped(self, node: ClusterNode) -> Iterator[None]:
        node.kill()
        yield
        node.wipe()
        node.start()

    @contextmanager
    def paused(self, node: ClusterNode) -> Iterator[None]:
        node.pause()
        try:
            yield
        finally:
            node.resume()

    @contextmanager
    def cut(self, one: ClusterNode, other: ClusterNode) -> Iterator[None]:
        with self._healed() as links:
            links.cut(one.id, other.id)
            yield

    @contextmanager
    def cut_one_way(self, leader: ClusterNode, follower: ClusterNode) -> Iterator[None]:
        with self._healed() as links:
            links.cut(follower.id, leader.id, both=False)
            yield

    @contextmanager
    def cut_from_clients(self, node: ClusterNode) -> Iterator[None]:
        with self._healed() as links:
            links.cut_from_clients(node.id)
            yield

    @contextmanager
    def _healed(self) -> Iterator[Links]:
        assert self._links is not None
        try:
            yield self._links
        finally:
            self._links.heal()

    # -- when all is well

    def wait_until_mended(self, topics: list[str]) -> None:
        wait_until(lambda: not self.broken(topics), MENDED_S, what=lambda: self.broken(topics))

    def broken(self, topics: list[str]) -> str:
        """What is not well; nothing when every replica is in sync and every voter has its vote."""
        try:
            lagging = [
                f"{each.leader}: {each.isr} of {each.replicas}"
                for each in self._partitions([*topics, *INTERNAL])
                if len(each.isr) < len(each.replicas) or each.leader < 1
            ]
            voters = self._cluster.ask(lambda admin: admin.describe_quorum()).voters
        except (KafkaError, ClientError) as error:
            return f"nobody answers: {error}"
        if lagging:
            return f"replicas are not in sync: {lagging}"
        if self._cluster.is_dynamic:
            have = {voter.id: voter.directory_id for voter in voters}
            disks = {node.id: directory_id(node) for node in self._cluster.controllers}
            if have != disks:
                return f"voters are {sorted(have)}, or their disks are others"
        return ""


def directory_id(node: ClusterNode) -> bytes:
    found = meta_properties.load(REAL_DISK, str(node.folder))
    assert found is not None and found.directory_id is not None
    return found.directory_id
