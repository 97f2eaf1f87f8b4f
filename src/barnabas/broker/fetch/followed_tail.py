"""The shortcut for a follower that keeps up with one busy partition.

In: a fetch in a follower's session that names one partition, and its bytes. Out: the following fetches served
without decoding them, and responses without encoding them, as long as only offsets change: the session
continues, this broker leads the partition in the follower's epoch, and no throttle is set. The same code as
for all other fetches checks and records the follower's progress. Any other fetch takes the ordinary path.
Does not know: waiting, connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.fetch.fetch_templates import FetchTemplate, ResponseTemplate
from barnabas.broker.fetch.partition_data import PartitionData
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.fetch import FetchResponse
from barnabas.replication.fetch_sessions import LOG_AGREES, FetchContext

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.broker import Broker
    from barnabas.broker.partitions.partition import Partition
    from barnabas.protocol.messages.fetch import FetchRequest
    from barnabas.replication.fetch_sessions import SessionPartition

Topic = FetchResponse.FetchableTopicResponse
RECORDS_BYTES_MAX = 16 * 1024  # larger responses are sent from the file


class FollowedTail:
    __slots__ = (
        "_asked", "_broker", "_fetch", "_partition", "_response", "_session", "_wanted", "follower",
        "request", "route",
    )  # fmt: skip

    def __init__(
        self,
        broker: Broker,
        route: Route,
        follower: int,
        request: FetchRequest,
        asked: SessionPartition,
        head: bytes,
    ) -> None:
        session = asked.session
        assert session is not None  # the request named it
        self._broker = broker
        self.route = route
        self.follower = follower
        self.request = request
        self._session = session
        self._asked = asked
        self._wanted = request.topics[0].partitions[0]
        self._partition: Partition = asked.attachment
        self._fetch = FetchTemplate(request, route.version, head)
        data = PartitionData(partition_index=asked.index, aborted_transactions=None)
        topic = Topic(topic=asked.topic, topic_id=asked.topic_id, partitions=[data])
        response = FetchResponse(session_id=session.session_id, responses=[topic])
        self._response = ResponseTemplate(response, route.version)

    @property
    def only_offsets_changed(self) -> bool:
        """Whether nothing but offsets has changed since the shortcut was made."""
        asked, partition, wanted = self._asked, self._partition, self._wanted
        return (
            partition is asked.attachment
            and asked.session is self._session
            and partition.is_leader
            and partition.leader_epoch == wanted.current_leader_epoch == wanted.last_fetched_epoch
            and self.follower in partition.state.followers
            and partition.log.log_start_offset == asked.log_start_offset
            and self._broker.leader_throttle.is_unlimited
        )

    def matches_request(self, frame: memoryview) -> bool:
        """Whether the template matches the request that it was made of."""
        return (
            self.route.flexible_response
            and self.request.min_bytes <= 1
            and self._fetch.match(frame) == (self.request.session_epoch, self._wanted.fetch_offset)
        )

    def fetch(self, frame: memoryview) -> FetchContext | None:
        """Accept a fetch like the last one. Returns None, and changes nothing, if it differs."""
        numbers = self._fetch.match(frame)
        if numbers is None or not self.only_offsets_changed:
            return None
        session_epoch, fetch_offset = numbers
        asked, partition, broker = self._asked, self._partition, self._broker
        log = partition.log
        if not log.log_start_offset <= fetch_offset <= log.written_offset:
            return None
        if not broker.fetch_sessions.is_next(self._session, session_epoch):
            return None
        try:
            partition.follower_reached(
                self.follower,
                fetch_offset,
                self._wanted.log_start_offset,
                self.request.replica_state.replica_epoch,
            )
        except KafkaError:
            return None
        broker.followers_seen(self.follower)
        self._wanted.fetch_offset = fetch_offset
        asked.request = self._wanted
        asked.high_watermark = LOG_AGREES  # `only_offsets_changed` compares epochs
        self._session.unsettled[asked] = None
        self._session.advance_epoch(broker.clock.now_ms())
        return FetchContext([], self._session, full=False)

    @property
    def has_news(self) -> bool:
        """Whether there may be something to send at once, of this partition or of another."""
        return len(self._session.unsettled) != 1 or self._has_more

    @property
    def _has_more(self) -> bool:
        return self._wanted.fetch_offset < self._partition.log.written_offset

    def response(self) -> bytes | None:
        """The response with the records that the follower lacks; None if the response must say more."""
        asked, partition, wanted = self._asked, self._partition, self._wanted
        unsettled = self._session.unsettled
        if (
            len(unsettled) != 1
            or asked not in unsettled
            or not self.only_offsets_changed
            or not self._has_more
        ):
            return None
        log = partition.log
        try:
            found = log.read(wanted.fetch_offset, wanted.partition_max_bytes, log.written_offset)
            if not 0 < len(found) <= RECORDS_BYTES_MAX or not found.likely_cached:
                return None
            records = found.read()
        except (OSError, KafkaError):
            return None
        partition.metrics.fetch_requests += 1
        partition.metrics.replication_bytes_out += len(records)
        if partition.state.adding and self.follower in partition.state.adding:
            partition.metrics.reassignment_bytes_out += len(records)
        asked.high_watermark = high_watermark = partition.high_watermark
        return self._response.fill(
            high_watermark, partition.last_stable_offset, log.log_start_offset, records
        )
