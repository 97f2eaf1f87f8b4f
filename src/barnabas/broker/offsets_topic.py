"""`__consumer_offsets`: which partition keeps which group, and how the topic is made when it is first needed.

In: group ids; the controller, to create the topic with the settings of `offsets.topic.*`. Out: partition
numbers as Apache Kafka computes them (Java's hash), a topic that exists.
Does not know: what is written into it.
"""

from __future__ import annotations

import asyncio
import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.settings.one_machine import internal_topic_settings

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker

log = logging.getLogger("barnabas.groups")

OFFSETS_TOPIC = "__consumer_offsets"
REMEMBERED_LENGTH_MAX = 128  # longer group ids are hashed each time, so that memory stays bounded
ALREADY_THERE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

Topic = CreateTopicsRequest.CreatableTopic


def java_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, in 32 bits with a sign."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & 0xFFFF_FFFF
    return found - (1 << 32) if found >> 31 else found


def hash_of(group_id: str) -> int:
    """The number that `% partitions` is taken of; the one hash without a positive twin counts as 0."""
    found = java_hash(group_id)
    return 0 if found == -(1 << 31) else abs(found)


_remembered_hash = lru_cache(maxsize=1 << 15)(hash_of)


def partition_for(group_id: str, partitions: int) -> int:
    if len(group_id) > REMEMBERED_LENGTH_MAX:
        return hash_of(group_id) % partitions
    return _remembered_hash(group_id) % partitions


class OffsetsTopic:
    """Creates the topic once, however many ask for it at a time."""

    __slots__ = ("_broker", "_creating")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._creating: asyncio.Task[None] | None = None

    @property
    def partition_count(self) -> int:
        """Of the topic as it is, or as it would be made."""
        topic = self._broker.image.topics.by_name.get(OFFSETS_TOPIC)
        if topic is None:
            count: int = self._broker.settings["offsets.topic.num.partitions"]
            return count
        return len(topic.partitions)

    @property
    def exists(self) -> bool:
        return OFFSETS_TOPIC in self._broker.image.topics.by_name

    async def create(self) -> None:
        """Returns when the topic is there; KafkaError when it cannot be made."""
        if self._creating is None:
            self._creating = self._broker.loop.create_task(self._create())
            self._creating.add_done_callback(self._created)
        await asyncio.shield(self._creating)

    def _created(self, task: asyncio.Task[None]) -> None:
        self._creating = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("%s cannot be created: %s", OFFSETS_TOPIC, error)

    async def _create(self) -> None:
        response = await self._broker.controller.handle(CreateTopicsRequest(topics=[self._wanted()]))
        assert isinstance(response, CreateTopicsResponse)
        [result] = response.topics
        if result.error_code not in ALREADY_THERE:
            raise KafkaError(ErrorCode(result.error_code), result.error_message or "")

    def _wanted(self) -> Topic:
        broker = self._broker
        settings = broker.settings
        values, said = internal_topic_settings(settings, len(broker.image.cluster.brokers))
        factor = "offsets.topic.replication.factor"
        for line in said:
            if line.startswith(factor):
                log.info("creating %s: %s", OFFSETS_TOPIC, line)
        configs = {
            "cleanup.policy": "compact",
            "compression.type": "producer",  # batches carry `offsets.topic.compression.codec` already
            "segment.bytes": str(settings["offsets.topic.segment.bytes"]),
        }
        return Topic(
            name=OFFSETS_TOPIC,
            num_partitions=settings["offsets.topic.num.partitions"],
            replication_factor=values[factor],
            configs=[Topic.CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )
