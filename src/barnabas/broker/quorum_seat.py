"""A node's seat in the quorum: its copy of the metadata, its controller if any, the way to the active one.

In: settings, the node's identity, its disk and clock. Out: `log`, `quorum`, `channel`, `controller`, started
and stopped in order. A node that is its own quorum leads when `start` returns; others are as new as a leader
was.
Does not know: partitions, clients.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from barnabas.broker.controller_channel import ControllerChannel
from barnabas.broker.metadata_partition import load_bootstrap, open_metadata_log
from barnabas.broker.peers import Connections
from barnabas.runtime.controller import Controller
from barnabas.runtime.quorum import Quorum

if TYPE_CHECKING:
    from barnabas.metadata.delta import MetadataDelta
    from barnabas.metadata.image import MetadataImage
    from barnabas.runtime.clock import Clock
    from barnabas.runtime.metadata_log import MetadataLog
    from barnabas.settings import BrokerSettings, EndPoint
    from barnabas.settings.secrets import Secrets
    from barnabas.storage.context import LogContext

log = logging.getLogger("barnabas.quorum")


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
    ) -> None:
        self._settings = settings
        self._disk = context.disk
        self._listeners = listeners
        rng = context.rng
        self.log: MetadataLog = open_metadata_log(settings, directory_id, context, clock, listeners)
        timeout_ms: int = settings["controller.quorum.request.timeout.ms"]
        self._connections = Connections(f"raft-client-{settings.node_id}", timeout_ms)
        self.controller: Controller | None = None
        if settings.is_controller:
            self.controller = Controller(settings, cluster_id, self.log, clock, rng, secrets)
        self.quorum = Quorum(settings, cluster_id, self.log, self._connections)
        self.channel = ControllerChannel(self.quorum, self._connections, self.controller)

    async def start(self) -> None:
        controller = self.controller
        if controller is not None and self.quorum.is_alone:
            bootstrap = load_bootstrap(self._disk, self._settings.metadata_log_dir)
            await controller.start(bootstrap, self._listeners)
        self.quorum.start()
        await self.quorum.caught_up()

    async def has_read(self, offset: int) -> None:
        """Returns when the committed metadata here goes up to this offset."""
        if self.log.image.provenance.offset >= offset:
            return
        reached = asyncio.Event()

        def look(delta: MetadataDelta, image: MetadataImage) -> None:
            if image.provenance.offset >= offset:
                reached.set()

        self.log.add_listener(look)
        await reached.wait()
        self.log.remove_listener(look)

    async def stop(self) -> None:
        """Decides nothing and follows nobody any more."""
        await self.quorum.stop()
        if self.controller is not None:
            await self.controller.stop()
        await self._connections.close()

    async def close(self) -> None:
        await self.log.close()
