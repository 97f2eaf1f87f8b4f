"""A follower that keeps up with one busy partition: its next fetch, and the answer, take a shortcut.

In: a fetch in a follower's session that names one partition, and its bytes. Out: the same for the fetches
after it without decoding, and their answers without encoding, as long as nothing but offsets changes: the
session goes on, the partition is led here in the epoch that the follower has, and no throttle is set. What
is counted as replicated, and every check on it, is the same code as for all other fetches; whatever is out
of the ordinary takes the ordinary way.
Does not know: waiting, connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.fetch.fetch_templates import AnswerTemplate, FetchTemplate
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
RECORDS_BYTES_MAX = 16 * 1024  # more is not worth a shortcut, and is sent from the file


class FollowedTail:
    __slots__ = (
        "_answer", "_asked", "_broker", "_fetch", "_partition", "_session", "_wanted", "follower", "request",
        "route",
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
        assert session is not None  # it was named in it
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
        self._answer = AnswerTemplate(response, route.version)

    @property
    def only_offsets_changed(self) -> bool:
        """Whether nothing but offsets may have changed."""
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
        """Whether there is a shortcut for the request that this was made of."""
        return (
            self.route.flexible_response
            and self.request.min_bytes <= 1
            and self._fetch.match(frame) == (self.request.session_epoch, self._wanted.fetch_offset)
        )

    def fetch(self, frame: memoryview) -> FetchContext | None:
        """Take a fetch like those before, if it is one; nothing has happened if it is not."""
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
        """Whether the follower may be told something at once, of this partition or of another one."""
        return len(self._session.unsettled) != 1 or self._has_more

    @property
    def _has_more(self) -> bool:
        return self._wanted.fetch_offset < self._partition.log.written_offset

    def answer(self) -> bytes | None:
        """The records that the follower has not, and nothing else; None where there is more to say."""
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
        partition.metrics.replication_bytes_out += len(records)
        asked.high_watermark = high_watermark = partition.high_watermark
        return self._answer.fill(high_watermark, partition.last_stable_offset, log.log_start_offset, records)
