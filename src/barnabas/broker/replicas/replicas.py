"""The replicas on this broker: applies the metadata to its partitions.

In: images and deltas of committed metadata. Out: logs opened, created and deleted; partitions that lead or
follow; settings applied. At start the whole image is applied, afterwards only changes, in the order of the
log, partition by partition in pieces (see `runtime.pieces`). If thousands of partitions change,
`broker.image` shows the change before the last partition has applied it.
Does not know: who decided, requests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.fetch.closest_replica import selector_of
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.topic_rules import TopicRules, rules_of
from barnabas.broker.replicas.following import Following
from barnabas.broker.replicas.isr import InSyncReplicas
from barnabas.broker.replicas.replica_changes import Change, ReplicaChanges
from barnabas.broker.replicas.state_changes import StateChanges
from barnabas.metadata.configs import CLUSTER_DEFAULT, ConfigResource, ResourceType
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partitions import NO_LEADER, PartitionRegistration, is_reserved_directory
from barnabas.protocol import KafkaError
from barnabas.replication.partition_state import PartitionState
from barnabas.runtime.pieces import Steps, WaitingSteps
from barnabas.runtime.shortage import RETRY_S, is_shortage
from barnabas.settings import TopicSettings
from barnabas.storage.dirs import future_logs
from barnabas.storage.files import names
from barnabas.storage.files.names import TopicPartition
from barnabas.storage.logs.log import Log
from barnabas.storage.segments.settings import LogSettings

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.produce.tick import Tick
    from barnabas.storage.logs.truncation import Truncation

log = logging.getLogger("barnabas.replicas")
SHORTAGE_TOLD_EVERY_S = 60.0


class Replicas:
    def __init__(self, broker: Broker, tick: Tick) -> None:
        self._broker = broker
        self._tick = tick
        self.following = Following(broker, tick)
        self._state_changes = StateChanges(broker.node_id, broker.loop.time)
        self._changes = ReplicaChanges(broker, self._update, self._remove, self.rules)
        self._shortage_told_at = -SHORTAGE_TOLD_EVERY_S
        # Changes of partitions whose logs are being truncated: applied when that is done.
        self._delayed: dict[tuple[str, int], tuple[bytes, PartitionRegistration]] = {}
        self._is_closed = False
        nothing: Mapping[str, str] = {}
        # The last result of `rules`, with the topic's overrides and the broker's settings.
        self._last_rules = nothing, broker.settings, rules_of(TopicSettings.resolve({}, broker.settings))
        self._high_watermarks: dict[TopicPartition, int] = {}  # of the checkpoint, until all is loaded
        self.in_sync = InSyncReplicas(broker, lambda request: broker.controller.send(request))
        broker.in_sync_replicas = self.in_sync
        # Called when this broker begins or stops to lead an internal partition: a coordinator's.
        self.on_leadership: Callable[[Partition], None] | None = None

    # -- start -----------------------------------------------------------------------------------

    def load(self, image: MetadataImage) -> None:
        """Open the logs of the image. Slow after a crash, so call it from a thread."""
        broker = self._broker
        broker.image = image

        def settings_of(topic: str) -> LogSettings:
            found = self.rules(topic).log
            if topic in image.topics.by_name:
                return found
            return replace(found, compact=True)  # an unknown topic: it may have been compacted

        now_ms = broker.clock.now_ms()
        broker.log_dirs.load(settings_of, now_ms=now_ms, is_stray=self._is_stray)
        self._high_watermarks = broker.log_dirs.load_high_watermarks()
        if broker.log_dirs.future_logs:
            future_logs.resolve_leftovers(broker.log_dirs, self._assigned_dir, now_ms)

    def take_over(self, image: MetadataImage) -> None:
        """Create the partitions of the image, with logs that `load` opened or new ones. See `settled`."""
        self._broker.image = image
        self._changes.apply(self._take_over_all(image))

    def _take_over_all(self, image: MetadataImage) -> WaitingSteps[None]:
        yield from self._changes.update_all(
            Change(topic.name, topic.id, number, registration)
            for topic in image.topics.by_name.values()
            for number, registration in topic.partitions.items()
        )
        self._high_watermarks = {}
        self._broker.select_replica = selector_of(self._broker)
        self.in_sync.start()

    async def close(self) -> None:
        """Stop fetching and stop ISR changes."""
        await self.settled()  # folders of deleted topics would be left behind
        self._is_closed = True
        self.following.close()
        await self._broker.truncations.close()
        await self.in_sync.close()

    def _is_stray(self, found: Log) -> bool:
        """A log on disk that the metadata does not place here: its topic is gone, or is another of the
        same name.
        """
        topic, index = found.topic_partition
        known = self._broker.image.topics.by_name.get(topic)
        if known is None or (found.topic_id is not None and found.topic_id != known.id):
            return True
        registration = known.partitions.get(index)
        if registration is None or self._broker.node_id not in registration.replicas:
            return True
        return self._is_left_behind(found, registration)

    def _is_left_behind(self, found: Log, registration: PartitionRegistration) -> bool:
        """Whether the partition was moved to another dir, and a crash came before this log was removed."""
        log_dirs = self._broker.log_dirs
        assigned = log_dirs.dir_with_id(registration.directory_of(self._broker.node_id))
        if assigned is None or assigned.failure is not None or found.directory.endswith(names.FUTURE_FOLDER):
            return False
        there = f"{assigned.path}/{names.folder_name(found.topic_partition)}"
        return there != found.directory and log_dirs.context.disk.exists(there)

    def _assigned_dir(self, topic_partition: TopicPartition) -> bytes | None:
        registration = self._broker.image.topics.partition(topic_partition.topic, topic_partition.partition)
        return registration.directory_of(self._broker.node_id) if registration is not None else None

    # -- following -------------------------------------------------------------------------------

    def publish(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Apply a change of the committed metadata, the first piece of it at once."""
        broker = self._broker
        broker.image = image
        if delta.configs is not None and self._concerns_broker(delta.configs.resources):
            broker.dynamic.apply(image.configs)
        if delta.configs is not None or delta.topics is not None:
            self._changes.apply(self._apply_delta(delta))
        if delta.cluster is not None:
            self.in_sync.expand()  # a broker that was unfenced may be in sync already

    async def settled(self) -> None:
        """Wait until the partitions here match the image."""
        await self._changes.settled()

    async def settled_if_alone(self) -> None:
        """On a single-node cluster wait until changes are applied, so that clients can use them when the
        response leaves. In larger clusters clients look for a partition's leader anyway."""
        if len(self._broker.image.cluster.brokers) == 1:
            await self.settled()

    def _apply_delta(self, delta: MetadataDelta) -> WaitingSteps[None]:
        broker, changes = self._broker, self._changes
        if delta.configs is not None:
            yield from self._configs_changed(delta.configs.resources)
        if delta.topics is None:
            return
        for gone in delta.topics.deleted.values():
            yield from changes.remove_all(gone.name, gone.partitions)
            broker.metrics.forget_topic(gone.name)
        yield from changes.rename_removed()  # before there are others of the same name
        yield from changes.update_all(
            Change(topic.name, topic.id, number, registration)
            for topic in delta.topics.changed.values()
            for number, registration in topic.changed.items()
        )

    def _update(self, topic: str, topic_id: bytes, index: int, registration: PartitionRegistration) -> None:
        try:
            self._apply(topic, topic_id, index, registration)
        except Exception:  # the other partitions must be updated
            self._broker.unexpected.note("applying metadata to", f"{topic}-{index}")

    def _apply(self, topic: str, topic_id: bytes, index: int, registration: PartitionRegistration) -> None:
        broker = self._broker
        partition = broker.partitions.get(topic, index)
        self._delayed.pop((topic, index), None)
        if broker.node_id not in registration.replicas:
            self._remove(topic, index)
            return
        if partition is None:
            if broker.partitions.is_offline(topic, index):
                return
            left = broker.log_dirs.logs.get(TopicPartition(topic, index))
            if left is not None and left.truncation is not None:  # to be deleted when that is done
                self._update_after(left.truncation, topic, topic_id, index, registration)
                return
            try:
                partition = self._add(topic, topic_id, index, registration)
            except KafkaError as error:
                if is_shortage(error):
                    self._try_later(topic, topic_id, index, registration, error)
                    return
                log.error("%s-%d could not be opened and is offline: %s", topic, index, error.message)
                broker.partitions.take_offline(topic, index)
                return
            except Exception as error:
                if is_shortage(error):
                    self._try_later(topic, topic_id, index, registration, error)
                    return
                broker.unexpected.note("adding", f"{topic}-{index}")
                broker.partitions.take_offline(topic, index)
                return
        partition.state.adding = registration.adding_replicas
        if partition.is_dirty and partition.leader_epoch != registration.leader_epoch:
            self._tick.close()  # batches of the old leader epoch
        if registration.leader == broker.node_id:
            self.following.stop(partition)
            if partition.log.truncation is not None:  # its producers are not loaded yet
                self._update_after(partition.log.truncation, topic, topic_id, index, registration)
                return
            try:
                partition.lead(
                    registration.leader_epoch,
                    registration.isr,
                    registration.replicas,
                    registration.partition_epoch,
                )
                self._state_changes.led(partition, registration)
            except KafkaError as error:  # its disk has failed; `on_failure` was called
                if is_shortage(error):
                    self._try_later(topic, topic_id, index, registration, error)
                    return
                log.error("%s-%d cannot be led: %s", topic, index, error.message)
            except Exception:
                broker.unexpected.note("leading", partition)
        else:
            if partition.is_leader or partition.leader_epoch != registration.leader_epoch:
                partition.become_follower(registration.leader_epoch, registration.partition_epoch)
                self._state_changes.followed(partition, registration)
            if registration.leader == NO_LEADER:
                self.following.stop(partition)
            else:
                self.following.follow(partition, registration.leader, registration.leader_epoch)
        self._tell_coordinator(partition)

    def _update_after(
        self,
        truncation: Truncation,
        topic: str,
        topic_id: bytes,
        index: int,
        registration: PartitionRegistration,
    ) -> None:
        """Apply a registration when the truncation is done, unless a newer one is applied before."""
        self._delayed[topic, index] = topic_id, registration
        truncation.when_done(partial(self._update_delayed, topic, index))

    def _try_later(
        self, topic: str, topic_id: bytes, index: int, registration: PartitionRegistration, error: Exception
    ) -> None:
        """Retry after a shortage of descriptors or memory, unless a newer registration is applied before."""
        now = self._broker.loop.time()
        if now - self._shortage_told_at >= SHORTAGE_TOLD_EVERY_S:
            self._shortage_told_at = now
            log.warning("%s-%d and perhaps others cannot be opened yet: %s", topic, index, error)
        self._delayed[topic, index] = topic_id, registration
        self._broker.loop.call_later(RETRY_S, self._update_delayed, topic, index)

    def _update_delayed(self, topic: str, index: int) -> None:
        held = self._delayed.pop((topic, index), None)
        if held is not None and not self._is_closed:
            self._update(topic, held[0], index, held[1])

    def _tell_coordinator(self, partition: Partition) -> None:
        if partition.is_internal and self.on_leadership is not None:
            try:
                self.on_leadership(partition)
            except Exception:
                self._broker.unexpected.note("telling the coordinator of", partition)

    def _add(self, topic: str, topic_id: bytes, index: int, registration: PartitionRegistration) -> Partition:
        broker = self._broker
        topic_partition = TopicPartition(topic, index)
        rules = self.rules(topic)
        found = broker.log_dirs.logs.get(topic_partition)
        directory = registration.directory_of(broker.node_id)
        if found is None:
            found = broker.log_dirs.create(
                topic_partition,
                rules.log,
                topic_id=topic_id,
                now_ms=broker.clock.now_ms(),
                directory_id=None if is_reserved_directory(directory) else directory,
                leader_epoch=registration.leader_epoch if registration.leader == broker.node_id else -1,
            )
        high_watermark = found.end_offset
        if len(registration.replicas) > 1:
            # Records above it may be missing on other replicas: the leader tells the high watermark.
            high_watermark = max(self._high_watermarks.get(topic_partition, 0), found.log_start_offset)
        state = PartitionState(
            broker.node_id,
            found.end_offset,
            high_watermark,
            may_join=broker.may_join,
            lag_ms_max=broker.settings["replica.lag.time.max.ms"],
            fetched_ms=broker.follower_fetches_ms,
        )
        partition = Partition(
            topic, index, topic_id, found, broker.node_id, self._tick, broker.metrics.topic(topic), state
        )
        partition.on_joining = self.in_sync.joining
        partition.is_internal = broker.is_internal(topic)
        partition.configure(rules)
        broker.partitions.add(partition)
        actual = broker.log_dirs.dir_of(found).id
        if actual != directory and topic_partition not in broker.log_dirs.future_logs:
            broker.directories.note(topic_id, index, actual)
        return partition

    def _remove(self, topic: str, index: int) -> None:
        broker = self._broker
        self._delayed.pop((topic, index), None)
        broker.partitions.forget_offline(topic, index)
        partition = broker.partitions.get(topic, index)
        if partition is None:
            return
        self._stop(partition)
        broker.partitions.remove(partition)
        self._tell_coordinator(partition)
        truncation = partition.log.truncation
        if truncation is not None:  # a thread works in its folder
            truncation.when_done(partial(self._delete_log, partition.log))
        elif TopicPartition(topic, index) in broker.log_dirs.future_logs:
            self._delete_log(partition.log)
        else:
            self._changes.removed.append(broker.log_dirs.remove(partition.log.topic_partition))

    def _delete_log(self, gone: Log) -> None:
        """Rename its folder at once: a new partition of the same name may wait for that."""
        broker = self._broker
        partition, now_ms = gone.topic_partition, broker.clock.now_ms()
        if broker.log_dirs.logs.get(partition) is not gone:
            return  # its dir has failed meanwhile
        try:
            if partition in broker.log_dirs.future_logs:
                future_logs.drop(broker.log_dirs, partition, now_ms)
            broker.log_dirs.delete(partition, now_ms=now_ms)
        except KafkaError as error:
            log.error("the folder of %s could not be deleted: %s", partition, error.message)

    def _stop(self, partition: Partition) -> None:
        self.following.stop(partition)
        if partition.is_dirty:
            self._tick.close()
        partition.become_follower(partition.leader_epoch)

    # -- failing dirs ----------------------------------------------------------------------------

    def write_all(self) -> None:
        """End the tick: staged batches are written, or their producers get an error."""
        self._tick.close()

    def take_offline(self, topic_partition: TopicPartition) -> None:
        """Stop using a partition whose log dir has failed."""
        partition = self._broker.partitions.get(*topic_partition)
        self._broker.partitions.take_offline(*topic_partition)
        if partition is not None:
            self._stop(partition)
            self._tell_coordinator(partition)

    # -- settings --------------------------------------------------------------------------------

    def rules(self, topic: str) -> TopicRules:
        """A topic's effective settings. The last result is kept: callers ask for many partitions of one
        topic."""
        overrides, settings = self._broker.image.configs.topic(topic), self._broker.settings
        if overrides is not self._last_rules[0] or settings is not self._last_rules[1]:
            found = rules_of(TopicSettings.resolve(overrides, settings))
            schemas = self._broker.schema_lookups.rules(topic, found.settings)
            if schemas is not None:  # unlike all other rules, these are of one topic
                found = found._replace(append=replace(found.append, schemas=schemas))
            self._last_rules = overrides, settings, found
        return self._last_rules[2]

    def _concerns_broker(self, resources: Collection[ConfigResource]) -> bool:
        own = ConfigResource(ResourceType.BROKER, str(self._broker.node_id))
        return own in resources or CLUSTER_DEFAULT in resources

    def _configs_changed(self, resources: Collection[ConfigResource]) -> Steps[None]:
        partitions, topics = self._broker.partitions, self._broker.image.topics.by_name
        names: Collection[str]
        if self._concerns_broker(resources):
            names = list(topics)
        else:
            names = [each.name for each in resources if each.type == ResourceType.TOPIC]
        for name in names:
            topic = topics.get(name)
            if topic is None:
                continue
            for index in topic.partitions:
                changed = partitions.get(name, index)
                if changed is not None:  # otherwise it is new, or on other brokers
                    changed.configure(self.rules(name))
                yield
