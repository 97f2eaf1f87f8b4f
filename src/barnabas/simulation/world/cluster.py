"""A simulated cluster: several nodes with the real code in one world, and their roles.

In: a shape (which ids are controllers, brokers, or both) and settings. Out: nodes, their addresses, and their
common state, such as whether all are up and the newest metadata image.
Does not know: clients, faults, checks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.broker.setup.formatting import FormatRequest
from barnabas.client.core.address import Address
from barnabas.metadata.image import MetadataImage
from barnabas.raft.voters import Voter, VoterEndpoint
from barnabas.simulation.world.node import PORT, Membership, SimulatedNode
from barnabas.simulation.world.world import World
from barnabas.storage.files.meta_properties import random_directory_id

CLUSTER_ID = "c2ltdWxhdGVkLWNsdXN0ZQ"
LISTENER = "CONTROLLER"
# Short timeouts, so that histories with failovers do not take long.
QUICK = {
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "2000",
    "controller.quorum.election.timeout.ms": "400",
    "controller.quorum.election.backoff.max.ms": "300",
    "controller.quorum.fetch.timeout.ms": "900",
    "controller.quorum.request.timeout.ms": "800",
    "controller.quorum.append.linger.ms": "5",
    "replica.lag.time.max.ms": "1500",
    "replica.fetch.wait.max.ms": "200",
    "replica.fetch.backoff.ms": "100",
    "replica.socket.timeout.ms": "1500",
    "controller.socket.timeout.ms": "1500",
    "request.timeout.ms": "2000",
    "leader.imbalance.check.interval.seconds": "3",
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Ids of controllers and of brokers; a node that is in both has both roles."""

    controllers: tuple[int, ...]
    brokers: tuple[int, ...]
    is_dynamic: bool = False  # voters are in the log (kraft.version 1), not in the settings

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(sorted({*self.controllers, *self.brokers}))

    def roles(self, node_id: int) -> str:
        roles = ("broker", self.brokers), ("controller", self.controllers)
        return ",".join(name for name, ids in roles if node_id in ids)

    def __str__(self) -> str:
        kind = "dynamic" if self.is_dynamic else "static"
        return f"controllers {self.controllers} ({kind}), brokers {self.brokers}"


class SimulatedCluster:
    def __init__(
        self,
        world: World,
        shape: Shape,
        properties: Mapping[str, str] | None = None,
        add_scram: Sequence[str] = (),
    ) -> None:
        self.world = world
        self.shape = shape
        self._add_scram = add_scram
        factor = str(min(3, len(shape.brokers)))
        self._common = {
            **QUICK,
            "offsets.topic.replication.factor": factor,
            "transaction.state.log.replication.factor": factor,
            "transaction.state.log.min.isr": str(min(2, len(shape.brokers))),
            "share.coordinator.state.topic.replication.factor": factor,
            "share.coordinator.state.topic.min.isr": str(min(2, len(shape.brokers))),
            "min.insync.replicas": str(min(2, len(shape.brokers))),
            "default.replication.factor": factor,
            **(properties or {}),
        }
        rng = world.rng("directories")
        self._voters = [
            Voter(
                node_id,
                random_directory_id(rng.randbytes(16)),
                (VoterEndpoint(LISTENER, host_of(node_id), PORT + 1),),
            )
            for node_id in shape.controllers
        ]
        self.nodes = {node_id: self._node(node_id) for node_id in shape.ids}
        self.on_power_loss: list[Callable[[], None]] = []
        for node in self.nodes.values():
            node.on_power_loss = self.on_power_loss

    def _node(self, node_id: int) -> SimulatedNode:
        shape, host = self.shape, host_of(node_id)
        is_controller = node_id in shape.controllers
        listeners = [f"PLAINTEXT://{host}:{PORT}"] if node_id in shape.brokers else []
        listeners += [f"{LISTENER}://{host}:{PORT + 1}"] if is_controller else []
        addresses = [f"{host_of(each)}:{PORT + 1}" for each in shape.controllers]
        voters = ",".join(
            f"{each}@{address}" for each, address in zip(shape.controllers, addresses, strict=True)
        )
        quorum = (
            {"controller.quorum.bootstrap.servers": ",".join(addresses)}
            if shape.is_dynamic
            else {"controller.quorum.voters": voters, "controller.quorum.bootstrap.servers": ""}
        )
        if shape.is_dynamic and is_controller:  # with a new disk it is a new voter that replaces the old one
            quorum["controller.quorum.auto.join.enable"] = "true"
        properties = {
            **self._common,
            "process.roles": shape.roles(node_id),
            "listeners": ",".join(listeners),
            **quorum,
        }
        first = again = FormatRequest(add_scram=self._add_scram)
        if shape.is_dynamic and is_controller:
            first = FormatRequest(initial_controllers=self._voters, add_scram=self._add_scram)
            again = FormatRequest(no_initial_controllers=True)
        return SimulatedNode(self.world, node_id, properties, Membership(CLUSTER_ID, first, again))

    async def supervise(self) -> None:
        """Start all nodes, and restart each when it ends. Run this in a task of the harness."""
        await asyncio.gather(*(node.supervise() for node in self.nodes.values()))

    @property
    def brokers(self) -> dict[int, Address]:
        return {node_id: Address(*self.nodes[node_id].bootstrap) for node_id in self.shape.brokers}

    @property
    def is_up(self) -> bool:
        return all(node.is_up for node in self.nodes.values())

    @property
    def has_all_voters(self) -> bool:
        """Whether all controllers agree that each of them is a voter with its current disk."""
        if not self.shape.is_dynamic:
            return True
        logs = [self.nodes[node_id].metadata for node_id in self.shape.controllers]
        found = [log for log in logs if log is not None]
        voters = {log.local.id: log.local.directory_id for log in found}
        return len(found) == len(logs) and all(
            {voter.id: voter.directory_id for voter in log.membership.voters.voters.values()} == voters
            for log in found
        )

    def voters(self) -> list[Voter]:
        """The voters according to the controller that has read most of the metadata log."""
        logs = [self.nodes[node_id].metadata for node_id in self.shape.controllers]
        newest = max((log for log in logs if log is not None), key=lambda log: log.end_offset, default=None)
        return list(newest.membership.voters.voters.values()) if newest is not None else []

    @property
    def lives(self) -> int:
        return sum(node.lives for node in self.nodes.values())

    @property
    def power_losses(self) -> int:
        return sum(node.power_losses for node in self.nodes.values())

    @property
    def voters_wiped(self) -> int:
        return sum(self.nodes[node_id].wipes for node_id in self.shape.controllers)

    def image(self) -> MetadataImage | None:
        """The newest metadata image of all brokers."""
        images = [
            node.node.broker.image
            for node in self.nodes.values()
            if node.node is not None and node.node_id in self.shape.brokers
        ]
        return max(images, key=lambda image: image.provenance.offset, default=None)


def host_of(node_id: int) -> str:
    return f"node-{node_id}"
