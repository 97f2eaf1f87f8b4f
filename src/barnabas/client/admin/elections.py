"""Leader elections: make the preferred replica the leader, or any replica where there is none.

In: a Cluster, the kind of election, partitions or all of them. Out: the error of each partition, if any.
"""

from collections.abc import Iterable
from enum import IntEnum

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.errors import problem_of
from barnabas.client.core.topology import TopicPartition, by_topic
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse


class ElectionType(IntEnum):
    PREFERRED = 0
    UNCLEAN = 1


class ElectionAdmin(AdminPart):
    async def elect_leaders(
        self, kind: ElectionType, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, KafkaError | None]:
        """Elect leaders of the given partitions; None asks for every partition that needs it."""
        request = ElectLeadersRequest(
            election_type=kind,
            topic_partitions=None
            if partitions is None
            else [
                ElectLeadersRequest.TopicPartitions(
                    topic=topic, partitions=[topic_partition.partition for topic_partition in some]
                )
                for topic, some in by_topic(partitions).items()
            ],
            timeout_ms=self.timeout_ms,
        )
        response = await self.ask(request, ElectLeadersResponse)
        return {
            TopicPartition(result.topic, each.partition_id): problem_of(each.error_code, each.error_message)
            for result in response.replica_election_results
            for each in result.partition_result
        }
