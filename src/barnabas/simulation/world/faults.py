"""Faults of a history: their kinds, times and durations.

In: random numbers and the allowed kinds. Out: a plan, that is a list of faults that can be printed, repeated
and shortened. `Faults` injects them into nodes and clients.
Does not know: what clients do, what is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from random import Random

from barnabas.simulation.world.client import SimulatedClient
from barnabas.simulation.world.node import SimulatedNode
from barnabas.simulation.world.world import World

SLOW_DELAY_MS = 200.0
SLOW_BYTES_PER_S = 20_000.0
OPERATIONS_AHEAD_MAX = 60
FREE_BYTES = 100  # left on a full disk, times the fault's number
DURATION_S_MEAN = 1.0
DURATION_S_MAX = 20.0
CLOCK_JUMP_MS = 40_000
Direction = tuple[str, str]  # from one host to another


class Kind(Enum):
    """The first five end the node."""

    KILL = "kill"
    POWER = "lose power"
    KILL_AT_OPERATION = "kill at disk operation"
    POWER_AT_OPERATION = "lose power at disk operation"
    STOP = "stop in order"
    PAUSE = "pause the node"
    PAUSE_CLIENT = "pause client"
    KILL_CLIENT = "kill client"
    CUT = "cut client off"
    CUT_TO = "cut the way from client"
    CUT_FROM = "cut the way to client"
    SLOW = "slow down client"
    RESET = "reset the connections of client"
    RESET_ALL = "reset all connections"
    FULL = "fill the disk"
    FAILING = "let the disk fail"
    # Faults of clusters. The fault's number selects the node or the two nodes.
    CUT_NODES = "cut the nodes' link"
    CUT_NODES_ONE_WAY = "cut the nodes' link one way"
    ISOLATE = "cut the node off the others"
    SLOW_NODES = "slow down the nodes' link"
    RESET_NODES = "reset the connections of node"
    WIPE = "wipe the disk of node"
    CLOCK = "let the clock jump of node"


POWER_KINDS = (Kind.POWER, Kind.POWER_AT_OPERATION)
DISK_KINDS = (Kind.FULL, Kind.FAILING)
CLUSTER_KINDS = (
    Kind.CUT_NODES,
    Kind.CUT_NODES_ONE_WAY,
    Kind.ISOLATE,
    Kind.SLOW_NODES,
    Kind.RESET_NODES,
    Kind.WIPE,
    Kind.CLOCK,
)
ALL_KINDS: tuple[Kind, ...] = tuple(kind for kind in Kind if kind not in DISK_KINDS + CLUSTER_KINDS)
WITHOUT_POWER = tuple(kind for kind in ALL_KINDS if kind not in POWER_KINDS)


@dataclass(frozen=True, slots=True)
class Fault:
    at_s: float
    kind: Kind
    duration_s: float
    number: int  # which client, or how many disk operations ahead

    def __str__(self) -> str:
        return f"at {self.at_s:.3f} s {self.kind.value} ({self.number}) for {self.duration_s:.3f} s"


Plan = Sequence[Fault]


def plan(
    rng: Random,
    kinds: Sequence[Kind],
    *,
    until_s: float,
    count_max: int,
    duration_s_mean: float = DURATION_S_MEAN,
) -> list[Fault]:
    """Faults in the order of their time, until `until_s`."""
    faults = [
        Fault(
            at_s=round(rng.uniform(0.2, until_s), 3),
            kind=rng.choice(kinds),
            duration_s=round(min(rng.expovariate(1 / duration_s_mean) + 0.05, DURATION_S_MAX), 3),
            number=rng.randrange(1, OPERATIONS_AHEAD_MAX),
        )
        for _ in range(rng.randrange(count_max + 1))
    ]
    return sorted(faults, key=lambda fault: fault.at_s)


class Faults:
    """Injects faults into one node or several, selected by the fault's number. All of it runs in callbacks of
    the harness. `repair_all` ends faults that still last. Two overlapping faults of one link end with the
    first."""

    def __init__(
        self, world: World, nodes: Sequence[SimulatedNode], clients: Sequence[SimulatedClient]
    ) -> None:
        self._world = world
        self._nodes = nodes
        self._clients = clients

    def schedule(self, faults: Plan) -> None:
        start = self._world.loop.time()
        for fault in faults:
            self._world.loop.call_at(start + fault.at_s, self._inject, fault)

    def _inject(self, fault: Fault) -> None:
        node, other = self._chosen(fault)
        self._world.trace.note("fault", str(fault), node.host)
        if node.process is not None and node.process.is_alive:
            self._world.happened[fault.kind.value] += 1
        network = self._world.network
        if fault.kind in NODE_FAULTS:
            NODE_FAULTS[fault.kind](node, fault)
            if fault.kind in MENDED_LATER:
                self._later(fault, partial(MENDED_LATER[fault.kind], node))
        elif fault.kind is Kind.STOP:
            node.down_s = fault.duration_s
            self._world.start(node.stop())
        elif fault.kind is Kind.WIPE:
            node.down_s = fault.duration_s
            node.wipe()
        elif fault.kind is Kind.CLOCK:
            node.jump_clock(CLOCK_JUMP_MS if fault.number % 2 else -CLOCK_JUMP_MS)
        elif fault.kind in (Kind.RESET_NODES, Kind.RESET_ALL):
            network.reset_connections(node.host)
        elif fault.kind in (Kind.CUT_NODES, Kind.CUT_NODES_ONE_WAY, Kind.ISOLATE):
            self._cut(fault, self._directions(fault, node, other))
        elif fault.kind is Kind.SLOW_NODES:
            self._slow(fault, [(node.host, other.host), (other.host, node.host)])
        elif self._clients:
            self._inject_into_client(self._clients[fault.number % len(self._clients)], node, fault)

    def _chosen(self, fault: Fault) -> tuple[SimulatedNode, SimulatedNode]:
        """The node that a fault's number selects, and another one if there is one."""
        count = len(self._nodes)
        if count == 1:
            return self._nodes[0], self._nodes[0]
        first = fault.number % count
        behind = 1 + fault.number // count % (count - 1)
        return self._nodes[first], self._nodes[(first + behind) % count]

    def _directions(self, fault: Fault, node: SimulatedNode, other: SimulatedNode) -> list[Direction]:
        here, there = node.host, other.host
        if fault.kind is Kind.CUT_NODES_ONE_WAY:
            return [(here, there)]
        others = [there] if fault.kind is Kind.CUT_NODES else [each.host for each in self._nodes]
        return [way for each in others if each != here for way in ((here, each), (each, here))]

    def _inject_into_client(self, client: SimulatedClient, node: SimulatedNode, fault: Fault) -> None:
        here, there = client.host, node.host
        if fault.kind is Kind.PAUSE_CLIENT:
            client.process.pause()
            self._later(fault, client.process.resume)
        elif fault.kind is Kind.KILL_CLIENT:
            client.kill(fault.duration_s)
        elif fault.kind is Kind.RESET:
            self._world.network.reset_connections(here)
        elif fault.kind is Kind.SLOW:
            self._slow(fault, [(here, there), (there, here)])
        else:
            directions = [(here, there)] if fault.kind is not Kind.CUT_FROM else []
            self._cut(fault, directions + ([(there, here)] if fault.kind is not Kind.CUT_TO else []))

    def _cut(self, fault: Fault, directions: Sequence[Direction]) -> None:
        for way in directions:
            self._world.network.cut(*way)
            self._later(fault, partial(self._world.network.heal, *way))

    def _slow(self, fault: Fault, directions: Sequence[Direction]) -> None:
        for way in directions:
            link = self._world.network.link(*way)
            link.set_speed(SLOW_DELAY_MS, SLOW_BYTES_PER_S)
            self._later(fault, partial(link.set_speed, None, None))

    def _later(self, fault: Fault, work: Callable[[], None]) -> None:
        self._world.loop.call_later(fault.duration_s, work)

    def repair_all(self) -> None:
        """End all faults. Call this in a callback of the harness."""
        self._world.trace.note("mend")
        network = self._world.network
        for node in self._nodes:
            node.resume()
            node.repair_disk()
            node.disk.stop_at(-1)
        for client in self._clients:
            client.process.resume()
        hosts = [node.host for node in self._nodes] + [client.host for client in self._clients]
        for here in hosts:
            for there in hosts:
                if here != there:
                    network.link(here, there).set_speed(None, None)
                    network.heal(here, there)


def end_node(node: SimulatedNode, fault: Fault) -> None:
    node.down_s = fault.duration_s
    if fault.kind is Kind.KILL:
        node.kill()
    elif fault.kind is Kind.POWER:
        node.lose_power()
    else:
        node.stop_at_operation(fault.number, loses_power=fault.kind is Kind.POWER_AT_OPERATION)


NODE_FAULTS: dict[Kind, Callable[[SimulatedNode, Fault], None]] = {
    Kind.KILL: end_node,
    Kind.POWER: end_node,
    Kind.KILL_AT_OPERATION: end_node,
    Kind.POWER_AT_OPERATION: end_node,
    Kind.PAUSE: lambda node, fault: node.pause(),
    Kind.FULL: lambda node, fault: node.fill_disk(fault.number * FREE_BYTES),
    Kind.FAILING: lambda node, fault: node.break_disk(),
}
MENDED_LATER: dict[Kind, Callable[[SimulatedNode], None]] = {
    Kind.PAUSE: SimulatedNode.resume,
    Kind.FULL: SimulatedNode.repair_disk,
    Kind.FAILING: SimulatedNode.repair_disk,
}
