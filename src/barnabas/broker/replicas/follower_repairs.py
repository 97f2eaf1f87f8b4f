"""Followers out of their leader's range: where do the leader's logs end and begin?

In: partitions whose fetches were refused with OFFSET_OUT_OF_RANGE. Out: for each the end and, where that does
not explain it, the start of the leader's log (ListOffsets), asked for many partitions in one request while
the others go on being fetched. One request is under way at any time.
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
    told: Told
    latest: int | None = None  # where the leader's log ends, once that is known


Told = Callable[[int | None, int | None], None]
"""Called with the end and the start of the leader's log; the start is None where the end is below this
replica's own, both are None where the leader does not say."""


class FollowerRepairs:
    def __init__(self, node_id: int, pieces: Pieces) -> None:
        self._node_id = node_id
        self._pieces = pieces
        self._losses = 0  # of connections
        self._ends: dict[Place, Asked] = {}  # not yet asked
        self._starts: dict[Place, Asked] = {}
        self._is_asking = False
        self.requests = 0

    def add(self, partition: Partition, epoch: int, told: Told, link: LeaderLink | None) -> None:
        place = partition.topic, partition.index
        self._starts.pop(place, None)
        self._ends[place] = Asked(partition, epoch, told)
        if not self._is_asking and link is not None:
            self._ask(link)

    def lost(self) -> None:
        """The connection is gone, and with it the answer; whoever waits asks again on the next one."""
        self._ends, self._starts = {}, {}
        self._is_asking = False
        self._losses += 1

    def _ask(self, link: LeaderLink) -> None:
        """Starts first: those partitions have waited longer."""
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
            lambda response: self._answered(link, asked, timestamp, response),
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

    def _answered(
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
                each.told(None, None)
            elif timestamp == EARLIEST:
                each.told(each.latest, offset)
            elif offset < each.partition.log.end_offset:
                each.told(offset, None)
            elif place not in self._ends:  # else it was added again meanwhile
                self._starts[place] = each._replace(latest=offset)
            yield
        if losses == self._losses:
            self._ask(link)
