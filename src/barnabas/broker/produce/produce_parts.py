"""A produce request for many partitions, appended in parts of a few: other requests run between the parts.

In: a request, the function that appends one. Out: one response for all parts, when the last is written, or
committed with `acks=all`. Each part is written before the next begins, so that opening the files of thousands
of partitions does not block the event loop.
Does not know: how a part is appended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from barnabas.protocol import ErrorCode, KafkaError, Message
from barnabas.protocol.messages.produce import ProduceRequest, ProduceResponse
from barnabas.runtime.pieces import WaitingSteps

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.produce.pending_responses import Refuse
    from barnabas.broker.produce.purgatory import Wait
    from barnabas.broker.wire.channel import Channel

Data = ProduceRequest.TopicProduceData
Topic = ProduceResponse.TopicProduceResponse
Append = Callable[[ProduceRequest, "RequestContext"], Message | Awaitable[Message | None] | None]
PARTITIONS_AT_ONCE_MAX = 64
PARTITIONS_A_PART = 8


def is_long(request: ProduceRequest) -> bool:
    """Whether the request names many partitions, or many topics. Most name one partition."""
    topics = request.topic_data
    if len(topics) == 1:
        return len(topics[0].partition_data) > PARTITIONS_AT_ONCE_MAX
    return (
        len(topics) > PARTITIONS_AT_ONCE_MAX
        or sum(len(data.partition_data) for data in topics) > PARTITIONS_AT_ONCE_MAX
    )


async def append_in_parts(
    request: ProduceRequest, context: RequestContext, append: Append, refuse: Refuse
) -> Message | None:
    """Call `append` with each part; `refuse` puts an error into a response. The records are not in the arena,
    which other requests use between the parts."""
    parts = Parts(context, refuse)
    await context.broker.pieces.run(parts.steps(request, append))
    if request.acks == 0 or parts.is_closed:
        return None
    response = ProduceResponse(responses=list(parts.topics.values()), node_endpoints=parts.node_endpoints)
    if parts.waits:
        context.channel.respond_after_commit(response, parts.waits, request.timeout_ms)
        return None
    return response


class Parts:
    """Replaces the channel while parts are appended, and collects their responses."""

    def __init__(self, context: RequestContext, refuse: Refuse) -> None:
        self._channel: Channel = context.channel
        self._partitions = context.broker.partitions
        self._refuse = refuse
        self._context = copy(context)
        self._context.channel = cast(Any, self)
        self._found: ProduceResponse | None = None
        self._part_waits: list[Wait] = []
        self.topics: dict[tuple[str, bytes], Topic] = {}
        self.node_endpoints: list[ProduceResponse.NodeEndpoint] = []
        self.waits: list[Wait] = []
        self.is_closed = False

    def steps(self, request: ProduceRequest, append: Append) -> WaitingSteps[None]:
        tick = self._channel.tick
        for part in split(request):
            self._found, self._part_waits = None, []
            response = append(part, self._context)
            if response is not None and not isinstance(response, Message):
                task = asyncio.ensure_future(response)
                yield task
                response = task.result()
            found = response if isinstance(response, ProduceResponse) else self._found
            written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            tick.when_durable(partial(written.set_result, None))
            tick.close()
            yield written  # at once, unless a log must be synced first
            if found is not None:
                self._add(found)
            if self.is_closed:
                return

    def _add(self, found: ProduceResponse) -> None:
        failed = {
            partition: error
            for partition, base_offset in self._appended(found)
            if (error := not_written(partition, base_offset)) is not None
        }
        for partition, error in failed.items():
            self._refuse(found, partition, error)
        self.waits += [wait for wait in self._part_waits if wait[0] not in failed]
        for topic in found.responses:
            known = self.topics.setdefault((topic.name, topic.topic_id), topic)
            if known is not topic:
                known.partition_responses += topic.partition_responses
        known_nodes = {node.node_id for node in self.node_endpoints}
        self.node_endpoints += [node for node in found.node_endpoints if node.node_id not in known_nodes]

    def _appended(self, found: ProduceResponse) -> Iterator[tuple[Partition, int]]:
        for topic in found.responses:
            for each in topic.partition_responses:
                partition = self._partitions.get(topic.name, each.index) or self._partitions.get_by_id(
                    topic.topic_id, each.index
                )
                if not each.error_code and partition is not None:
                    yield partition, each.base_offset

    # -- what appending asks of a channel ----------------------------------------------------------

    @property
    def tick(self) -> Any:
        return self._channel.tick

    def respond_after_tick(self, response: Message, refuse: Refuse) -> Message | None:
        return response

    def respond_after_commit(self, response: ProduceResponse, waits: list[Wait], timeout_ms: int) -> None:
        self._found, self._part_waits = response, waits

    def refuse(self, reason: str) -> None:
        self.is_closed = True
        self._channel.refuse(reason)


def split(request: ProduceRequest) -> Iterator[ProduceRequest]:
    """Split the request into requests for a few partitions."""
    for data in request.topic_data:
        for first in range(0, len(data.partition_data), PARTITIONS_A_PART):
            some = data.partition_data[first : first + PARTITIONS_A_PART]
            yield ProduceRequest(
                transactional_id=request.transactional_id,
                acks=request.acks,
                timeout_ms=request.timeout_ms,
                topic_data=[Data(name=data.name, topic_id=data.topic_id, partition_data=some)],
            )


def not_written(partition: Partition, base_offset: int) -> KafkaError | None:
    """The error if a staged batch was not written, or not synced as `flush.messages` requires; else None."""
    log = partition.log
    is_lost = log.written_offset <= base_offset
    if not is_lost and partition.syncs_by_count:
        is_lost = log.recovery_point <= base_offset and log.is_count_due()
    if is_lost:
        return log.failure or KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"a batch of {partition} could not be written"
        )
    return None
