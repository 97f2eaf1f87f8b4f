"""A node's seat in the quorum: its metadata log, its controller if any, the controller channel.

In: settings, the node's identity, its disk and clock. Out: `log`, `quorum`, `channel`, `controller`, started
and stopped in order. When `start` returns, a node that is its own quorum leads it; other nodes have caught up
with the leader.
Does not know: partitions, clients.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.partitions.metadata_partition import load_bootstrap, open_metadata_log
from barnabas.broker.quorum.controller_channel import ControllerChannel
from barnabas.broker.quorum.peers import Connections
from barnabas.metadata.versions import CONTROLLER_REGISTRATION
from barnabas.protocol.messages.add_raft_voter import AddRaftVoterRequest
from barnabas.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from barnabas.protocol.messages.update_features import UpdateFeaturesRequest
from barnabas.quorum.controller import Controller
from barnabas.quorum.quorum import Quorum

if TYPE_CHECKING:
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.quorum.metadata_log import MetadataLog
    from barnabas.runtime.clock import Clock
    from barnabas.security.clients.client_security import ClientSecurity
    from barnabas.settings import BrokerSettings, EndPoint
    from barnabas.settings.secrets import Secrets
    from barnabas.storage.logs.context import LogContext

log = logging.getLogger("barnabas.quorum")
REGISTER_MS = 200
DRAIN_MS = 500


class QuorumSeat:
    def __init__(
        self,
        settings: BrokerSettings,
        cluster_id: str,
        directory_id: bytes,
        context: LogContext,
        clock: Clock,
        secrets: Secrets,
        listeners: tuple[EndPoint, ...],
        security: Callable[[], ClientSecurity],
    ) -> None:
        self._settings = settings
        self._disk = context.disk
        self._listeners = listeners
        rng = context.rng
        self.log: MetadataLog = open_metadata_log(settings, directory_id, context, clock, listeners)
        timeout_ms: int = settings["controller.quorum.request.timeout.ms"]
        client_id = f"raft-client-{settings.node_id}"
        self._connections = Connections(client_id, timeout_ms, security)
        self.controller: Controller | None = None
        if settings.is_controller:
            self.controller = Controller(settings, cluster_id, self.log, clock, rng, secrets)
        self.quorum = Quorum(settings, cluster_id, self.log, self._connections, clock, rng)
        self._activating: asyncio.Future[object] | None = None
        self._registering: asyncio.Task[None] | None = None
        self.channel = ControllerChannel(self.quorum, self._connections, self.controller)

    async def start(self) -> None:
        """Return when this node has caught up with the leader; a node that is its own quorum, when it
        leads."""
        controller, quorum = self.controller, self.quorum
        if controller is not None:
            controller.serve_with(AddRaftVoterRequest, lambda request: quorum.voter_changes.add(request))
            controller.serve_with(
                RemoveRaftVoterRequest, lambda request: quorum.voter_changes.remove(request)
            )
            controller.run_before(
                UpdateFeaturesRequest, lambda asked: quorum.voter_changes.upgrade_kraft_version(asked)
            )
            controller.prepare(load_bootstrap(self._disk, self._settings.metadata_log_dir), self._listeners)
            quorum.on_lead, quorum.on_lose = self._activate, controller.renounce
        quorum.start()
        if self._activating is not None and quorum.is_alone:
            await self._activating
        await quorum.caught_up()
        if controller is not None and not quorum.is_alone:
            self._registering = asyncio.get_running_loop().create_task(self._register())

    def _activate(self) -> None:
        assert self.controller is not None
        self._activating = asyncio.ensure_future(self.controller.activate())
        self._activating.add_done_callback(activated)

    async def _register(self) -> None:
        """Register the listeners of this controller with the active one, once for each start."""
        controller = self.controller
        assert controller is not None
        while True:
            known = self.log.image.cluster.controllers.get(self._settings.node_id)
            if known is not None and known.incarnation_id == controller.incarnation_id:
                return
            level = self.log.image.features.metadata_level
            if not controller.is_active and level >= CONTROLLER_REGISTRATION:
                await self.channel.send(controller.registration())
            await asyncio.sleep(REGISTER_MS / 1000)

    async def wait_until(self, holds: Callable[[MetadataImage], bool]) -> None:
        """Return when `holds` is true for the committed metadata here."""
        if holds(self.log.image):
            return
        reached = asyncio.Event()

        def look(delta: MetadataDelta, image: MetadataImage) -> None:
            if holds(image):
                reached.set()

        self.log.add_listener(look)
        try:
            await reached.wait()
        finally:
            self.log.remove_listener(look)

    async def stop(self) -> None:
        """Stop the controller, and leave the quorum."""
        if self._registering is not None:
            self._registering.cancel()
            await asyncio.wait([self._registering])
        if self.controller is not None and self.controller.is_active and not self.quorum.is_alone:
            await self.controller.drain(DRAIN_MS)
        await self.quorum.stop()
        if self.controller is not None:
            await self.controller.stop()
        await self._connections.close()

    async def close(self) -> None:
        await self.log.close()


def activated(done: asyncio.Future[object]) -> None:
    """Log why a controller did not become active."""
    error = done.exception() if not done.cancelled() else None
    if error is not None and not isinstance(error, asyncio.CancelledError):
        log.warning("the controller did not become active: %s", str(error) or repr(error))
