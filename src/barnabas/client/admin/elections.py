"""Leader elections: make the preferred replica the leader, or any replica where there is none.

In: a Cluster, the kind of election, partitions or all of them. Out: the error of each partition, if any.
"""

from collections.abc import Iterable
from enum import IntEnum

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import check, error_of
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


class ElectionAdmin:
    def __init__(self, cluster: ClusterCore) -> None:
        self.cluster = cluster

    async def elect_leaders(
        self, kind: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect leaders of the given partitions; None asks for every partition that needs it."""
        by_topic: dict[str, list[int]] = {}
        for where in partitions or ():
            by_topic.setdefault(where.topic, []).append(where.partition)
        request = ElectLeadersRequest(
            election_type=kind,
            topic_partitions=None
            if partitions is None
            else [
                ElectLeadersRequest.TopicPartitions(topic=topic, partitions=indexes)
                for topic, indexes in by_topic.items()
            ],
            timeout_ms=int(self.cluster.request_timeout_ms),
        )

        async def attempt() -> ElectLeadersResponse:
            answer = await self.cluster.ask(request, ElectLeadersResponse)
            check(answer.error_code)
            return answer

        answer = await self.cluster.retrying(attempt)
        return {
            TopicPartition(result.topic, each.partition_id): (
                error_of(each.error_code, each.error_message) if each.error_code else None
            )
            for result in answer.replica_election_results
            for each in result.partition_result
        }
