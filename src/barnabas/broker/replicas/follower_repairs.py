"""Offsets of leaders' logs, for followers that are out of their leader's range.

In: partitions whose fetches were refused with OFFSET_OUT_OF_RANGE. Out: for each the end of the leader's log
and, if this replica is not beyond it, the start (ListOffsets), for many partitions in one request. One
request is in flight at any time; other partitions are fetched meanwhile.
Does not know: what is done with the offsets, fetch sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.replicas.leader_link import LeaderLink
    from barnabas.runtime.pieces import Pieces, Steps

PARTITIONS_A_REQUEST = 2_000
LATEST, EARLIEST = -1, -2
Topic = ListOffsetsRequest.ListOffsetsTopic
Place = tuple[str, int]


class Asked(NamedTuple):
    partition: Partition
    epoch: int
    on_offsets: OnOffsets
    latest: int | None = None  # the end of the leader's log, if known


OnOffsets = Callable[[int | None, int | None], None]
"""Called with the end and the start of the leader's log. The start is None if the end is below this replica's
own; both are None if the leader refused."""


class FollowerRepairs:
    def __init__(self, node_id: int, pieces: Pieces) -> None:
        self._node_id = node_id
        self._pieces = pieces
        self._losses = 0  # of connections
        self._ends: dict[Place, Asked] = {}  # not requested yet
        self._starts: dict[Place, Asked] = {}
        self._is_asking = False
        self.requests = 0

    def add(self, partition: Partition, epoch: int, on_offsets: OnOffsets, link: LeaderLink | None) -> None:
        place = partition.topic, partition.index
        self._starts.pop(place, None)
        self._ends[place] = Asked(partition, epoch, on_offsets)
        if not self._is_asking and link is not None:
            self._ask(link)

    def lost(self) -> None:
        """Forget all requests: the connection is closed. Callers add their partitions again."""
        self._ends, self._starts = {}, {}
        self._is_asking = False
        self._losses += 1

    def _ask(self, link: LeaderLink) -> None:
        """Send the next request, for starts first: those partitions have waited longer."""
        waiting, timestamp = (self._starts, EARLIEST) if self._starts else (self._ends, LATEST)
        self._is_asking = bool(waiting)
        if not waiting:
            return
        places = list(waiting)[:PARTITIONS_A_REQUEST]
        asked = {place: waiting.pop(place) for place in places}
        self.requests += 1
        link.send_request(
            self._request(asked, timestamp),
            ListOffsetsResponse,
            lambda response: self._handle_response(link, asked, timestamp, response),
        )

    def _request(self, asked: dict[Place, Asked], timestamp: int) -> ListOffsetsRequest:
        topics: dict[str, Topic] = {}
        for (name, index), each in asked.items():
            topic = topics.get(name)
            if topic is None:
                topic = topics[name] = Topic(name=name, partitions=[])
            topic.partitions.append(
                Topic.ListOffsetsPartition(
                    partition_index=index, current_leader_epoch=each.epoch, timestamp=timestamp
                )
            )
        return ListOffsetsRequest(replica_id=self._node_id, topics=list(topics.values()))

    def _handle_response(
        self, link: LeaderLink, asked: dict[Place, Asked], timestamp: int, response: ListOffsetsResponse
    ) -> None:
        found = {
            (topic.name, each.partition_index): None if each.error_code else each.offset
            for topic in response.topics
            for each in topic.partitions
        }
        self._pieces.begin(self._tell(link, asked, timestamp, found))

    def _tell(
        self, link: LeaderLink, asked: dict[Place, Asked], timestamp: int, found: dict[Place, int | None]
    ) -> Steps[None]:
        losses = self._losses
        for place, each in asked.items():
            offset = found.get(place)
            if offset is None:
                each.on_offsets(None, None)
            elif timestamp == EARLIEST:
                each.on_offsets(each.latest, offset)
            elif offset < each.partition.log.end_offset:
                each.on_offsets(offset, None)
            elif place not in self._ends:  # otherwise it was added again meanwhile
                self._starts[place] = each._replace(latest=offset)
            yield
        if losses == self._losses:
            self._ask(link)
