"""The share partitions that this broker leads, and the share sessions of members that fetch from them.

In: groups and partitions of requests, changes of metadata, lost connections. Out: share partitions, loaded at
the first fetch of a group, ended when their partition moves or is deleted, or when the last session of the
group has ended. A session that ends releases what its member has acquired.
Does not know: how requests are served (see `fetch_requests`, `acknowledge_requests`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.broker.shares import acknowledge_requests, fetch_requests
from barnabas.broker.shares.led_share_partition import LedSharePartition
from barnabas.broker.shares.share_metrics import ShareMetrics
from barnabas.broker.shares.share_settings import SettingsOfShareGroups, ShareGroupSettings
from barnabas.broker.shares.state_writer import StateWriter
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.shares.sessions.share_sessions import ShareSession, ShareSessions, TopicIdPartition

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.api.deferred import Deferred
    from barnabas.broker.broker import Broker
    from barnabas.broker.wire.channel import Channel
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.protocol import Message
    from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
    from barnabas.protocol.messages.share_fetch import ShareFetchRequest

SHARE_VERSION = "share.version"


class SharePartitions:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.sessions = ShareSessions(broker.settings["group.share.max.share.sessions"])
        self.writer = StateWriter(broker)
        self.metrics = ShareMetrics()
        self.waiting_fetches = 0
        self._settings = SettingsOfShareGroups(broker.settings)
        self._by_group: dict[str, dict[TopicIdPartition, LedSharePartition]] = {}
        self._by_topic: dict[bytes, dict[LedSharePartition, None]] = {}
        self._loads: set[asyncio.Task[None]] = set()
        broker.on_disconnect.append(self._connection_lost)

    def now_ms(self) -> int:
        """Monotonic time, for locks."""
        return int(self.broker.loop.time() * 1000)

    def settings_of(self, group: str) -> ShareGroupSettings:
        self._settings.configure(self.broker.settings)
        return self._settings.of(group, self.broker.image)

    def __iter__(self) -> Iterator[LedSharePartition]:
        for shares in list(self._by_group.values()):
            yield from list(shares.values())

    @property
    def is_switched_off(self) -> bool:
        return not self.broker.image.features.level(SHARE_VERSION)

    def fetch(self, request: ShareFetchRequest, context: RequestContext) -> Message | Deferred:
        return fetch_requests.serve(request, context)

    def acknowledge(self, request: ShareAcknowledgeRequest, context: RequestContext) -> Message | Deferred:
        return acknowledge_requests.serve(request, context)

    # -- share partitions --------------------------------------------------------------------------

    def get(self, group: str, topic_id_partition: TopicIdPartition) -> LedSharePartition | None:
        """A share partition that is here already."""
        found = self._by_group.get(group, {}).get(topic_id_partition)
        if found is not None and not found.is_current:
            found.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return None
        return found

    def open(self, group: str, topic_id_partition: TopicIdPartition) -> LedSharePartition:
        """The share partition; it is loaded if it is not here. Raises KafkaError if another broker leads."""
        found = self.get(group, topic_id_partition)
        if found is not None:
            found.ends_when_stored = False
        else:
            partition = self.broker.partitions.leader_by_id(
                topic_id_partition.topic_id, topic_id_partition.partition
            )
            found = LedSharePartition(self, group, partition)
            self._by_group.setdefault(group, {})[topic_id_partition] = found
            self._by_topic.setdefault(topic_id_partition.topic_id, {})[found] = None
            task = self.broker.loop.create_task(self._load(found))
            self._loads.add(task)
            task.add_done_callback(self._loads.discard)
        return found

    async def _load(self, share: LedSharePartition) -> None:
        begun_s = self.broker.loop.time()
        await share.load()
        self.metrics.loaded(self.broker.loop.time() - begun_s)

    def forget(self, share: LedSharePartition) -> None:
        """Remove a share partition that has ended."""
        topic_id_partition = TopicIdPartition(share.partition.topic_id, share.partition.index)
        shares = self._by_group.get(share.group)
        if shares is not None and shares.get(topic_id_partition) is share:
            del shares[topic_id_partition]
            if not shares:
                del self._by_group[share.group]
        others = self._by_topic.get(topic_id_partition.topic_id)
        if others is not None:
            others.pop(share, None)
            if not others:
                del self._by_topic[topic_id_partition.topic_id]

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """End share partitions that this broker does not lead any more, in the epoch in which it loaded
        them."""
        if self.is_switched_off:
            self.sessions.clear()
            for share in self:
                share.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        if delta.topics is None or not self._by_topic:
            return
        for topic_id in (*delta.topics.changed, *delta.topics.deleted):
            topic = image.topics.by_id.get(topic_id)
            for share in list(self._by_topic.get(topic_id, ())):
                found = topic.partitions.get(share.partition.index) if topic is not None else None
                if (
                    found is None
                    or found.leader != self.broker.node_id
                    or found.leader_epoch != share.leader_epoch
                ):
                    share.end(KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    # -- sessions ----------------------------------------------------------------------------------

    def release_session(self, session: ShareSession) -> None:
        """End a session, and release what its member has acquired. The last session of a group takes the
        share partitions with it: offsets that an administrator sets then are read with the next fetch."""
        if self.sessions.get(session.key) is session:
            self.sessions.remove(session.key)
        for topic_id_partition in session.partitions:
            share = self.get(session.key.group, topic_id_partition)
            if share is not None:
                share.release(session.key.member, ignore)
        self._end_if_empty(session.key.group)

    def _connection_lost(self, channel: Channel) -> None:
        for session in self.sessions.of_connection(channel):
            self.sessions.evictions += 1
            self.release_session(session)

    def _end_if_empty(self, group: str) -> None:
        """Give up the share partitions of a group without sessions, after their last states are stored: an
        administrator may change the offsets of a group without members."""
        if self.sessions.has_members(group):
            return
        for share in list(self._by_group.get(group, {}).values()):
            share.end_when_stored()

    async def close(self) -> None:
        for share in self:
            share.close()
        for task in list(self._loads):
            task.cancel()
        await asyncio.gather(*self._loads, return_exceptions=True)
        await self.writer.close()


def ignore(error: KafkaError | None) -> None:
    """Nobody waits for the result."""
