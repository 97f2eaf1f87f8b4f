"""Metrics of what runs out: the space of log directories, and the days of certificates.

In: the broker's log directories and listeners. Out: callbacks registered with its metrics. Space is looked up
in a thread, because a file system that hangs would hold the loop; a scrape shows the last look. Does not
know: when to look.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.metrics import Kind, Metric, Tags
from barnabas.security.tls.distinguished_names import subject_name

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker
    from barnabas.broker.wire.server import Listener
    from barnabas.storage.dirs.log_dir import LogDir

log = logging.getLogger("barnabas.metrics")
LOOK_EVERY_S = 30.0
CERTIFICATE = Metric(
    "barnabas",
    "certificate",
    "",
    "expiry-seconds",
    Kind.GAUGE,
    "When the certificate of a listener ends, in seconds since 1970.",
)
TOTAL, USABLE = (
    Metric("barnabas", "log-directory", "", name, Kind.GAUGE, help)
    for name, help in (
        ("total-bytes", "Size of the file system of a log directory."),
        ("usable-bytes", "Free space of the file system of a log directory."),
    )
)
Space = tuple[int, int]


class SpaceGauges:
    def __init__(self, broker: Broker, listeners: Sequence[Listener]) -> None:
        self._broker = broker
        self._found: list[tuple[Tags, Space]] = []
        self._looking: asyncio.Future[list[tuple[Tags, Space]]] | None = None
        self._looked_s = float("-inf")
        registry = broker.metrics.registry
        registry.add_table(
            ((TOTAL, lambda space: space[0]), (USABLE, lambda space: space[1])), lambda: self._found
        )
        registry.add(CERTIFICATE, lambda: certificates(listeners))

    def look(self) -> None:
        """Begin to look if it is time to, and the last look has come back."""
        now_s = self._broker.loop.time()
        if self._looking is not None or now_s - self._looked_s < LOOK_EVERY_S:
            return
        self._looked_s = now_s
        disk, dirs = self._broker.log_dirs.context.disk, list(self._broker.log_dirs.dirs)
        self._looking = self._broker.threads.reads.run(spaces, dirs, disk.space)
        self._looking.add_done_callback(self._looked)

    def _looked(self, done: asyncio.Future[list[tuple[Tags, Space]]]) -> None:
        self._looking = None
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            log.warning("the space of the log directories is unknown: %s", error)
        self._found = [] if error is not None else done.result()


def spaces(dirs: Sequence[LogDir], space: Callable[[str], Space]) -> list[tuple[Tags, Space]]:
    """Total and usable bytes of each directory that can be looked at. Runs in a thread."""
    found: list[tuple[Tags, Space]] = []
    for each in dirs:
        if each.failure is None:
            try:
                found.append(((("logDirectory", each.absolute_path),), space(each.path)))
            except OSError:
                continue  # requests that use the directory find out what is wrong
    return found


def certificates(listeners: Sequence[Listener]) -> Iterator[tuple[Tags, float]]:
    for each in list(listeners):
        if each.tls is not None:
            found = each.tls.loaded.key_store.certificate
            tags = (("listener", each.name), ("subject", subject_name(found)))
            yield tags, found.not_valid_after_utc.timestamp()
