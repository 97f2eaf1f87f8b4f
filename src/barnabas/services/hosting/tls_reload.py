"""Reads key stores and trust stores again when their files change.

In: the files of the stores, a function that reads them, one that takes the new TLS. New connections get the
new certificate, open ones keep theirs. A store that cannot be read is logged, and the old one stays.
Does not know: sockets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from barnabas.security.errors import SecuritySettingsError
from barnabas.security.tls.contexts import ServerTls

LOOK_EVERY_S = 10.0

log = logging.getLogger("barnabas.services")

Mark = tuple[tuple[int, int, int] | None, ...]


class TlsReload:
    def __init__(
        self,
        paths: Sequence[str],
        load: Callable[[], ServerTls | None],
        replace: Callable[[ServerTls], Awaitable[None]],
    ) -> None:
        self._paths = paths
        self._load = load
        self._replace = replace
        self._mark = mark_of(paths)
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._paths:
            self._task = asyncio.ensure_future(self._look_always())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def look(self) -> bool:
        """Whether files have changed, and their stores are in use now."""
        mark = mark_of(self._paths)
        if mark == self._mark:
            return False
        self._mark = mark
        try:
            found = await asyncio.to_thread(self._load)
        except SecuritySettingsError as error:
            log.error("changed stores are not used, the old ones stay: %s", error)
            return False
        if found is None:
            return False
        await self._replace(found)
        log.info("new connections use the changed stores: %s", ", ".join(self._paths))
        return True

    async def _look_always(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except Exception:
                log.exception("changed stores cannot be used")


def mark_of(paths: Sequence[str]) -> Mark:
    """Changes when a file does: by its time, its size, or because another file took its place."""
    return tuple(stat_of(path) for path in paths)


def stat_of(path: str) -> tuple[int, int, int] | None:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
