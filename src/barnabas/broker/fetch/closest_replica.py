"""The choice of the replica that a consumer reads from (KIP-392): one in its own rack.

In: the consumer's rack and listener, the in-sync replicas of a partition with their log end offsets. Out: a
broker id. As in Kafka's RackAwareReplicaSelector: the leader if it is in that rack, else the replica there
with the largest log end offset.
Does not know: fetching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker, SelectReplica
    from barnabas.broker.partitions.partition import Partition

RACK_AWARE = ("org.apache.kafka.common.replica.RackAwareReplicaSelector", "RackAwareReplicaSelector")


def selector_of(broker: Broker) -> SelectReplica | None:
    """The selector that `replica.selector.class` names; None: consumers read from leaders."""
    if broker.settings["replica.selector.class"] not in RACK_AWARE:
        return None

    def in_rack(partition: Partition, rack: str, listener: str) -> int:
        brokers = broker.image.cluster.brokers
        own = brokers.get(broker.node_id)
        if own is not None and own.rack == rack:
            return broker.node_id
        best, best_end = broker.node_id, -1
        for replica in partition.state.isr:
            follower = partition.state.followers.get(replica)
            found = brokers.get(replica)
            if (
                follower is not None
                and found is not None
                and found.rack == rack
                and not found.fenced
                and listener in found.listeners
                and follower.log_end_offset > best_end
            ):
                best, best_end = replica, follower.log_end_offset
        return best

    return in_rack
