"""The files of an empty partition, on its leader and on its followers."""

from barnabas.broker.partitions.partition import Partition
from barnabas.simulation.histories.cluster_stage import ClusterStage
from barnabas.simulation.histories.stage import create_topic
from barnabas.simulation.world.cluster import Shape
from barnabas.simulation.world.world import World


def test_leader_epochs_are_in_every_folder_as_apache_kafka_leaves_them() -> None:
    """A leader's has the epoch that it began with, a follower's is empty."""
    found: dict[bool, set[bytes]] = {True: set(), False: set()}

    async def history() -> None:
        stage = ClusterStage(world, {}, Shape((1,), (2, 3, 4)))
        await stage.open()
        await create_topic(stage, "idle", 3)
        await stage.until(stage.is_whole, 60, "all replicas are in sync")
        for node in stage.cluster.nodes.values():
            if node.node is not None and node.node_id in stage.shape.brokers:
                for partition in node.node.broker.partitions:
                    found[partition.is_leader].add(epochs_of(partition))

    with World(3) as world:
        world.run(history(), 300)
    assert found == {True: {b"0\n1\n0 0\n"}, False: {b""}}


def epochs_of(partition: Partition) -> bytes:
    log = partition.log
    return log.context.disk.read(f"{log.directory}/leader-epoch-checkpoint")
