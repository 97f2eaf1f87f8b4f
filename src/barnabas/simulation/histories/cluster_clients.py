"""Histories of groups, share groups and transactions on a cluster: the same clients and checks as on one
node, while coordinators fail over, leaders change, and partitions are moved.
"""

from __future__ import annotations

from barnabas.simulation.histories.cluster_stage import CALM_S, PROMISES, ClusterStage, cluster_plan, shape_of
from barnabas.simulation.histories.electorate import Electorate, changes_voters
from barnabas.simulation.histories.groups import GroupsHistory
from barnabas.simulation.histories.moving import Mover
from barnabas.simulation.histories.registry import RegistryHistory
from barnabas.simulation.histories.shares import SharesHistory
from barnabas.simulation.histories.stage import SYNCED, Stage
from barnabas.simulation.histories.streams import StreamsHistory
from barnabas.simulation.histories.transactions import TransactionsHistory
from barnabas.simulation.world.faults import Plan
from barnabas.simulation.world.world import World, rng_of

SECONDS = 6.0
FAULTS_MAX = 7


class ClusterMixin:
    """A mixin that runs the history of one node on a cluster. It must be the first base class."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)  # type: ignore[call-arg]
        rng = rng_of(seed, "cluster")
        self.shape = shape_of(rng)
        self.cluster_promise = rng.choice(PROMISES)
        self.movers = rng_of(seed, "movers").randrange(2)
        self.changes_voters = changes_voters(rng_of(seed, "voters"), self.cluster_promise, self.shape)
        self.promise = SYNCED  # no acknowledged record may be lost
        self.faults: Plan = cluster_plan(
            rng, self.cluster_promise, self.shape, until_s=SECONDS, count_max=FAULTS_MAX
        )

    def make_stage(self, world: World, properties: dict[str, str]) -> Stage:
        own = {name: value for name, value in properties.items() if name not in SYNCED.properties}
        stage = ClusterStage(world, {**own, **self.cluster_promise.properties}, self.shape)
        self._cluster_stage, self._mover, self._electorate = stage, Mover(stage), Electorate(stage)
        if self.movers:
            stage.administrators["mover"] = self._mover.run
        if self.changes_voters:
            stage.administrators["electorate"] = self._electorate.run
        return stage

    async def run(self, world: World, faults: Plan) -> dict[str, int]:
        counts: dict[str, int] = await super().run(world, faults)  # type: ignore[misc]
        await self._cluster_stage.until(
            self._cluster_stage.is_whole, CALM_S, "all replicas are in sync again"
        )
        return counts | {
            "reassignments begun": self._mover.moves,
            "voters wiped": self._cluster_stage.cluster.voters_wiped,
            "voters removed": self._electorate.removed,
        }


class ClusterGroupsHistory(ClusterMixin, GroupsHistory):
    name = "cluster-groups"
    seconds = 14.0  # long enough for sessions and rebalances to end after the last fault has begun


class ClusterStreamsHistory(ClusterMixin, StreamsHistory):
    name = "cluster-streams"
    seconds = 14.0  # as for groups


class ClusterTransactionsHistory(ClusterMixin, TransactionsHistory):
    name = "cluster-transactions"
    inputs_max = 30  # as many as can be processed while faults are injected
    pause_s = 0.1
    stable_may_fall = True

    async def settle(self) -> None:
        """A leader that is new may not show yet what the last one has acknowledged."""
        await self._cluster_stage.wait_until_whole()


class ClusterRegistryHistory(ClusterMixin, RegistryHistory):
    name = "cluster-registry"
    seconds = 14.0  # long enough for sessions to end and a new primary to write


class ClusterSharesHistory(ClusterMixin, SharesHistory):
    name = "cluster-shares"
    seconds = 9.0  # long enough for locks to run out after the last fault has begun
    pauses_s = (0.1, 0.3)

    async def settle(self) -> None:
        """A leader that is new may not show yet what the last one has acknowledged."""
        await self._cluster_stage.wait_until_whole()
