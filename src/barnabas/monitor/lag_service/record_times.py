"""When the first record that a group did not consume was written: its timestamp, read from the log.

In: a cluster client, groups that are behind. Out: timestamps in their partitions. One reading looks at a
bounded number of positions and asks each leader a few times; what was read counts until the group commits
again. Does not know: what a timestamp is compared with.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError
from barnabas.client.core.fetching import FETCH, PartitionData, fetch_request, fetched_partitions
from barnabas.client.core.topology import Node, TopicPartition
from barnabas.monitor.lag.groups import GroupPartition
from barnabas.protocol import KafkaError
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.records.batch import headers
from barnabas.records.record import iter_records

LOOKUPS_MAX = 500
LOOKUPS_AT_ONCE = 50
REQUESTS_MAX = 200  # in one reading: large batches come one in a response
PARTITION_BYTES = 16_384
RESPONSE_BYTES = 262_144

Position = tuple[TopicPartition, int]
Waiting = dict[Position, list[GroupPartition]]


class RecordTimes:
    """`rest` is where the next reading goes on if there is more to look up than one reading may."""

    def __init__(self, cluster: ClusterCore, lookups_max: int = LOOKUPS_MAX) -> None:
        self._cluster = cluster
        self._lookups_max = lookups_max
        self._first = 0

    async def read(self, behind: Iterable[tuple[TopicPartition, GroupPartition]]) -> None:
        """Learn the timestamps of groups that are behind, for a number of them."""
        waiting = positions(behind)
        if not waiting or not self._lookups_max:
            return
        order = list(waiting)
        first = self._first % len(order) if len(order) > self._lookups_max else 0
        self._first = first + self._lookups_max
        chosen = islice([*order[first:], *order[:first]], self._lookups_max)
        requests = 0
        while requests < REQUESTS_MAX and (part := list(islice(chosen, LOOKUPS_AT_ONCE))):
            requests += await self._read_some(part, waiting, REQUESTS_MAX - requests)

    async def _read_some(self, part: list[Position], waiting: Waiting, requests_max: int) -> int:
        """Returns how many requests it took."""
        requests = 0
        while part and requests < requests_max:
            # Several groups may stand at different offsets of one partition: one of each at a time.
            chosen = dict(reversed(part))
            try:
                leaders = await self._leaders(chosen)
                for leader, some in leaders.items():
                    requests += 1
                    for place, written_ms in await self._ask(leader, some):
                        note(waiting[place], place[1], written_ms)
                        part = [each for each in part if each != place]
            except (KafkaError, ClientError):
                return requests + 1  # the age stays unknown, and an estimate takes its place
            first = next(iter(chosen.items()))
            if not leaders or first in part:
                part = [each for each in part if each != first]  # it cannot be read: the others go on
        return requests

    async def _leaders(self, chosen: dict[TopicPartition, int]) -> dict[Node, dict[TopicPartition, int]]:
        unknown = {at.topic for at in chosen if self._cluster.topology.leader(at) is None}
        if unknown:
            await self._cluster.refresh(unknown)
        found: dict[Node, dict[TopicPartition, int]] = {}
        for at, offset in chosen.items():
            leader = self._cluster.topology.leader(at)
            if leader is not None:
                found.setdefault(leader, {})[at] = offset
        return found

    async def _ask(self, leader: Node, wanted: dict[TopicPartition, int]) -> list[tuple[Position, int]]:
        connection = await self._cluster.connection_to(leader.address, FETCH)
        version = connection.version_for(FetchRequest)
        topics = self._cluster.topology.topics
        request = fetch_request(
            wanted,
            topics,
            version,
            wait_ms_max=0,
            bytes_max=RESPONSE_BYTES,
            partition_bytes_max=PARTITION_BYTES,
        )
        names = {known.topic_id: at.topic for at in wanted if (known := topics.get(at.topic)) is not None}
        response = await connection.send(request, FetchResponse, version=version)
        found = []
        for at, data in fetched_partitions(response, names):
            if data.error_code or at not in wanted:
                self._cluster.forget_leaders([at.topic])
                continue
            written_ms = timestamp_at(data, wanted[at])
            if written_ms is not None:
                found.append(((at, wanted[at]), written_ms))
        return found


def positions(behind: Iterable[tuple[TopicPartition, GroupPartition]]) -> Waiting:
    """The positions whose timestamps are not known, each with the groups that stand there."""
    found: Waiting = {}
    for at, place in behind:
        if place.lacks_time:
            found.setdefault((at, place.first_unread), []).append(place)
    return found


def note(places: Iterable[GroupPartition], offset: int, written_ms: int) -> None:
    for place in places:
        place.written_offset, place.written_ms = offset, written_ms


def timestamp_at(data: PartitionData, offset: int) -> int | None:
    """The timestamp of the first record at or behind an offset; None if the response has none."""
    buffer = data.records
    if not buffer:
        return None
    for start, header in headers(buffer):
        if header.last_offset < offset or header.is_control:
            continue
        for record in iter_records(buffer, position=start):
            if record.offset >= offset:
                return record.timestamp
    return None
