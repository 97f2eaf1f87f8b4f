"""The limit of open files, and how a node divides it.

In: the limit (RLIMIT_NOFILE). Out: shares of it for log files, clients and other nodes, and a reserve for the
node itself: metadata log, checkpoints, snapshots, listening sockets, connections to other nodes, the cleaner,
metrics scrapes. So clients cannot use up the descriptors that the node needs.
Does not know: which code opens what.
"""

from __future__ import annotations

import logging
import resource
from dataclasses import dataclass

log = logging.getLogger("barnabas.descriptors")

UNLIMITED = 1_000_000  # used in place of an infinite limit
RESERVE_MIN, RESERVE_MAX = 56, 1024
PEERS_MIN, PEERS_MAX = 16, 1024
FILES_MIN, FILES_MAX = 32, 100_000
CLIENTS_MIN = 16


class Share:
    """A limited number of descriptors for one purpose."""

    __slots__ = ("limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    @property
    def is_full(self) -> bool:
        return self.used >= self.limit

    def acquire(self) -> bool:
        """Acquire a descriptor. False if all are in use."""
        if self.used >= self.limit:
            return False
        self.used += 1
        return True

    def acquire_beyond_limit(self) -> None:
        """Acquire a descriptor although all may be in use, because another one is about to be released."""
        self.used += 1

    def release(self) -> None:
        self.used -= 1


@dataclass(frozen=True, slots=True)
class Shares:
    """`files` limits the cache of open log files (`storage.files.open_files`). `clients` and `peers` count
    connections."""

    limit: int
    reserve: int
    files: int
    clients: Share
    peers: Share

    @classmethod
    def of(cls, limit: int) -> Shares:
        reserve = bounded(limit // 8, RESERVE_MIN, RESERVE_MAX)
        peers = bounded(limit // 16, PEERS_MIN, PEERS_MAX)
        rest = max(limit - reserve - peers, 0)
        files = bounded(rest // 2, FILES_MIN, FILES_MAX)
        return cls(limit, reserve, files, Share(max(rest - files, CLIENTS_MIN)), Share(peers))

    def __str__(self) -> str:
        return (
            f"{self.limit} open files: {self.clients.limit} for clients, {self.peers.limit} for other nodes, "
            f"{self.files} for log files, {self.reserve} in reserve"
        )

    @classmethod
    def of_process(cls) -> Shares:
        return cls.of(open_files_max())


def bounded(value: int, low: int, high: int) -> int:
    return max(low, min(value, high))


def open_files_max() -> int:
    """The current soft limit of open files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else min(soft, UNLIMITED)


def raise_limit() -> None:
    """Raise the soft limit to the hard limit, if the operating system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (ValueError, OSError) as error:
            log.warning("Could not raise the limit of open files, which is %d: %s", soft, error)
