"""Replicas: the partitions of this broker follow the metadata.

In: images and deltas of committed metadata. Out: logs opened, created and set aside; partitions that lead,
or stop leading; settings in force. At start the whole image is taken over, afterwards only what changed.
Does not know: who decided, requests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.partition import Partition
from barnabas.broker.topic_rules import TopicRules, rules_of
from barnabas.metadata.configs import CLUSTER_DEFAULT, ConfigResource, ResourceType
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partitions import PartitionRegistration, is_reserved_directory
from barnabas.protocol import KafkaError
from barnabas.settings import TopicSettings
from barnabas.storage.log import Log
from barnabas.storage.names import TopicPartition
from barnabas.storage.settings import LogSettings

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.tick import Tick

log = logging.getLogger("barnabas.replicas")


class Replicas:
    def __init__(self, broker: Broker, tick: Tick) -> None:
        self._broker = broker
        self._tick = tick
        # Told of every internal partition that is led here, or not any more: a coordinator's.
        self.on_leadership: Callable[[Partition], None] | None = None

    # -- taking over -----------------------------------------------------------------------------

    def load(self, image: MetadataImage) -> None:
        """Open the logs that the image says are here; slow after a crash, so call it from a thread."""
        broker = self._broker
        broker.image = image

        def settings_of(topic: str) -> LogSettings:
            return self.rules(topic).log

        broker.log_dirs.load(settings_of, now_ms=broker.clock.now_ms(), is_stray=self._is_stray)

    def take_over(self, image: MetadataImage) -> None:
        """Make the partitions of the image, with logs that `load` opened or new ones."""
        self._broker.image = image
        for topic in image.topics.by_name.values():
            for index, registration in topic.partitions.items():
                self._update(topic.name, topic.id, index, registration)

    def _is_stray(self, found: Log) -> bool:
        """A log on disk that the metadata does not place here: its topic is gone, or is another of the
        same name.
        """
        topic, index = found.topic_partition
        known = self._broker.image.topics.by_name.get(topic)
        if known is None or (found.topic_id is not None and found.topic_id != known.id):
            return True
        registration = known.partitions.get(index)
        return registration is None or self._broker.node_id not in registration.replicas

    # -- following -------------------------------------------------------------------------------

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Committed metadata changed: do here what follows from it."""
        broker = self._broker
        broker.image = image
        if delta.configs is not None:
            self._configs_changed(set(delta.configs.resources))
        if delta.topics is not None:
            for gone in delta.topics.deleted.values():
                for index in gone.partitions:
                    self._remove(gone.name, index)
                broker.metrics.forget_topic(gone.name)
            for topic in delta.topics.changed.values():
                for index, registration in topic.changed.items():
                    self._update(topic.name, topic.id, index, registration)

    def _update(self, topic: str, topic_id: bytes, index: int, registration: PartitionRegistration) -> None:
        broker = self._broker
        partition = broker.partitions.get(topic, index)
        if broker.node_id not in registration.replicas:
            if partition is not None:
                self._remove(topic, index)
            return
        if partition is None:
            try:
                partition = self._add(topic, topic_id, index, registration)
            except KafkaError as error:
                log.error("%s-%d stays offline: %s", topic, index, error.message)
                return
        if registration.leader == broker.node_id:
            partition.replica_count = len(registration.replicas)
            partition.lead(registration.leader_epoch, registration.isr)
        else:
            if partition.is_dirty:
                self._tick.close()  # what was taken in as leader
            partition.resign(registration.leader_epoch)
        self._tell(partition)

    def _tell(self, partition: Partition) -> None:
        if partition.is_internal and self.on_leadership is not None:
            self.on_leadership(partition)

    def _add(self, topic: str, topic_id: bytes, index: int, registration: PartitionRegistration) -> Partition:
        broker = self._broker
        where = TopicPartition(topic, index)
        rules = self.rules(topic)
        found = broker.log_dirs.logs.get(where)
        if found is None:
            directory = registration.directory_of(broker.node_id)
            found = broker.log_dirs.create(
                where,
                rules.log,
                topic_id=topic_id,
                now_ms=broker.clock.now_ms(),
                directory_id=None if is_reserved_directory(directory) else directory,
            )
        partition = Partition(
            topic, index, topic_id, found, broker.node_id, self._tick, broker.metrics.topic(topic)
        )
        partition.is_internal = broker.is_internal(topic)
        partition.follow(rules)
        broker.partitions.add(partition)
        return partition

    def _remove(self, topic: str, index: int) -> None:
        broker = self._broker
        partition = broker.partitions.get(topic, index)
        if partition is None:
            return
        if partition.is_dirty:
            self._tick.close()
        broker.partitions.remove(partition)
        partition.resign(partition.leader_epoch)
        self._tell(partition)
        broker.log_dirs.delete(TopicPartition(topic, index), now_ms=broker.clock.now_ms())

    # -- settings --------------------------------------------------------------------------------

    def rules(self, topic: str) -> TopicRules:
        broker = self._broker
        return rules_of(TopicSettings.resolve(broker.image.configs.topic(topic), broker.settings))

    def _configs_changed(self, resources: set[ConfigResource]) -> None:
        broker = self._broker
        own = ConfigResource(ResourceType.BROKER, str(broker.node_id))
        if resources & {own, CLUSTER_DEFAULT}:
            broker.dynamic.take(broker.image.configs)
            for partition in broker.partitions:
                partition.follow(self.rules(partition.topic))
            return
        for resource in resources:
            topic = (
                broker.image.topics.by_name.get(resource.name)
                if resource.type == ResourceType.TOPIC
                else None
            )
            for index in topic.partitions if topic is not None else ():
                changed = broker.partitions.get(resource.name, index)
                if changed is not None:
                    changed.follow(self.rules(resource.name))
