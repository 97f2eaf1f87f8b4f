"""Moving replicas: between brokers (reassignments), and between the log dirs of one broker.

In: a Cluster, the replicas that partitions shall have, or the dirs that replicas shall lie in. Out: the error
of each partition or replica, None where it was taken; where replicas lie now.
Does not know: how a plan is made, when it is done.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.errors import problem_of
from barnabas.client.core.topology import TopicPartition, by_topic
from barnabas.protocol import KafkaError
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


class ReassignmentAdmin(AdminPart):
    async def alter_reassignments(
        self,
        replicas: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_factor_change: bool = True,
    ) -> dict[TopicPartition, KafkaError | None]:
        """Begin to move partitions to these replicas; None ends what is under way."""
        nested = AlterPartitionReassignmentsRequest.ReassignableTopic
        chosen = {partition: None if each is None else list(each) for partition, each in replicas.items()}
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=self.timeout_ms,
            allow_replication_factor_change=allow_factor_change,
            topics=[
                nested(
                    name=name,
                    partitions=[
                        nested.ReassignablePartition(partition_index=each.partition, replicas=chosen[each])
                        for each in some
                    ],
                )
                for name, some in by_topic(replicas).items()
            ],
        )
        response = await self.ask(request, AlterPartitionReassignmentsResponse)
        return {
            TopicPartition(topic.name, each.partition_index): problem_of(each.error_code, each.error_message)
            for topic in response.responses
            for each in topic.partitions
        }

    async def alter_replica_log_dirs(self, dirs: Mapping[Replica, str]) -> dict[Replica, KafkaError | None]:
        """Begin to move replicas to other dirs of their brokers."""
        found: dict[Replica, KafkaError | None] = {}
        nested = AlterReplicaLogDirsRequest.AlterReplicaLogDir
        for broker in sorted({replica.broker for replica in dirs}):
            paths: dict[str, list[TopicPartition]] = {}
            for replica, path in dirs.items():
                if replica.broker == broker:
                    paths.setdefault(path, []).append(replica.where)
            request = AlterReplicaLogDirsRequest(
                dirs=[
                    nested(
                        path=path,
                        topics=[
                            nested.AlterReplicaLogDirTopic(
                                name=name, partitions=[topic_partition.partition for topic_partition in some]
                            )
                            for name, some in by_topic(moved).items()
                        ],
                    )
                    for path, moved in paths.items()
                ]
            )
            response = await self.cluster.ask_node(
                await self.node(broker), request, AlterReplicaLogDirsResponse
            )
            for topic in response.results:
                for each in topic.partitions:
                    topic_partition = TopicPartition(topic.topic_name, each.partition_index)
                    found[Replica(broker, topic_partition)] = problem_of(each.error_code)
        return found

    async def replica_log_dirs(self, replicas: Sequence[Replica]) -> dict[Replica, ReplicaDirs]:
        """Log dirs of replicas; replicas that a broker does not have are missing."""
        nested = DescribeLogDirsRequest.DescribableLogDirTopic
        found: dict[Replica, ReplicaDirs] = {}
        for broker in sorted({replica.broker for replica in replicas}):
            topics = by_topic(replica.where for replica in replicas if replica.broker == broker)
            request = DescribeLogDirsRequest(
                topics=[
                    nested(topic=name, partitions=[topic_partition.partition for topic_partition in some])
                    for name, some in topics.items()
                ]
            )
            response = await self.cluster.ask_node(await self.node(broker), request, DescribeLogDirsResponse)
            for result in response.results:
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
