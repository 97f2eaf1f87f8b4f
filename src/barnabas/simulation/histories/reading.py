"""A reader of one partition in a history: fetches from its position with one isolation level.

In: a client, a partition. Out: records in order, high watermark and last stable offset of each response.
Does not know: what the records mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.client.core.fetching import ConsumerRecord, read_partition
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import ErrorCode
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.simulation.world.client import SimulatedClient

BY_NAME_MAX = 12  # the last version of Fetch that names topics
FETCH_BYTES = 1 << 20


@dataclass(slots=True)
class Reader:
    client: SimulatedClient
    where: TopicPartition
    read_committed: bool
    position: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    error: ErrorCode = ErrorCode.NONE

    async def fetch(self, wait_ms: int) -> list[ConsumerRecord] | None:
        """Fetch records, perhaps none. None if there was no response, or an `error`."""
        partition = FetchRequest.FetchTopic.FetchPartition(
            partition=self.where.partition, fetch_offset=self.position, partition_max_bytes=FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=int(self.read_committed),
            topics=[FetchRequest.FetchTopic(topic=self.where.topic, partitions=[partition])],
        )
        self.error = ErrorCode.NONE
        response = await self.client.ask(request, FetchResponse, purpose="fetch", version_max=BY_NAME_MAX)
        if response is None:
            return None
        data = response.responses[0].partitions[0] if response.responses else None
        self.error = ErrorCode(response.error_code or (data.error_code if data is not None else 0))
        if self.error or data is None:
            return None
        self.high_watermark, self.last_stable_offset = data.high_watermark, data.last_stable_offset
        records, self.position = read_partition(
            self.where, data, self.position, read_committed=self.read_committed
        )
        return records

    @property
    def is_at_end(self) -> bool:
        """Whether all readable records were read."""
        end = self.last_stable_offset if self.read_committed else self.high_watermark
        return end >= 0 and self.position >= end
