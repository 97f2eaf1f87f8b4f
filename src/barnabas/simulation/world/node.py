"""A simulated node: the real `broker.node.Node` on a simulated machine, restarted when it ends.

In: settings, and faults: `kill` (written bytes stay), `lose_power` (unsynced bytes may be lost), `wipe` (an
empty disk), `stop_at_operation` (between two disk operations), `pause`, `stop` (clean shutdown), clock jumps.
Out: the broker while it is up. A node of a cluster gets the cluster id and is formatted as an operator would
do it. A single node formats itself.
Does not know: clients, checks, when faults happen.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.node import Node, StartError
from barnabas.broker.setup.formatting import FormatRequest, format_directories
from barnabas.protocol import KafkaError
from barnabas.runtime.sockets import Sockets
from barnabas.settings import BrokerSettings
from barnabas.simulation.world.clock import SimulatedClock
from barnabas.simulation.world.disk import UNLIMITED_BYTES, Failure, SimulatedDisk
from barnabas.simulation.world.network import SimulatedSockets
from barnabas.simulation.world.process import Process
from barnabas.simulation.world.world import World
from barnabas.storage.files.errors import StorageError

if TYPE_CHECKING:
    from barnabas.broker.quorum.quorum_seat import QuorumSeat
    from barnabas.quorum.metadata_log import MetadataLog

PORT = 9092
DATA = "/data/kafka"
RESTART_S = 0.5
START_FAILURES_MAX = 200


@dataclass(frozen=True, slots=True)
class Membership:
    """The membership of a node in a cluster: the arguments for formatting its disk."""

    cluster_id: str
    request: FormatRequest
    request_again: FormatRequest  # for a new disk, when the cluster already exists


class SimulatedNode:
    def __init__(
        self,
        world: World,
        node_id: int = 1,
        properties: Mapping[str, str] | None = None,
        membership: Membership | None = None,
    ) -> None:
        self.world = world
        self.node_id = node_id
        self.host = f"node-{node_id}"
        self.clock = SimulatedClock(world.loop.time)
        self.membership = membership
        self.properties = {**settings_of(node_id, self.host), **(properties or {})}
        self.disk = self._empty_disk()
        self.process: Process | None = None
        self.node: Node | None = None  # while it is up
        self.starting: Node | None = None  # from the start of its process on
        self.lives = 0
        self.power_losses = 0
        self.wipes = 0
        self.on_power_loss: list[Callable[[], None]] = []
        self.down_s = RESTART_S  # time until the next restart
        self.is_retired = False
        self._ended = asyncio.Event()
        self._loses_power = False
        self._is_stopping = False
        self._disk_was_bad = False  # at some time in this process
        self._rng = world.rng(f"{self.host}/power")
        self._context = copy_context()
        self._is_wiped = False
        self._format()

    def _empty_disk(self) -> SimulatedDisk:
        disk = SimulatedDisk(now_ms=self.clock.now_ms)
        disk.makedirs("/data")
        disk.sync_directory("/")
        disk.observer = lambda kind, path: self.world.trace.note("disk", self.host, kind, path)
        return disk

    def _format(self) -> None:
        if self.membership is not None:
            rng = self.world.rng(f"{self.host}/format-{self.lives}")
            request = self.membership.request_again if self.wipes else self.membership.request
            format_directories(
                BrokerSettings.load(self.properties),
                self.membership.cluster_id,
                request,
                now_ms=self.clock.now_ms(),
                random_bytes=rng.randbytes,
                disk=self.disk,
            )

    @property
    def bootstrap(self) -> tuple[str, int]:
        return self.host, PORT

    @property
    def is_disk_bad(self) -> bool:
        return bool(self.disk.failures) or self.disk.capacity_bytes != UNLIMITED_BYTES

    @property
    def is_up(self) -> bool:
        return self.node is not None

    @property
    def metadata(self) -> MetadataLog | None:
        """Its metadata log once that is open, which is before the node is up."""
        seat: QuorumSeat | None = getattr(self.starting, "_seat", None)
        return None if seat is None else seat.log

    async def supervise(self) -> None:
        """Start the node, and restart it when it ends. Run this in a task of the harness."""
        failures = 0
        while not self.is_retired:
            if await self._start():
                failures = 0
                await self._ended.wait()
            elif self.process is not None and self.process.is_alive:
                failures += 1
                if failures > START_FAILURES_MAX:
                    raise RuntimeError(f"{self.host} does not start any more")
                self._soon(self.kill)
                await self._ended.wait()
            await asyncio.sleep(self.down_s)
            self.down_s = RESTART_S
            self.world.network.boot(self.host)

    async def _start(self) -> bool:
        self.lives += 1
        self._disk_was_bad = self.is_disk_bad
        self._is_stopping = False
        self._ended.clear()
        self.world.trace.note("start", self.host, self.lives)
        process = self.process = self.world.process(self.host)
        disk = self.disk
        disk.on_stop = self._disk_stopped
        process.on_end.append(self._end_of_life)
        node = Node(
            BrokerSettings.load(self.properties),
            format_empty=self.membership is None,
            clock=self.clock,
            rng=self.world.rng(f"{self.host}/life-{self.lives}"),
            disk=disk,
            sockets=cast(Sockets, SimulatedSockets(self.world.network)),
        )
        node.on_failure = self._cannot_go_on
        self.starting = node
        starting = process.spawn(node.start())
        await asyncio.wait([starting])
        if not process.is_alive:
            return False
        error = starting.exception()
        if error is None:
            self.node = node
            self.world.trace.note("up", self.host)
            return True
        self.world.trace.note("not started", self.host, type(error).__name__)
        if not (isinstance(error, StartError | StorageError | KafkaError) and self._disk_was_bad):
            self.world.fail(f"{self.host} cannot start: {error}", error)
        return False

    # -- faults ------------------------------------------------------------------------------------

    def kill(self) -> None:
        """Kill the process as with kill -9. Call this in a callback, not in a task."""
        self._end(loses_power=False)

    def lose_power(self) -> None:
        self._end(loses_power=True)

    def wipe(self) -> None:
        """Replace the disk: the machine restarts with an empty, newly formatted one."""
        self._is_wiped = True
        self._end(loses_power=True)

    def jump_clock(self, by_ms: int) -> None:
        self.clock.skew_ms += by_ms

    def _end(self, *, loses_power: bool) -> None:
        if self.process is not None and self.process.is_alive:
            self._loses_power = loses_power
            self.process.end()

    def stop_at_operation(self, count: int, *, loses_power: bool) -> None:
        """End the process instead of the `count`-th disk operation from now."""
        self._loses_power = loses_power
        self.disk.stop_at(self.disk.operations + count, self._rng)

    def pause(self) -> None:
        if self.process is not None:
            self.process.pause()

    def resume(self) -> None:
        if self.process is not None:
            self.process.resume()

    def fill_disk(self, free_bytes: int) -> None:
        self.disk.capacity_bytes = self.disk.used_bytes() + free_bytes
        self._disk_was_bad = True

    def break_disk(self) -> None:
        """Make writes and syncs fail until `repair_disk`, also after restarts."""
        self.disk.failures.append(Failure(frozenset({"write", "sync"})))
        self._disk_was_bad = True

    def repair_disk(self) -> None:
        self.disk.capacity_bytes = UNLIMITED_BYTES
        self.disk.failures.clear()

    async def stop(self) -> bool:
        """Shut down cleanly. Returns whether the shutdown was completed."""
        process, node = self.process, self.node
        if process is None or node is None or not process.is_alive or self._is_stopping:
            return False
        self._is_stopping = True
        self.world.trace.note("stop", self.host)
        stopping = process.spawn(node.stop())
        await asyncio.wait([stopping])
        if not process.is_alive:
            return False
        error = stopping.exception()
        if error is not None and not self._disk_was_bad:
            self.world.fail(f"{self.host} cannot stop: {error}", error)
        self._soon(self.kill)
        return error is None

    def _disk_stopped(self) -> None:
        """The disk has stopped inside the node's code: its ports stop now, the rest when that code has
        returned."""
        assert self.process is not None
        process = self.process
        process.freeze()
        self._soon(process.end)

    def _cannot_go_on(self, error: KafkaError) -> None:
        self.world.trace.note("gave up", self.host)
        self._soon(self.kill)

    def _soon(self, work: Any) -> None:
        self.world.loop.call_soon(work, context=self._context)

    def _end_of_life(self) -> None:
        assert self.process is not None
        self.node = self.starting = None
        self.world.trace.note("power lost" if self._loses_power else "killed", self.host)
        if self._loses_power:
            self.power_losses += 1
            for callback in self.on_power_loss:
                callback()
            self.world.network.lost_power(self.process)
            if self._is_wiped:
                self.wipes += 1
                self.disk.stop()
                self.disk = self._empty_disk()
                self._format()
            else:
                self.disk = self.disk.after_power_loss(self._rng)
        else:
            self.world.network.killed(self.process)
            self.disk = self.disk.after_kill()
        self._loses_power = self._is_wiped = False
        self._soon(self._ended.set)


def settings_of(node_id: int, host: str) -> dict[str, str]:
    """Settings of a single node that is its own quorum, with few internal partitions, since a history is
    short."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{host}:{PORT},CONTROLLER://{host}:{PORT + 1}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{host}:{PORT + 1}",
        "log.dirs": DATA,
        "num.partitions": "3",
        "offsets.topic.num.partitions": "2",
        "transaction.state.log.num.partitions": "2",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.num.partitions": "2",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "100",
    }
