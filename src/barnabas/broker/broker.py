"""The broker: what handlers work with. State lives in its parts; this only holds them together.

In: parts made by the node. Out: results that need more than one of them.
Does not know: how the parts are made and started (see `node`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from barnabas.broker.coordinators.group_coordinator import GroupCoordinator
from barnabas.broker.coordinators.marker_sender import MarkerSender
from barnabas.broker.coordinators.share_coordinator import ShareCoordinator
from barnabas.broker.coordinators.transaction_coordinator import TransactionCoordinator
from barnabas.broker.dynamic_settings import DynamicSettings
from barnabas.broker.fetch.fetch_stats import FetchStats
from barnabas.broker.logins.node_security import NodeSecurity
from barnabas.broker.produce.preparing import Preparing
from barnabas.broker.produce.purgatory import Purgatory
from barnabas.broker.quorum import topology
from barnabas.broker.quorum.other_brokers import OtherBrokers
from barnabas.broker.quotas.client_quotas import ClientQuotas
from barnabas.broker.quotas.replication_throttle import ReplicationThrottle
from barnabas.broker.replicas.truncations import Truncations
from barnabas.broker.schemas.lookups import SchemaLookups
from barnabas.broker.topics.auto_creation import AutoCreation
from barnabas.broker.topics.encoded_topics import EncodedTopics
from barnabas.broker.topics.streams_topics import StreamsTopics
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.runtime.pieces import Pieces
from barnabas.runtime.unexpected import UnexpectedErrors

if TYPE_CHECKING:
    import random

    from barnabas.broker.access.access import Access
    from barnabas.broker.coordinators.coordinator import Coordinator
    from barnabas.broker.coordinators.producer_ids import ProducerIds
    from barnabas.broker.logins.offers import Offers
    from barnabas.broker.metrics import Metrics
    from barnabas.broker.metrics.lazy_telemetry import LazyTelemetry
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.partitions import Partitions
    from barnabas.broker.quorum.controller_channel import ControllerChannel
    from barnabas.broker.quorum.topology import BrokerAddress
    from barnabas.broker.replicas.directory_assignments import DirectoryAssignments
    from barnabas.broker.replicas.isr import InSyncReplicas
    from barnabas.broker.reporters.reporting import Reporting
    from barnabas.broker.shares.persister import SharePersister
    from barnabas.broker.shares.share_partitions import SharePartitions
    from barnabas.broker.tracing.tracing import Tracing
    from barnabas.broker.upkeep.cleaning import Cleaning
    from barnabas.broker.upkeep.log_dir_moves import LogDirMoves
    from barnabas.broker.wire.channel import Channel
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.partitions import PartitionRegistration
    from barnabas.quorum.controller import Controller
    from barnabas.quorum.quorum import Quorum
    from barnabas.replication.fetch_sessions import FetchSessions
    from barnabas.runtime.clock import Clock
    from barnabas.runtime.threads import ThreadPools
    from barnabas.settings import BrokerSettings
    from barnabas.settings.secrets import Secrets
    from barnabas.storage.dirs.log_dirs import LogDirs


class BrokerState(IntEnum):
    """Kafka's numbers of what a broker does."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    CONTROLLED_SHUTDOWN = 6
    SHUTTING_DOWN = 7


SelectReplica = Callable[["Partition", str, str], int]
"""The replica that a consumer in a rack, on a listener, should read a partition from."""


class Broker:
    def __init__(
        self,
        settings: BrokerSettings,
        cluster_id: str,
        clock: Clock,
        threads: ThreadPools,
        metrics: Metrics,
        secrets: Secrets,
    ) -> None:
        self.settings = settings  # the effective settings: replaced when they change
        self.dynamic = DynamicSettings(self)
        self.secrets = secrets
        self.access: Access | None = None  # None: everything is allowed
        self.node_id = settings.node_id
        self.cluster_id = cluster_id
        self.epoch = -1
        self.state = BrokerState.STARTING
        self.clock = clock
        self.threads = threads
        self.metrics = metrics
        self.loop = asyncio.get_running_loop()
        self.unexpected = UnexpectedErrors()
        self.pieces = Pieces(clock.work_s)
        self.encoded_topics = EncodedTopics()
        self.purgatory = Purgatory(self.loop)
        self.preparing = Preparing(threads.requests)
        self.schema_lookups = SchemaLookups(settings, threads.registry, clock.now_ms)
        self.auto_creation = AutoCreation(self)
        self.streams_topics = StreamsTopics(self)
        self.truncations = Truncations(threads.background)
        self.security = NodeSecurity(settings)  # of connections to other nodes
        self.others = OtherBrokers(self)
        self.markers = MarkerSender(self.others, self.loop, self.unexpected)
        self.follower_fetches_ms: dict[int, int] = {}  # when each follower fetched last, in the loop's time
        self.leader_throttle = ReplicationThrottle(self, "leader")
        self.select_replica: SelectReplica | None = None  # `replica.selector.class`
        self.quotas = ClientQuotas(settings, lambda: self.loop.time() * 1000, self.unexpected)
        self.image: MetadataImage = EMPTY_IMAGE
        self.on_disconnect: list[Callable[[Channel], None]] = []  # calls when a connection is lost
        self.fetch_stats = FetchStats()
        self.on_log_levels: Callable[[], None] = lambda: (
            None
        )  # called when levels of loggers may have changed
        self.fetch_bytes_max: int = settings["fetch.max.bytes"]
        # The node sets these before it listens.
        self.partitions: Partitions
        self.log_dirs: LogDirs
        self.directories: DirectoryAssignments
        self.moves: LogDirMoves
        self.in_sync_replicas: InSyncReplicas
        self.own_controller: Controller | None = None  # of this node, active or not
        self.controller: ControllerChannel  # the way to the active one
        self.quorum: Quorum
        self.producer_ids: ProducerIds
        self.fetch_sessions: FetchSessions
        self.groups: GroupCoordinator
        self.client_metrics: LazyTelemetry
        self.reporting: Reporting
        self.tracing: Tracing | None = None  # if a setting asks for traces
        self.transactions: TransactionCoordinator
        self.share_coordinator: ShareCoordinator
        self._share_persister: SharePersister | None = None
        self._shares: SharePartitions | None = None
        self.cleaning: Cleaning
        self.logins: Offers

    # -- the cluster -------------------------------------------------------------------------------

    def nodes(self, listener: str, *, with_fenced: bool = False) -> list[BrokerAddress]:
        return topology.brokers(self.image, listener, with_fenced=with_fenced)

    def controller_nodes(self, listener: str) -> list[BrokerAddress]:
        return topology.controllers(self.image, listener)

    def any_broker_id(self) -> int:
        """The controller that clients see: any broker, since each forwards their requests."""
        return self.node_id

    @property
    def controller_id(self) -> int:
        return self.controller.leader_id

    def offline_replicas(self, partition: PartitionRegistration) -> list[int]:
        return topology.offline_replicas(self.image, partition)

    def is_internal(self, topic: str) -> bool:
        return topic in topology.INTERNAL_TOPICS

    def may_join(self, broker_id: int, broker_epoch: int) -> bool:
        """Whether a broker with this broker epoch (-1: any) may be an in-sync replica."""
        found = self.image.cluster.brokers.get(broker_id)
        return found is not None and found.is_active and broker_epoch in (-1, found.epoch)

    def followers_seen(self, broker_id: int) -> None:
        """Note that a follower has fetched."""
        self.follower_fetches_ms[broker_id] = int(self.loop.time() * 1000)

    # -- coordinators ------------------------------------------------------------------------------

    def make_coordinators(self, rng: random.Random) -> None:
        self.groups = GroupCoordinator(self, rng)
        self.transactions = TransactionCoordinator(self)
        self.share_coordinator = ShareCoordinator(self)

    @property
    def coordinators(self) -> tuple[Coordinator[Any], ...]:
        return self.groups, self.transactions, self.share_coordinator

    @property
    def share_persister(self) -> SharePersister:
        """Keeps the state of share partitions; made when first needed."""
        if self._share_persister is None:
            from barnabas.broker.shares.persister import SharePersister

            self._share_persister = SharePersister(self)
        return self._share_persister

    @property
    def shares(self) -> SharePartitions:
        """The share partitions that this broker leads; made when first needed."""
        if self._shares is None:
            from barnabas.broker.shares.share_partitions import SharePartitions

            self._shares = SharePartitions(self)
        return self._shares

    @property
    def has_shares(self) -> bool:
        return self._shares is not None

    def publish_shares(self, delta: MetadataDelta, image: MetadataImage) -> None:
        if self._shares is not None:
            self._shares.publish(delta, image)

    async def close_shares(self) -> None:
        if self._shares is not None:
            await self._shares.close()
        if self._share_persister is not None:
            await self._share_persister.close()

    async def close_coordinators(self) -> None:
        for coordinator in reversed(self.coordinators):
            await coordinator.close()

    def leadership_changed(self, partition: Partition) -> None:
        """Tell the coordinators that this broker begins or stops to lead an internal partition."""
        for coordinator in self.coordinators:
            coordinator.leadership_changed(partition)
