"""Faults of a cluster: the kinds of `faults`, brought over nodes that their numbers choose.

In: a plan, a cluster, its clients. Out: nodes that end, pause, lose links and disks, for as long as the plan
says; `mend` ends all of it. Every fault is undone by itself: two that overlap on one link end with the first.
Does not know: what clients do, what is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from barnabas.simulation.client import SimulatedClient
from barnabas.simulation.cluster import SimulatedCluster
from barnabas.simulation.faults import (
    MENDED_LATER,
    NODE_FAULTS,
    SLOW_BYTES_PER_S,
    SLOW_DELAY_MS,
    Fault,
    Kind,
    Plan,
)
from barnabas.simulation.node import SimulatedNode

CLOCK_JUMP_MS = 40_000
Way = tuple[str, str]


class ClusterFaults:
    def __init__(self, cluster: SimulatedCluster, clients: Sequence[SimulatedClient]) -> None:
        self._world = cluster.world
        self._nodes = list(cluster.nodes.values())
        self._clients = clients

    def schedule(self, faults: Plan) -> None:
        start = self._world.loop.time()
        for fault in faults:
            self._world.loop.call_at(start + fault.at_s, self._happen, fault)

    def _happen(self, fault: Fault) -> None:
        node, other = self._chosen(fault)
        self._world.trace.note("fault", fault, node.host)
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
            self._cut(fault, self._ways(fault, node, other))
        elif fault.kind is Kind.SLOW_NODES:
            self._slow(fault, [(node.host, other.host), (other.host, node.host)])
        elif self._clients:
            self._happen_to(self._clients[fault.number % len(self._clients)], node, fault)

    def _chosen(self, fault: Fault) -> tuple[SimulatedNode, SimulatedNode]:
        """The node that a fault's number means, and another one."""
        count = len(self._nodes)
        first = fault.number % count
        behind = 1 + fault.number // count % (count - 1)
        return self._nodes[first], self._nodes[(first + behind) % count]

    def _ways(self, fault: Fault, node: SimulatedNode, other: SimulatedNode) -> list[Way]:
        here, there = node.host, other.host
        if fault.kind is Kind.CUT_NODES_ONE_WAY:
            return [(here, there)]
        others = [there] if fault.kind is Kind.CUT_NODES else [each.host for each in self._nodes]
        return [way for each in others if each != here for way in ((here, each), (each, here))]

    def _happen_to(self, client: SimulatedClient, node: SimulatedNode, fault: Fault) -> None:
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
            ways = [(here, there)] if fault.kind is not Kind.CUT_FROM else []
            self._cut(fault, ways + ([(there, here)] if fault.kind is not Kind.CUT_TO else []))

    def _cut(self, fault: Fault, ways: Sequence[Way]) -> None:
        for way in ways:
            self._world.network.cut(*way)
            self._later(fault, partial(self._world.network.heal, *way))

    def _slow(self, fault: Fault, ways: Sequence[Way]) -> None:
        for way in ways:
            link = self._world.network.link(*way)
            link.set_speed(SLOW_DELAY_MS, SLOW_BYTES_PER_S)
            self._later(fault, partial(link.set_speed, None, None))

    def _later(self, fault: Fault, work: Callable[[], None]) -> None:
        self._world.loop.call_later(fault.duration_s, work)

    def mend(self) -> None:
        """No fault lasts any longer. For a callback of the harness."""
        self._world.trace.note("mend")
        network = self._world.network
        for node in self._nodes:
            node.resume()
            node.mend_disk()
            node.disk.stop_at(-1)
        for client in self._clients:
            client.process.resume()
        hosts = [node.host for node in self._nodes] + [client.host for client in self._clients]
        for here in hosts:
            for there in hosts:
                if here != there:
                    network.link(here, there).set_speed(None, None)
                    network.heal(here, there)
