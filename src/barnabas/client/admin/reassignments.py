"""Moving replicas: between brokers (reassignments), and between the log dirs of one broker.

In: a Cluster, the replicas that partitions shall have, or the dirs that replicas shall lie in. Out: the error
of each partition or replica, None where it was taken; where replicas lie now.
Does not know: how a plan is made, when it is done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import check, error_of
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse


class Replica(NamedTuple):
    broker: int
    where: TopicPartition

    def __str__(self) -> str:
        return f"{self.where}-{self.broker}"


@dataclass(frozen=True, slots=True)
class ReplicaDirs:
    """The dir that a replica lies in, and the one that it moves to, if it moves."""

    current: str | None = None
    future: str | None = None


class ReassignmentAdmin:
    def __init__(self, cluster: ClusterCore) -> None:
        self.cluster = cluster

    async def alter_reassignments(
        self,
        replicas: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_factor_change: bool = True,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Begin to move partitions to these replicas; None ends what is under way."""
        nested = AlterPartitionReassignmentsRequest.ReassignableTopic
        topics: dict[
            str, list[AlterPartitionReassignmentsRequest.ReassignableTopic.ReassignablePartition]
        ] = {}
        for where, wanted in replicas.items():
            topics.setdefault(where.topic, []).append(
                nested.ReassignablePartition(
                    partition_index=where.partition, replicas=None if wanted is None else list(wanted)
                )
            )
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=int(self.cluster.request_timeout_ms),
            allow_replication_factor_change=allow_factor_change,
            topics=[nested(name=name, partitions=parts) for name, parts in topics.items()],
        )

        async def attempt() -> AlterPartitionReassignmentsResponse:
            answer = await self.cluster.ask(request, AlterPartitionReassignmentsResponse)
            check(answer.error_code, answer.error_message)
            return answer

        answer = await self.cluster.retrying(attempt)
        return {
            TopicPartition(topic.name, each.partition_index): (
                error_of(each.error_code, each.error_message) if each.error_code else None
            )
            for topic in answer.responses
            for each in topic.partitions
        }

    async def alter_replica_log_dirs(self, dirs: Mapping[Replica, str]) -> dict[Replica, KafkaError | None]:
        """Begin to move replicas to other dirs of their brokers."""
        found: dict[Replica, KafkaError | None] = {}
        nested = AlterReplicaLogDirsRequest.AlterReplicaLogDir
        for broker in sorted({replica.broker for replica in dirs}):
            paths: dict[str, dict[str, list[int]]] = {}
            for replica, path in dirs.items():
                if replica.broker == broker:
                    topics = paths.setdefault(path, {})
                    topics.setdefault(replica.where.topic, []).append(replica.where.partition)
            request = AlterReplicaLogDirsRequest(
                dirs=[
                    nested(
                        path=path,
                        topics=[
                            nested.AlterReplicaLogDirTopic(name=name, partitions=parts)
                            for name, parts in topics.items()
                        ],
                    )
                    for path, topics in paths.items()
                ]
            )
            node = (await self.cluster.retrying(self.cluster.refresh)).nodes.get(broker)
            if node is None:
                raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker} is not there")
            answer = await self.cluster.ask_node(node, request, AlterReplicaLogDirsResponse)
            for topic in answer.results:
                for each in topic.partitions:
                    where = TopicPartition(topic.topic_name, each.partition_index)
                    found[Replica(broker, where)] = error_of(each.error_code) if each.error_code else None
        return found

    async def replica_log_dirs(self, replicas: Sequence[Replica]) -> dict[Replica, ReplicaDirs]:
        """Where replicas lie; those that a broker does not have are missing."""
        nested = DescribeLogDirsRequest.DescribableLogDirTopic
        found: dict[Replica, ReplicaDirs] = {}
        for broker in sorted({replica.broker for replica in replicas}):
            topics: dict[str, list[int]] = {}
            for replica in replicas:
                if replica.broker == broker:
                    topics.setdefault(replica.where.topic, []).append(replica.where.partition)
            node = (await self.cluster.retrying(self.cluster.refresh)).nodes.get(broker)
            if node is None:
                raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"broker {broker} is not there")
            request = DescribeLogDirsRequest(
                topics=[nested(topic=name, partitions=parts) for name, parts in topics.items()]
            )
            answer = await self.cluster.ask_node(node, request, DescribeLogDirsResponse)
            for result in answer.results:
                for topic in result.topics:
                    for each in topic.partitions:
                        replica = Replica(broker, TopicPartition(topic.name, each.partition_index))
                        known = found.get(replica, ReplicaDirs())
                        found[replica] = (
                            ReplicaDirs(known.current, result.log_dir)
                            if each.is_future_key
                            else ReplicaDirs(result.log_dir, known.future)
                        )
        return found
