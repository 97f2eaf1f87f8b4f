"""Deleting records: everything before an offset of a partition, asked of its leader.

In: a Cluster, an offset for each partition. Out: the new low watermark of each, or its error.
"""

from collections.abc import Mapping

from barnabas.client.admin.part import AdminPart
from barnabas.client.core.asking import ask_leaders
from barnabas.client.core.errors import error_of
from barnabas.client.core.topology import Node, TopicPartition, by_topic
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

HIGH_WATERMARK = -1  # as an offset: delete all that consumers may see


class RecordAdmin(AdminPart):
    async def delete_records(
        self, before: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | KafkaError]:
        """Delete what is before each offset."""
        nested = DeleteRecordsRequest.DeleteRecordsTopic

        async def question(
            leader: Node, wanted: Mapping[TopicPartition, int]
        ) -> dict[TopicPartition, int | KafkaError]:
            request = DeleteRecordsRequest(
                topics=[
                    nested(
                        name=name,
                        partitions=[
                            nested.DeleteRecordsPartition(partition_index=each.partition, offset=wanted[each])
                            for each in some
                        ],
                    )
                    for name, some in by_topic(wanted).items()
                ],
                timeout_ms=self.timeout_ms,
            )
            response = await self.cluster.ask_node(leader, request, DeleteRecordsResponse)
            return {
                TopicPartition(topic.name, each.partition_index): (
                    error_of(each.error_code) if each.error_code else each.low_watermark
                )
                for topic in response.topics
                for each in topic.partitions
            }

        return await ask_leaders(self.cluster, before, question)
