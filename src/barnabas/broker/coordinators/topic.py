"""The topic of a coordinator: which partition stores which key, and how to create it.

In: group ids or transactional ids; the controller, which creates the topic as its layout says. Out: partition
numbers as Apache Kafka computes them (Java's hash), a topic that exists.
Does not know: what is written to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol import ErrorCode, KafkaError
from barnabas.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from barnabas.settings.one_machine import internal_topic_settings

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.settings import BrokerSettings

log = logging.getLogger("barnabas.coordinator")

ASCII_LENGTH_MAX = 128  # of keys with a fast way to hash them
POWERS = [31**exponent & 0xFFFF_FFFF for exponent in reversed(range(ASCII_LENGTH_MAX))]
ALREADY_THERE = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)

Topic = CreateTopicsRequest.CreatableTopic
FittedSettings = Mapping[str, int]
"""Settings of internal topics, fitted to the size of the cluster."""


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 units, a signed 32-bit integer."""
    if len(text) <= ASCII_LENGTH_MAX and text.isascii():
        found: int = sum(map(mul, text.encode(), POWERS[-len(text) :])) & 0xFFFF_FFFF
        return found - (1 << 32) if found >> 31 else found
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        found = (31 * found + (high << 8 | low)) & 0xFFFF_FFFF
    return found - (1 << 32) if found >> 31 else found


def hash_of(key: str) -> int:
    """The absolute value of the hash, which `% partitions` is applied to; 0 for the one that has none."""
    found = java_hash(key)
    return 0 if found == -(1 << 31) else abs(found)


def partition_for(key: str, partitions: int) -> int:
    return hash_of(key) % partitions


class TopicLayout(NamedTuple):
    """How to create a coordinator's topic: names of broker settings, and the topic's configuration."""

    name: str
    partitions: str
    replication_factor: str
    configs: Callable[[BrokerSettings, FittedSettings], dict[str, str]]


class CoordinatorTopic:
    """Creates the topic once, however many requests need it at a time."""

    __slots__ = ("_broker", "_creating", "_layout", "name")

    def __init__(self, broker: Broker, layout: TopicLayout) -> None:
        self._broker = broker
        self._layout = layout
        self._creating: asyncio.Task[None] | None = None
        self.name = layout.name

    @property
    def partition_count(self) -> int:
        """Partitions of the topic, or those that it would be created with."""
        topic = self._broker.image.topics.by_name.get(self.name)
        if topic is None:
            count: int = self._broker.settings[self._layout.partitions]
            return count
        return len(topic.partitions)

    @property
    def exists(self) -> bool:
        return self.name in self._broker.image.topics.by_name

    def leader_of(self, key: str) -> int:
        """The node that coordinates a key, -1 for none. KafkaError: the topic does not exist."""
        topic = self._broker.image.topics.by_name.get(self.name)
        if topic is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{self.name} could not be created.")
        partition = topic.partitions.get(partition_for(key, len(topic.partitions)))
        return partition.leader if partition is not None else -1

    async def create(self) -> None:
        """Return when the topic exists. KafkaError: it cannot be created."""
        if self._creating is None:
            self._creating = self._broker.loop.create_task(self._create())
            self._creating.add_done_callback(self._created)
        await asyncio.shield(self._creating)

    def _created(self, task: asyncio.Task[None]) -> None:
        self._creating = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("cannot create the topic %s: %s", self.name, error)

    async def _create(self) -> None:
        response = await self._broker.controller.handle(CreateTopicsRequest(topics=[self._topic_to_create()]))
        assert isinstance(response, CreateTopicsResponse)
        [result] = response.topics
        if result.error_code not in ALREADY_THERE:
            raise KafkaError(ErrorCode(result.error_code), result.error_message or "")

    def _topic_to_create(self) -> Topic:
        broker, layout = self._broker, self._layout
        fitted, notes = internal_topic_settings(broker.settings, len(broker.image.cluster.brokers))
        for line in notes:
            if line.startswith(layout.replication_factor):
                log.info("creating %s: %s", self.name, line)
        configs = layout.configs(broker.settings, fitted)
        return Topic(
            name=self.name,
            num_partitions=broker.settings[layout.partitions],
            replication_factor=fitted[layout.replication_factor],
            configs=[Topic.CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
        )
