"""Counts the records of a cluster through the protocol, as a broker of ours counts its own logs.

In: a client of the counted cluster, one of the cluster with the audit topic. Out: count messages with ranges
of offsets, from committed batches: headers are counted, records only where headers do not suffice. It goes
on where the audit topic says that counting ended; several counters at once find the same counts.
Does not know: how counts are compared.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Collection, Iterable

from barnabas.audit.cluster.epoch_ends import epoch_ends
from barnabas.audit.core.batch_counts import BatchCounts, Disorder, Opens
from barnabas.audit.core.buckets import WIDTH_MS
from barnabas.audit.core.messages import NO_CORRECTION, NO_EPOCH, CountMessage, StreamKind
from barnabas.audit.counters.audit_topic import AUDIT_TOPIC, ensure_topic, is_counted
from barnabas.audit.counters.audit_topic_reader import AuditTopicReader
from barnabas.audit.counters.counted_ranges import CountedRanges
from barnabas.audit.counters.publisher import Publisher
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.configs import ConfigResource, ResourceType
from barnabas.client.admin.offsets import OffsetSpec
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.errors import ClientError, check
from barnabas.client.core.fetching import (
    FETCH,
    PartitionData,
    aborted_in,
    epoch_of,
    fetch_request,
    fetched_partitions,
)
from barnabas.client.core.topology import TopicPartition
from barnabas.protocol import KafkaError, uuid
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.records.batch import headers
from barnabas.records.control import read_end_marker

log = logging.getLogger("barnabas.audit")
FETCH_BYTES = 16 * 1024 * 1024
PARTITION_BYTES = 4 * 1024 * 1024
PARTITIONS_AT_ONCE = 500
CLEANUP_POLICY = "cleanup.policy"
CONFIGS_S = 600.0


class RemoteCounter:
    def __init__(
        self,
        counted: ClusterCore,
        audited: ClusterCore,
        *,
        tier: str,
        topics: Collection[str] = (),
        audit_topic: str = AUDIT_TOPIC,
        width_ms: int = WIDTH_MS,
        opens: Opens = Opens.HEADERS,
    ) -> None:
        self._counted = counted
        self._tier = tier
        self._topics = topics
        self._audit_topic = audit_topic
        self._width_ms = width_ms
        self._opens = opens
        self._audited = audited
        self._reader = AuditTopicReader(audited, audit_topic)
        self._publisher = Publisher(audited, audit_topic)
        self._counted_ranges = CountedRanges(tier)
        self._disorders: dict[str, Disorder] = {}
        self._checked: dict[str, int] = {}  # by stream: the leader epoch whose log was compared with counts
        self._compacted: dict[str, bool] = {}  # by topic
        self._compacted_at = 0.0
        self._host = socket.gethostname()
        self._cluster_id = ""

    async def run(self, interval_s: float) -> None:
        """Count every so often, for ever."""
        while True:
            try:
                await self.count_all()
            except (KafkaError, ClientError, OSError, TimeoutError) as error:
                reason = str(error) or type(error).__name__
                log.warning("records are not counted now: %s. Trying again in %.0f s", reason, interval_s)
            except Exception:
                log.exception("records are not counted now. Trying again in %.0f s", interval_s)
            await asyncio.sleep(interval_s)

    async def count_all(self) -> int:
        """Count everything that is committed now. Returns the number of records that were new."""
        await ensure_topic(self._audited, self._audit_topic)
        ranges = self._counted_ranges
        await self._reader.catch_up_with(ranges.see)
        self._cluster_id = (await Admin(self._counted).describe_cluster()).cluster_id or ""
        places = await self._places()
        starts = await self._offsets(places, OffsetSpec.EARLIEST)
        ends = await self._offsets(places, OffsetSpec.LATEST)
        await self._correct(places, starts)
        await self._ask_what_is_compacted({place.topic for place in places})
        waiting = {}
        for place in places:
            if place in starts and place in ends:
                progress = ranges.streams.get(self._stream(place))
                known = starts[place] if progress is None else progress.end
                if known < ends[place]:
                    waiting[place] = known
        total = 0
        while waiting:
            some = dict(list(waiting.items())[:PARTITIONS_AT_ONCE])
            messages = await self._count(some, starts)
            await self._publisher.send([message for _, message in messages])
            for place, message in messages:
                ranges.note(message)
                waiting[place] = message.end
                total += sum(entry.tally.counted for entry in message.entries)
            counted = {place for place, _ in messages}
            # A partition that gave nothing has an open transaction, or another leader: the next run sees it.
            waiting = {
                place: at
                for place, at in waiting.items()
                if at < ends[place] and (place in counted or place not in some)
            }
        return total

    async def _ask_what_is_compacted(self, topics: set[str]) -> None:
        """Readers of a compacted topic see fewer records than were counted. Without the right to describe
        settings it is not known."""
        if time.monotonic() < self._compacted_at + CONFIGS_S and topics <= self._compacted.keys():
            return
        wanted = [ConfigResource(ResourceType.TOPIC, name) for name in sorted(topics)]
        try:
            found = await Admin(self._counted).describe_configs(wanted, names=(CLEANUP_POLICY,))
        except KafkaError as error:
            log.warning("it is not known which topics are compacted: %s", error)
            found = {}
        self._compacted = dict.fromkeys(topics, False) | {
            resource.name: any("compact" in (entry.value or "") for entry in entries)
            for resource, entries in found.items()
        }
        self._compacted_at = time.monotonic()

    async def _correct(
        self,
        places: Iterable[TopicPartition],
        starts: dict[TopicPartition, int],
    ) -> None:
        """Take back counts of records that an unclean election has removed from the log. Leaders are asked
        where the epoch of the last counted batch ends, once for each leader."""
        topics, asked = self._counted.topology.topics, {}
        for place in places:
            stream = self._stream(place)
            progress, leader = (
                self._counted_ranges.streams.get(stream),
                epoch_of(topics[place.topic], place.partition),
            )
            if (
                progress is not None
                and place in starts
                and NO_EPOCH < progress.epoch < leader
                and self._checked.get(stream) != leader
            ):
                asked[place] = progress.epoch
        if not asked:
            return
        corrections = []
        found = await epoch_ends(self._counted, asked)
        for place, end in found.items():
            stream, leader = self._stream(place), epoch_of(topics[place.topic], place.partition)
            progress = self._counted_ranges.streams[stream]
            if end is None or end >= progress.end:
                if end is not None:
                    self._checked[stream] = leader
                continue
            self._checked[stream] = leader
            cut = progress.cut_before(end)
            is_known = cut is not None and cut >= starts[place]
            log.warning(
                "an unclean election has removed records of %s from offset %d on, which were counted up to "
                "%d: %s",
                place,
                end,
                progress.end,
                "their counts are taken back" if is_known else "nothing tells the counts up to there",
            )
            if cut is not None and is_known:
                counts = BatchCounts(cut, self._width_ms, 0)
                counts.epoch = progress.epoch + 1
                corrections.append(self._message(place, cut, counts, int(time.time() * 1000), end))
        await self._publisher.send(corrections)
        for message in corrections:
            self._counted_ranges.note(message)

    async def _places(self) -> list[TopicPartition]:
        topology = await self._counted.retrying(lambda: self._counted.refresh(None))
        return [
            TopicPartition(name, partition)
            for name, topic in sorted(topology.topics.items())
            if not topic.internal
            and is_counted(name, self._audit_topic)
            and (not self._topics or name in self._topics)
            for partition in range(topic.partition_count)
        ]

    async def _offsets(self, places: Iterable[TopicPartition], spec: int) -> dict[TopicPartition, int]:
        wanted = dict.fromkeys(places, spec)
        if not wanted:
            return {}
        found = await Admin(self._counted).list_offsets(wanted, read_committed=True)
        return {place: each.offset for place, each in found.items() if not isinstance(each, KafkaError)}

    def _stream(self, place: TopicPartition) -> str:
        topic_id = self._counted.topology.topics[place.topic].topic_id
        return f"{self._cluster_id}/{uuid.to_text(topic_id)}-{place.partition}"

    async def _count(
        self, positions: dict[TopicPartition, int], starts: dict[TopicPartition, int]
    ) -> list[tuple[TopicPartition, CountMessage]]:
        by_leader: dict[object, dict[TopicPartition, int]] = {}
        for place, position in positions.items():
            leader = await self._counted.leader_of(place, self._counted.patience(None))
            by_leader.setdefault(leader.address, {})[place] = max(position, starts[place])
        found = []
        for address, some in by_leader.items():
            for place, data in await self._fetch(address, some):
                now_ms = int(time.time() * 1000)
                disorder = self._disorders.setdefault(self._stream(place), Disorder(self._width_ms))
                counts = BatchCounts(some[place], self._width_ms, now_ms, self._opens, disorder)
                try:
                    check(data.error_code)
                    await asyncio.to_thread(count_fetched, data, counts)
                except KafkaError as error:
                    log.warning("records of %s are not counted now: %s", place, error)
                    continue
                except Exception:  # the other partitions are counted all the same
                    log.exception("records of %s are not counted now", place)
                    continue
                if counts.end > some[place]:
                    found.append((place, self._message(place, positions[place], counts, now_ms)))
        return found

    async def _fetch(
        self, address: object, some: dict[TopicPartition, int]
    ) -> list[tuple[TopicPartition, PartitionData]]:
        connection = await self._counted.connection_to(address, FETCH)  # type: ignore[arg-type]
        version = connection.version_for(FetchRequest)
        topology = self._counted.topology
        request = fetch_request(
            some,
            topology.topics,
            version,
            wait_ms_max=0,
            bytes_max=FETCH_BYTES,
            partition_bytes_max=PARTITION_BYTES,
            read_committed=True,
        )
        response = await connection.send(request, FetchResponse, version=version)
        return list(fetched_partitions(response, topology.topic_names()))

    def _message(
        self,
        place: TopicPartition,
        start: int,
        counts: BatchCounts,
        now_ms: int,
        correction: int = NO_CORRECTION,
    ) -> CountMessage:
        return CountMessage(
            self._tier,
            place.topic,
            self._host,
            self._stream(place),
            StreamKind.OFFSETS,
            start,
            counts.end,
            now_ms,
            counts.entries(place.partition),
            self._width_ms,
            expired=counts.start - start + counts.damaged,
            epoch=counts.epoch,
            correction=correction,
            is_compacted=self._compacted.get(place.topic, False),
        )

    async def close(self) -> None:
        await self._publisher.close()
        await self._reader.close()


def count_fetched(data: PartitionData, counts: BatchCounts) -> None:
    """Count the batches of one partition of a response."""
    if not data.records:
        return
    buffer = memoryview(data.records)
    aborted = aborted_in(data)
    for start, header in headers(buffer):
        if header.is_control:
            marker = read_end_marker(buffer, position=start)
            if marker is not None and marker.aborted:
                aborted.ends(header.producer_id, header.last_offset)
        if counts.is_full:
            return
        hidden = header.is_transactional and aborted.has(header.producer_id, header.last_offset)
        batch = buffer[start : start + header.size]
        counts.add(header, lambda batch=batch: batch, is_aborted=hidden)  # type: ignore[misc]
