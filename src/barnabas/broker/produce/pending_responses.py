"""Responses that leave when the tick is written, in the order of the channel's requests.

In: a response, as a message or in bytes. Out: `finish` puts it into the channel's output, with an error for
each partition that could not be written. There are four kinds: `MessageResponse` and `ProduceResponses` here,
`CommittedResponse` (waits for followers) and `SyncedResponse` (waits for a sync).
Does not know: files, sockets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any, Protocol, cast

from barnabas.protocol import KafkaError, Message
from barnabas.protocol.codec import codec
from barnabas.protocol.messages.produce import ProduceResponse

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.wire.channel import Channel

Failures = dict["Partition", KafkaError]
Refuse = Callable[[Message, "Partition", KafkaError], None]
CORRELATION_AT, BODY_AT = 4, 8


class PendingResponse(Protocol):
    channel: Channel

    def finish(self, failed: Failures) -> None:
        """Give the response to the channel. The tick is written, except the partitions that failed."""

    def rests_on(self, due: Collection[Partition]) -> Collection[Partition]:
        """The partitions of `due` that must be synced before the response may leave."""


class MessageResponse:
    """A response that is encoded when it leaves. `refuse` puts the error of a partition into it."""

    __slots__ = ("_correlation_id", "_refuse", "_response", "_route", "channel")

    def __init__(
        self,
        channel: Channel,
        route: Route,
        correlation_id: int,
        response: Message | bytes,
        refuse: Refuse | None = None,
    ) -> None:
        self.channel = channel
        self._route = route
        self._correlation_id = correlation_id
        self._response = response
        self._refuse = refuse

    def finish(self, failed: Failures) -> None:
        if failed and self._refuse is not None:
            assert isinstance(self._response, Message)
            for partition, error in failed.items():
                self._refuse(self._response, partition, error)
        self.channel.encode(self._route, self._correlation_id, self._response)

    def rests_on(self, due: Collection[Partition]) -> Collection[Partition]:
        if self._refuse is None:  # it only keeps its place
            return ()
        if isinstance(self._response, ProduceResponse):
            return named_in(self._response, due)
        return [partition for partition in due if partition.is_internal]  # a response of a coordinator


class ProduceResponses:
    """Consecutive responses of a channel to produce requests of one version, encoded for success. If a
    partition could not be written, they are decoded and changed. Each channel has one object and uses it
    again after it was sent."""

    __slots__ = ("channel", "is_last", "responses", "route")

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.route: Route
        self.responses: list[bytes] = []
        self.is_last = False  # the tick's last response of this channel is this one

    def finish(self, failed: Failures) -> None:
        channel, route = self.channel, self.route
        responses, self.responses = self.responses, []
        self.is_last = False
        if failed:
            for response in responses:
                refused = decoded(response, route)
                for partition, error in failed.items():
                    not_written(refused, partition, error)
                channel.encode(route, correlation_id_of(response), refused)
        else:
            channel.put_encoded(responses)
        channel.sent_times = route.times
        counts = channel.tick.counts
        counts[route] = counts.get(route, 0) + len(responses)

    def rests_on(self, due: Collection[Partition]) -> Collection[Partition]:
        found = []
        for partition in due:
            names = partition.topic.encode(), partition.topic_id
            for response in self.responses:
                # Decode only responses that may name the topic: most do not.
                if (names[0] in response or names[1] in response) and named_in(
                    decoded(response, self.route), (partition,)
                ):
                    found.append(partition)
                    break
        return found


NO_RESPONSES = ProduceResponses(cast(Any, None))
"""For a closed connection."""


def respond_to_producer(channel: Channel, route: Route, response: bytes) -> None:
    """Send the response to a produce request when the tick is written."""
    tick, produced = channel.tick, channel.produced
    if not tick.is_open:  # a duplicate batch: nothing to write
        channel.put_encoded([response])
        route.times.observe(0)
        return
    if produced.responses:
        if produced.is_last and produced.route is route:
            produced.responses.append(response)
            return
        produced = channel.produced = ProduceResponses(channel)
    produced.route = route
    produced.responses.append(response)
    tick.respond(produced)
    produced.is_last = True


def decoded(response: bytes, route: Route) -> ProduceResponse:
    body_at = BODY_AT + 1 if route.flexible_response else BODY_AT
    message: ProduceResponse = codec(ProduceResponse, route.version).decode(response, body_at)[0]
    return message


def named_in(response: ProduceResponse, partitions: Iterable[Partition]) -> list[Partition]:
    return [
        partition
        for partition in partitions
        for topic in response.responses
        if topic.topic_id == partition.topic_id or topic.name == partition.topic
        for each in topic.partition_responses
        if each.index == partition.index
    ]


def correlation_id_of(response: bytes) -> int:
    return int.from_bytes(response[CORRELATION_AT:BODY_AT], "big", signed=True)


def not_written(response: Message, partition: Partition, error: KafkaError) -> None:
    """Put an error into a prepared response: the staged batches of the partition could not be written."""
    assert isinstance(response, ProduceResponse)
    for topic in response.responses:
        if topic.topic_id == partition.topic_id or topic.name == partition.topic:
            for each in topic.partition_responses:
                if each.index == partition.index and not each.error_code:
                    each.error_code = error.code
                    each.error_message = error.message
                    each.base_offset = -1
                    partition.metrics.refused_produce_requests += 1
