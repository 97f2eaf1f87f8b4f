"""The node: everything that one process runs, put together, started in order, and stopped in order.

In: settings. Out: a broker, a controller or both, that serve. Start: bind (a busy port touches nothing), lock
and identify the log directories, take a seat in the quorum; a broker then registers, loads its logs, is
unfenced, listens. Stop is the same backwards, and leaves folders that need no recovery. The sequence of the
metadata part is described in `runtime.controller`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from barnabas.broker.access.access import access_of
from barnabas.broker.broker import Broker, BrokerState
from barnabas.broker.coordinators.producer_ids import ProducerIds
from barnabas.broker.logins.offers import prepare_logins
from barnabas.broker.metrics import Metrics
from barnabas.broker.metrics.lazy_telemetry import LazyTelemetry
from barnabas.broker.observing import Observing
from barnabas.broker.partitions.partitions import Partitions
from barnabas.broker.produce.tick import Tick
from barnabas.broker.quorum.quorum_seat import QuorumSeat
from barnabas.broker.quorum.topology import is_registered
from barnabas.broker.replicas.directory_assignments import DirectoryAssignments
from barnabas.broker.replicas.replicas import Replicas
from barnabas.broker.reporters.reporting import Reporting
from barnabas.broker.setup import encryption
from barnabas.broker.setup.formatting import FormatError, FormatRequest, format_directories, holds_nothing
from barnabas.broker.setup.secret_key import secrets_of
from barnabas.broker.tracing.starting import tracing_of
from barnabas.broker.upkeep.cleaning import Cleaning
from barnabas.broker.upkeep.log_dir_moves import LogDirMoves
from barnabas.broker.upkeep.log_dir_states import LogDirStates
from barnabas.broker.upkeep.log_syncing import run_all, sync_log
from barnabas.broker.upkeep.maintenance import Maintenance
from barnabas.broker.wire.listening import Listening
from barnabas.connection.arena import Arena
from barnabas.protocol import ErrorCode, KafkaError, uuid
from barnabas.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from barnabas.quorum.broker_lifecycle import BrokerIdentity, BrokerLifecycle
from barnabas.replication.fetch_sessions import FetchSessions
from barnabas.runtime.busy_polling import busy_polling
from barnabas.runtime.clock import Clock, SystemClock
from barnabas.runtime.descriptors import Shares
from barnabas.runtime.disk import REAL_DISK, Disk
from barnabas.runtime.sockets import REAL_SOCKETS, Sockets
from barnabas.runtime.threads import ThreadPools
from barnabas.security.errors import SecuritySettingsError
from barnabas.settings import BrokerSettings, EndPoint
from barnabas.storage.dirs.log_dirs import LogDirs
from barnabas.storage.files.errors import StorageError
from barnabas.storage.files.meta_properties import random_directory_id
from barnabas.storage.logs.context import LogContext

if TYPE_CHECKING:
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.wire.server import Listener
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.storage.logs.log import Log

log = logging.getLogger("barnabas.node")
SHUTDOWN_PATIENCE_MS = 10_000


class StartError(Exception):
    """The reason why a node cannot start, in one line."""


class Node:
    def __init__(
        self,
        settings: BrokerSettings,
        *,
        format_empty: bool = False,
        clock: Clock | None = None,
        rng: random.Random | None = None,
        disk: Disk = REAL_DISK,
        sockets: Sockets = REAL_SOCKETS,
    ) -> None:
        self.settings = settings
        self._format_empty = format_empty
        self._clock = clock or SystemClock()
        self._rng = rng or random.Random()
        self._secret_bytes = os.urandom if rng is None else rng.randbytes  # a simulation must be repeatable
        self._disk = disk
        self._socket_port = sockets
        self._sockets: dict[str, socket.socket] = {}
        self._shares = Shares.of_process()
        self._listening: Listening
        self._log_dirs: LogDirs | None = None
        self._metadata_dir: LogDirs | None = None  # where it is none of log.dirs
        self._dir_states: LogDirStates | None = None
        self._observing: Observing | None = None
        self._rolls: set[asyncio.Task[None]] = set()  # syncs of segments that are complete
        self.on_failure: Callable[[KafkaError], None] | None = None  # its metadata log failed
        self.is_waiting_for_quorum = False  # while starting: it may last until other nodes are there
        self.broker: Broker

    # -- start -------------------------------------------------------------------------------------

    async def start(self) -> None:
        self._access = access_of(self.settings, asyncio.get_running_loop().time)
        try:
            self._bind()
            await self._start()
        except BaseException as error:
            for bound in self._sockets.values():
                bound.close()
            self._let_go()
            if isinstance(error, OSError):
                raise StartError(f"the disk failed: {error}") from error
            if isinstance(error, SecuritySettingsError):
                raise StartError(str(error)) from None
            raise

    async def _start(self) -> None:
        settings, clock = self.settings, self._clock
        loop = asyncio.get_running_loop()
        disk = encryption.disk_of(settings, self._disk, self._secret_bytes)
        context = LogContext(
            disk,
            open_files_max=self._shares.files,
            rng=self._rng,
            on_roll=self._rolled,
            on_failure=self._disk_failed,
            time=loop.time,
        )
        if self._format_empty and is_empty(settings, self._disk):
            self._format()
        log_dirs, metadata_directory_id = self._open_dirs(context)
        cluster_id = log_dirs.cluster_id
        self._threads = ThreadPools(loop)
        if self._disk is REAL_DISK:
            self._start_threads()
        secrets = secrets_of(settings, self._disk, self._secret_bytes)
        metrics = Metrics(loop.time, measures_requests=settings["barnabas.metrics.requests"])
        broker = self.broker = Broker(settings, cluster_id, clock, self._threads, metrics, secrets)
        broker.access = self._access
        broker.log_dirs = log_dirs
        broker.partitions = Partitions(lambda: broker.image)
        broker.fetch_sessions = FetchSessions(
            settings["max.incremental.fetch.session.cache.slots"], self._rng
        )
        seat = self._seat = QuorumSeat(
            settings,
            cluster_id,
            metadata_directory_id,
            context,
            clock,
            secrets,
            self._with_real_ports(settings.advertised_controller_listeners),
            broker.security.to_controllers,
        )
        broker.quorum, broker.controller, broker.own_controller = seat.quorum, seat.channel, seat.controller
        broker.logins = prepare_logins(broker, lambda: seat.log.image, self._secret_bytes)
        broker.pieces = seat.log.pieces  # one for all of a node's long work
        broker.reporting = Reporting(broker)
        broker.tracing = tracing_of(settings, broker.reporting)
        seat.log.on_failure = self._failed
        arena = Arena(large_bytes_max=settings["queued.max.request.bytes"])
        polling = None
        if self._disk is REAL_DISK:  # a simulation has a time of its own
            polling = busy_polling(loop.call_soon, settings["barnabas.busy.poll.us"])
        tick = Tick(arena, loop.call_soon, self._sync, unexpected=broker.unexpected, polling=polling)
        seat.log.unexpected = broker.unexpected
        self._listening = Listening(broker, tick, self._socket_port, self._shares)
        broker.on_log_levels = self._listening.log_levels_changed
        if seat.quorum.is_alone:
            await seat.start()
        else:
            seat.log.run_slow_work_with(self._threads.metadata.run, self._threads.run)
            await self._listen(self._listening.open_controllers)
            self.is_waiting_for_quorum = True
            await seat.start()
            self.is_waiting_for_quorum = False
        if broker.access is not None:  # from here on its decisions follow the metadata
            broker.access.follow(seat.log)
        if settings.is_broker:
            await self._start_broker(tick)
        else:
            self._follow_as_controller()
            await self._listen(self._listening.start)
        seat.log.run_slow_work_with(self._threads.metadata.run, self._threads.run)
        await self._serve_metrics()
        if self._access is not None:
            self._access.start(broker)

    def _start_threads(self) -> None:
        try:
            self._threads.start_all()
        except RuntimeError as error:
            raise StartError(f"{error}: raise the limit of processes (ulimit -u)") from None

    def _follow_as_controller(self) -> None:
        """A controller that is no broker keeps only the metadata that its responses need."""
        broker, metadata = self.broker, self._seat.log

        def publish(delta: MetadataDelta, image: MetadataImage) -> None:
            broker.image = image
            if delta.configs is not None:
                broker.dynamic.apply(image.configs)
            broker.quotas.publish(delta, image)

        broker.image = metadata.image
        broker.dynamic.apply(metadata.image.configs)
        broker.quotas.configure(metadata.image.quotas)
        metadata.add_listener(publish)

    async def _start_broker(self, tick: Tick) -> None:
        broker, settings, seat = self.broker, self.settings, self._seat
        metadata = seat.log
        heartbeat_timeout_ms: int = settings["broker.session.timeout.ms"] // 2
        self._lifecycle = BrokerLifecycle(
            self._identity(broker.cluster_id),
            lambda request: seat.channel.send(request, timeout_ms=heartbeat_timeout_ms),
            lambda: metadata.image.provenance.offset,
            settings["broker.heartbeat.interval.ms"],
        )
        self._listening.tell = self._lifecycle.tell_listeners
        self.is_waiting_for_quorum = True
        broker.epoch = await self._lifecycle.register(settings["initial.broker.registration.timeout.ms"])
        self.is_waiting_for_quorum = False
        # The end of this broker's earlier life may be applied in parts, before its registration's record:
        # until then it may still be the leader of partitions that it has lost with its disk.
        await seat.wait_until(lambda image: is_registered(image, settings.node_id, broker.epoch))
        broker.producer_ids = ProducerIds(
            lambda: seat.channel.send(
                AllocateProducerIdsRequest(broker_id=settings.node_id, broker_epoch=self._lifecycle.epoch)
            )
        )
        broker.dynamic.apply(metadata.image.configs)
        replicas = self._replicas = Replicas(broker, tick)
        broker.make_coordinators(self._rng)
        replicas.on_leadership = broker.leadership_changed
        broker.directories = DirectoryAssignments(
            settings.node_id, lambda: self._lifecycle.epoch, seat.channel.send
        )
        broker.state = BrokerState.RECOVERY
        await self._threads.run(replicas.load, metadata.image)
        # From here to the last listener nothing may wait: what is committed meanwhile would be missed.
        broker.dynamic.apply(metadata.image.configs)
        broker.quotas.configure(metadata.image.quotas)
        replicas.take_over(metadata.image)
        broker.moves = LogDirMoves(broker, replicas)
        self._dir_states = LogDirStates(broker, replicas, self._lifecycle, self._failed)
        broker.client_metrics = LazyTelemetry(broker, self._rng.randbytes)
        broker.cleaning = Cleaning(broker)
        for listener in (
            replicas.publish,
            *(coordinator.publish for coordinator in broker.coordinators),
            broker.quotas.publish,
            broker.client_metrics.publish,
            broker.cleaning.publish,
            broker.publish_shares,
        ):
            metadata.add_listener(listener)
        await replicas.settled()
        seat.channel.when_applied = replicas.settled_if_alone
        await self._lifecycle.unfence()
        await seat.wait_until(lambda image: image.cluster.is_active(settings.node_id))
        metadata.run_slow_work_with(self._threads.metadata.run, self._threads.run)
        await self._listen(self._listening.start)
        for coordinator in broker.coordinators:
            coordinator.start()
        broker.state = BrokerState.RUNNING
        self._maintenance = Maintenance(broker)
        self._maintenance.start()
        broker.moves.resume()
        broker.cleaning.start()

    def _format(self) -> None:
        """A new cluster of this one node, in folders that are empty."""
        if not may_found_cluster(self.settings):
            raise StartError(
                f"{self.settings.log_dirs[0]} is not formatted: use `barnabas storage format` with the id of "
                "the cluster that this node shall belong to"
            )
        cluster_id = uuid.to_text(random_directory_id(self._rng.randbytes(16)))
        request = FormatRequest(standalone=not self.settings.voters)
        try:
            format_directories(
                self.settings,
                cluster_id,
                request,
                now_ms=self._clock.now_ms(),
                random_bytes=self._rng.randbytes,
                disk=self._disk,
            )
        except FormatError as error:
            raise StartError(str(error)) from None
        log.info("formatted %s for the new cluster %s", ", ".join(self.settings.log_dirs), cluster_id)

    def _open_dirs(self, context: LogContext) -> tuple[LogDirs, bytes]:
        """And the id of the dir with the metadata log, which is one of log.dirs or has a place of its own."""
        settings, path, cluster_id = self.settings, self.settings.metadata_log_dir, None
        paths = [each.rstrip("/") or "/" for each in settings.log_dirs]
        if path not in paths:
            self._metadata_dir = LogDirs.open([path], node_id=settings.node_id, context=context)
            cluster_id = self._metadata_dir.cluster_id
        log_dirs = LogDirs.open(paths, node_id=settings.node_id, cluster_id=cluster_id, context=context)
        self._log_dirs = log_dirs
        dirs = (self._metadata_dir or log_dirs).dirs
        encryption.prepare(settings, context.disk, [*log_dirs.dirs, *dirs], self._secret_bytes)
        found = next(each for each in dirs if each.path == path)
        if found.failure is not None:
            raise StartError(f"the metadata directory cannot be used: {found.failure}")
        return log_dirs, found.id

    def _let_go(self) -> None:
        """Of all dirs, writing nothing."""
        for each in (self._log_dirs, self._metadata_dir):
            if each is not None:
                each.abandon()

    def _identity(self, cluster_id: str) -> BrokerIdentity:
        assert self._log_dirs is not None
        settings = self.settings
        return BrokerIdentity(
            node_id=settings.node_id,
            cluster_id=cluster_id,
            incarnation_id=self._rng.randbytes(16),
            listeners=self._with_real_ports(settings.advertised_listeners),
            log_dirs=[directory.id for directory in self._log_dirs.online()],
            rack=settings.rack,
            previous_epoch=min(directory.last_epoch for directory in self._log_dirs.online()),
        )

    def _sync(self, due: list[Partition], done: Callable[[dict[Partition, KafkaError]], None]) -> None:
        """Sync logs in threads, then report those that failed."""
        works = [(partition, partition.log, partition.log.begin_sync()) for partition in due]

        def synced(future: asyncio.Future[None]) -> None:
            failed = {}
            for partition, synced_log, work in works:
                try:
                    synced_log.end_sync(work)
                    if not work.is_done:  # the thread has failed, or was not there any more
                        failed[partition] = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, "no sync was made")
                except KafkaError as error:
                    failed[partition] = error
            if not future.cancelled() and (problem := future.exception()) is not None:
                log.error("logs could not be synced", exc_info=problem)
            done(failed)

        self._threads.syncs.run(run_all, [work for _, _, work in works]).add_done_callback(synced)

    def _failed(self, error: KafkaError) -> None:
        log.error("the node stops: %s", error.message)
        if self.on_failure is not None:
            self.on_failure(error)

    def _rolled(self, rolled: Log, offset: int) -> None:
        """Sync a segment that is complete. Called from any thread."""
        self.broker.loop.call_soon_threadsafe(self._sync_rolled, rolled, offset)

    def _sync_rolled(self, rolled: Log, offset: int) -> None:
        assert self._log_dirs is not None
        if self._log_dirs.future_logs.get(rolled.topic_partition) is rolled:
            return  # a copy that a move makes in a thread: it is synced as a whole, when it is complete

        def synced(done: asyncio.Task[None]) -> None:
            self._rolls.discard(done)
            if not done.cancelled() and (error := done.exception()) is not None:
                log.error("%s", error)

        task = self.broker.loop.create_task(sync_log(self._threads.syncs, rolled, offset))
        self._rolls.add(task)
        task.add_done_callback(synced)

    def _disk_failed(self, path: str, reason: str, number: int) -> None:
        """Handle a failed operation below this path. Called from any thread."""
        if self._dir_states is not None:
            self._dir_states.disk_failed(path, reason, number)

    # -- listening ---------------------------------------------------------------------------------

    def _bind(self) -> None:
        for endpoint in self.settings.listeners:
            try:
                self._sockets[endpoint.name] = self._socket_port.bind(endpoint.host, endpoint.port)
            except OSError as error:
                raise StartError(f"cannot listen on {endpoint}: {error.strerror}") from None

    def _with_real_ports(self, advertised: tuple[EndPoint, ...]) -> tuple[EndPoint, ...]:
        """The address for others: the port that was bound where the settings left it open, this host's name
        for none."""
        return tuple(
            replace(
                endpoint,
                port=endpoint.port or self._sockets[endpoint.name].getsockname()[1],
                host=endpoint.host or self._socket_port.host_name(),
            )
            for endpoint in advertised
        )

    async def _listen(self, opening: Callable[[Mapping[str, socket.socket]], Awaitable[None]]) -> None:
        try:
            await opening(self._sockets)
        except OSError as error:
            raise StartError(error.strerror) from None
        except SecuritySettingsError as error:
            raise StartError(str(error)) from None

    async def _serve_metrics(self) -> None:
        following = self._replicas.following if self.settings.is_broker else None
        self._observing = Observing(self.broker, self._listening, self._shares, following)
        try:
            await self._observing.serve()
        except OSError as error:
            raise StartError(error.strerror) from None
        if self._disk is REAL_DISK:
            self._observing.start_ticks()

    @property
    def listeners(self) -> Sequence[Listener]:
        """The open listeners."""
        return self._listening.listeners if hasattr(self, "_listening") else ()

    @property
    def bootstrap(self) -> str:
        """The address for clients: the first listener that is not the controller's, where there is one."""
        found = self._listening.listeners
        first = next((listener for listener in found if listener.kind == "broker"), found[0])
        host = first.endpoint.host if first.endpoint.host not in ("", "0.0.0.0", "::") else "127.0.0.1"
        return f"{host}:{first.port}"

    # -- stop --------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop in order: the next start needs no recovery."""
        if self._access is not None:
            await self._access.close()
        await self.broker.reporting.stop()
        if self.settings.is_broker:
            await self._stop_broker()
        if self._observing is not None:
            self._observing.close()
        await self._seat.stop()
        await self._listening.stop()
        if self._dir_states is not None:
            self._dir_states.is_closed = True
        await self._seat.close()
        assert self._log_dirs is not None
        if self.settings.is_broker:
            await self._maintenance.checkpoint_high_watermarks()
            await self._threads.syncs.run(partial(self._log_dirs.close, self._lifecycle.epoch))
        self._let_go()
        self._threads.close()

    async def _stop_broker(self) -> None:
        self.broker.state = BrokerState.CONTROLLED_SHUTDOWN
        await self._maintenance.stop()
        self.broker.auto_creation.close()
        self.broker.streams_topics.close()
        await self.broker.moves.close()
        await self.broker.directories.close()
        await self.broker.cleaning.stop()
        await self._lifecycle.stop(SHUTDOWN_PATIENCE_MS, lambda: self._seat.quorum.member.is_led)
        self.broker.state = BrokerState.SHUTTING_DOWN
        await self._replicas.close()
        await self.broker.markers.close()
        await self.broker.close_shares()
        await self.broker.others.close()
        await self.broker.close_coordinators()
        await self._listening.close_for_clients()


def is_empty(settings: BrokerSettings, disk: Disk = REAL_DISK) -> bool:
    """Whether all log directories are empty, so that the start may format them."""
    return all(holds_nothing(disk, folder) for folder in {*settings.log_dirs, settings.metadata_log_dir})


def may_found_cluster(settings: BrokerSettings) -> bool:
    """Whether this node can be a cluster alone: it is a voter, and the settings name no other."""
    if not settings.is_controller:
        return False
    others = [voter for voter in settings.voters if voter.id != settings.node_id]
    return not others and len(settings.bootstrap_servers) <= 1


__all__ = ["Node", "StartError", "StorageError"]
