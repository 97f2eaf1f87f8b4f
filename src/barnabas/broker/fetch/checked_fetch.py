"""A consumer's fetch where rights are checked: for each partition, each time that it is read.

In: a request within its session, the rights of the caller. Out: as `ConsumerFetch`; partitions of topics that
the caller may not read have an error. A right that is lost while a fetch waits holds for its response too.
Does not know: rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.fetch.consumer_fetch import ConsumerFetch
from barnabas.broker.fetch.partition_data import PartitionData
from barnabas.protocol import ApiKey, ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.broker.access.rights import Rights
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.partitions.partition import Partition
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.replication.fetch_sessions import FetchContext, SessionPartition

FETCH = int(ApiKey.FETCH)


class CheckedFetch(ConsumerFetch):
    __slots__ = ("_reads", "_rights")

    def __init__(
        self,
        request: FetchRequest,
        session: FetchContext,
        context: RequestContext,
        rights: Rights,
        *,
        reads: bool,
    ) -> None:
        """`reads` is False for a follower that may not follow: every partition is refused."""
        super().__init__(request, session, context)
        self._rights = rights
        self._reads = reads

    def refuse(self, asked: SessionPartition, error: KafkaError) -> PartitionData:
        data = super().refuse(asked, error)
        if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            data.aborted_transactions = []
        return data

    def find(self, asked: SessionPartition) -> Partition:
        name = asked.topic
        if not name and self._reads:
            topic = self.broker.image.topics.by_id.get(asked.topic_id)
            if topic is None:
                return super().find(asked)  # which says that the id is unknown
            name = topic.name
        if not self._reads or not self._rights.allow_read(name, FETCH):
            asked.attachment = None
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return super().find(asked)
