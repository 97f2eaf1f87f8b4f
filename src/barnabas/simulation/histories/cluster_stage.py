"""The stage of a history with several nodes: their roles, what is promised, and which faults may happen.

In: random numbers. Out: a shape, a promise with the faults that it must survive, and a `Stage` for a cluster,
with clients that route requests and checks that run all the time.
Does not know: what clients do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from barnabas.simulation.histories.stage import FaultInjector, Machines, Stage
from barnabas.simulation.world.client import Job, SimulatedClient
from barnabas.simulation.world.cluster import Shape, SimulatedCluster
from barnabas.simulation.world.cluster_checks import ClusterChecks
from barnabas.simulation.world.faults import CLUSTER_KINDS, DISK_KINDS, Fault, Faults, Kind, Plan, plan
from barnabas.simulation.world.node import SimulatedNode
from barnabas.simulation.world.routed_client import RoutedClient
from barnabas.simulation.world.world import World

DISK_CHANCE = 0.3
DURATION_S_MEAN = 1.5
CALM_S = 45.0
# Faults that end no node and lose no written data.
DISTURBANCES = (
    Kind.PAUSE,
    Kind.STOP,
    Kind.CUT_NODES,
    Kind.CUT_NODES,
    Kind.CUT_NODES_ONE_WAY,
    Kind.CUT_NODES_ONE_WAY,
    Kind.ISOLATE,
    Kind.ISOLATE,
    Kind.SLOW_NODES,
    Kind.RESET_NODES,
    Kind.CLOCK,
    Kind.PAUSE_CLIENT,
    Kind.KILL_CLIENT,
    Kind.CUT,
    Kind.CUT_TO,
    Kind.CUT_FROM,
    Kind.SLOW,
    Kind.RESET,
)
KILLS = (Kind.KILL, Kind.KILL, Kind.KILL, Kind.KILL_AT_OPERATION)
POWERS = (Kind.POWER, Kind.POWER, Kind.POWER_AT_OPERATION)
assert set(CLUSTER_KINDS) <= {*DISTURBANCES, Kind.WIPE}


@dataclass(frozen=True, slots=True)
class ClusterPromise:
    """The promise of replication with `acks=all` and two in-sync replicas: no acknowledged record is lost if
    any number of processes are killed; with synced logs also if any number of nodes lose power, otherwise
    one."""

    name: str
    kinds: tuple[Kind, ...]
    properties: dict[str, str] = field(default_factory=dict)
    loses_one: bool = False
    survives_power_loss: bool = True


KILLED = ClusterPromise("killed", DISTURBANCES + KILLS)
SYNCED = ClusterPromise("synced", DISTURBANCES + KILLS + POWERS, {"log.flush.interval.messages": "1"})
ONE_LOST = ClusterPromise("one lost", DISTURBANCES, loses_one=True)
PROMISES = (KILLED, KILLED, SYNCED, ONE_LOST)

SHAPES = (
    ((1,), (2, 3, 4)),
    ((1, 2, 3), (1, 2, 3)),
    ((1, 2, 3), (1, 2, 3)),
    ((1, 2, 3), (1, 2, 3, 4)),
    ((1, 2, 3), (4, 5, 6)),
    ((1, 2, 3), (4, 5, 6, 7)),
    ((1, 2, 3, 4, 5), (1, 2, 3, 4, 5)),
)


def shape_of(rng: Random) -> Shape:
    controllers, brokers = rng.choice(SHAPES)
    return Shape(controllers, brokers, is_dynamic=rng.random() < 0.5)


def cluster_plan(
    rng: Random, promise: ClusterPromise, shape: Shape, *, until_s: float, count_max: int
) -> list[Fault]:
    disks_fail = rng.random() < DISK_CHANCE and not promise.loses_one  # a node with a failed disk ends
    kinds = promise.kinds + (3 * DISK_KINDS if disks_fail else ())
    faults = plan(rng, kinds, until_s=until_s, count_max=count_max, duration_s_mean=DURATION_S_MEAN)
    if promise.loses_one:
        faults.append(loss(rng, shape, until_s))
    return sorted(faults, key=lambda fault: fault.at_s)


def loss(rng: Random, shape: Shape, until_s: float) -> Fault:
    """A fault in which one node loses power or its whole disk. The disk of a static voter is never wiped:
    Raft is not safe if a voter forgets its votes. A dynamic voter with a new disk is a new voter that
    replaces the old."""
    bears = shape.is_dynamic and len(shape.controllers) > 2
    wipeable = [place for place, node_id in enumerate(shape.ids) if bears or node_id not in shape.controllers]
    kind = rng.choice((Kind.POWER, Kind.WIPE)) if wipeable else Kind.POWER
    places = wipeable if kind is Kind.WIPE else list(range(len(shape.ids)))
    number = rng.choice(places) + len(shape.ids) * rng.randrange(1, 4)
    return Fault(round(rng.uniform(0.5, until_s), 3), kind, round(rng.uniform(0.1, 3.0), 3), number)


class ClusterStage(Stage):
    def __init__(self, world: World, properties: dict[str, str], shape: Shape) -> None:
        self.shape = shape
        self.replication_factor = min(3, len(shape.brokers))
        super().__init__(world, properties)
        self.checks = ClusterChecks(self.cluster)
        self.administrators: dict[str, Job] = {}  # clients that start together with the faults

    def _build(self, properties: dict[str, str]) -> Machines:
        self.cluster = SimulatedCluster(self.world, self.shape, properties)
        return self.cluster

    def _client(self, name: str, job: Job) -> SimulatedClient:
        return RoutedClient(self.world, self.cluster.brokers, name, job)

    def _fault_injector(self, clients: Sequence[SimulatedClient]) -> FaultInjector:
        return Faults(self.world, list(self.cluster.nodes.values()), clients)

    def node_at(self, host: str) -> SimulatedNode | None:
        return next((node for node in self.cluster.nodes.values() if node.host == host), None)

    async def open(self) -> None:
        self.world.trace.note("cluster", str(self.shape))
        await super().open()
        await self.until(self.has_all_brokers, 30, "all brokers are in service")
        self.world.start(self.checks.run())

    async def inject_faults(self, faults: Plan, seconds: float, clients: Sequence[SimulatedClient]) -> None:
        administrators = [self.add(name, job) for name, job in self.administrators.items()]
        await super().inject_faults(faults, seconds, [*clients, *administrators])

    async def wait_until_whole(self) -> None:
        """After the faults and moves, wait until all replicas are in sync and equal."""
        await self.until(self.is_whole, CALM_S, "all replicas are in sync again")
        await self.until(self._are_equal, CALM_S, "all replicas are equal")

    def _are_equal(self) -> bool:
        """All replicas are in the ISR, so this takes only a few fetches."""
        self.checks.look()
        return self.checks.replicas_are_equal()

    def has_all_brokers(self) -> bool:
        image = self.cluster.image()
        return image is not None and all(
            image.cluster.is_active(broker_id) for broker_id in self.shape.brokers
        )

    def is_whole(self) -> bool:
        """Whether all brokers are unfenced, all partitions have leaders, all replicas are in sync, and no
        reassignment is under way."""
        image = self.cluster.image()
        return (
            self.has_all_brokers()
            and self.cluster.has_all_voters
            and image is not None
            and all(
                each.leader >= 0
                and set(each.isr) == set(each.replicas)
                and not each.adding_replicas
                and not each.removing_replicas
                for topic in image.topics.by_id.values()
                for each in topic.partitions.values()
            )
        )
