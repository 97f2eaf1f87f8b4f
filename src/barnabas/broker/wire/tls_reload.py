"""Key and trust stores of listeners are read again: when a setting is set, and when a file changes.

In: changes of settings, files whose modification time changes (a look in a thread every few seconds). Out:
new contexts for new connections; open ones go on. A store that cannot be used, or that may not take the place
of the one in use, is refused: before a change of settings is committed if this broker gets the request, in
any case with an error in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.broker.wire.listener_tls import Fingerprint, TlsPlan
from barnabas.protocol import ErrorCode, KafkaError
from barnabas.security.errors import SecuritySettingsError
from barnabas.settings.definitions import BROKER_ROWS
from barnabas.settings.tables.row import READ_ONLY

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.wire.server import Listener
    from barnabas.settings import BrokerSettings

log = logging.getLogger("barnabas.tls")
LOOK_EVERY_S = 5.0
SETTINGS = tuple(name for name, row in BROKER_ROWS.items() if name.startswith("ssl.") and row[5] != READ_ONLY)


class TlsReload:
    def __init__(self, broker: Broker, listeners: Sequence[Listener]) -> None:
        self._broker = broker
        self._listeners = listeners  # a live list
        self._task: asyncio.Task[None] | None = None
        self._is_wanted = asyncio.Event()
        dynamic = broker.dynamic
        dynamic.on_change(SETTINGS, lambda before, after: self.look())
        dynamic.on_set_again.append(self.look)
        dynamic.checks.append(self.check)

    def start(self) -> None:
        if self._task is None and self._secured:
            self._task = self._broker.loop.create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def look(self) -> None:
        """Look at all stores soon."""
        self.start()
        self._is_wanted.set()

    @property
    def _secured(self) -> list[Listener]:
        return [each for each in self._listeners if each.tls is not None]

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(LOOK_EVERY_S):
                    await self._is_wanted.wait()
            except TimeoutError:
                pass
            self._is_wanted.clear()
            for listener in self._secured:
                try:
                    await self._look_at(listener)
                except Exception:
                    self._broker.unexpected.note("reading stores again:", listener.name)

    async def _look_at(self, listener: Listener) -> None:
        tls = listener.tls
        assert tls is not None
        seen: Fingerprint | None = None
        try:
            plan = TlsPlan(self._broker.settings, listener.endpoint)
            seen = await self._broker.threads.run(plan.fingerprint)
            if seen in (tls.seen, tls.refused):
                return
            loaded = await self._broker.threads.run(plan.load, tls.loaded)
        except SecuritySettingsError as error:
            tls.refused = seen
            if str(error) != tls.refusal:
                tls.refusal = str(error)
                log.error("listener %s keeps its certificate and its trust store: %s", listener.name, error)
            return
        tls.use(loaded, seen)
        self._broker.security.change(self._broker.settings, self._broker.settings)  # reads them as a client
        log.info("listener %s uses a new certificate or trust store for new connections", listener.name)

    async def check(self, after: BrokerSettings) -> None:
        """Refuse settings with stores that this node could not use. KafkaError(INVALID_REQUEST)."""
        for listener in self._secured:
            assert listener.tls is not None
            try:
                plan = TlsPlan(after, listener.endpoint)
                if await self._broker.threads.run(plan.fingerprint) == listener.tls.seen:
                    continue
                await self._broker.threads.run(plan.load, listener.tls.loaded)
            except SecuritySettingsError as error:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"listener {listener.name} cannot use these settings: {error}"
                ) from None
