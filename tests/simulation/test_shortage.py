"""Voters that cannot store their votes for lack of descriptors: no node leads meanwhile, and no node
stops."""

from __future__ import annotations

import asyncio
import errno

from barnabas.simulation.histories.cluster_stage import ClusterStage
from barnabas.simulation.histories.stage import create_topic
from barnabas.simulation.world.cluster import Shape
from barnabas.simulation.world.disk import READ, Failure
from barnabas.simulation.world.world import World

SHAPE = Shape((1, 2, 3), (1, 2, 3))
PATIENCE_S = 60
STATE = "/data/kafka/__cluster_metadata-0/quorum-state"


def leader_of(stage: ClusterStage) -> int:
    """The node that leads the quorum, -1 for none."""
    for node_id, node in stage.cluster.nodes.items():
        if node.metadata is not None and node.metadata.leader is not None:
            return node_id
    return -1


def test_votes_are_kept_when_there_are_descriptors_again() -> None:
    with World(7) as world:

        async def history() -> None:
            stage = ClusterStage(world, {}, SHAPE)
            await stage.open()
            await stage.until(lambda: leader_of(stage) > 0, PATIENCE_S, "somebody leads")
            old = leader_of(stage)
            others = [node for node_id, node in stage.cluster.nodes.items() if node_id != old]
            lives = [node.lives for node in others]
            epoch = max(node.metadata.election_state.epoch for node in others if node.metadata is not None)
            for node in others:
                node.disk.failures.append(Failure(frozenset({READ}), errno.EMFILE, STATE))
            stage.cluster.nodes[old].down_s = 10.0
            world.loop.call_soon(stage.cluster.nodes[old].kill)

            await asyncio.sleep(5.0)
            assert leader_of(stage) == -1
            for node in others:
                assert node.metadata is not None
                assert node.metadata.error is None
                assert node.metadata.election_state.epoch == epoch
                node.disk.failures.clear()

            await stage.until(lambda: leader_of(stage) > 0, PATIENCE_S, "somebody leads again")
            await create_topic(stage, "orders", 1)
            await stage.wait_until_whole()
            assert [node.lives for node in others] == lives

        world.run(history(), 600)
