"""The thread port: runs slow work outside the loop, in bounded pools, one pool for each kind of wait.

A thread that reads a cold segment for a consumer may wait for seconds. If the same pool synced the metadata
log, a few slow consumers would cost a node its place in the quorum
(docs/decisions/0012-threads-by-what-waits-for-them.md).
Does not know: what the work is.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
PAUSE_S = 0.00005  # long enough for another thread to acquire the interpreter's lock
METADATA_THREADS = 1  # the metadata log never has more than one sync under way
SYNC_THREADS = 4
READ_THREADS = 8
REQUEST_THREADS = 2
FOLDER_THREADS = 1  # metadata changes must be applied in order
BACKGROUND_THREADS = 4
LOGIN_THREADS = 4
REGISTRY_THREADS = 2  # a question to the schema registry takes milliseconds; most ids are known
TLS_THREADS = 2  # handshakes compute outside the interpreter's lock


class Threads:
    """`run` is awaited on the loop; a simulated loop runs the work inline instead."""

    __slots__ = ("_count", "_loop", "_loop_thread", "_pool")

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int, name: str = "barnabas") -> None:
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._count = count
        self._pool = ThreadPoolExecutor(count, thread_name_prefix=name)

    def start_all(self) -> None:
        """Start all threads now: later the operating system may refuse to, and work would be lost.
        RuntimeError if it refuses."""
        all_there = threading.Barrier(self._count + 1)
        try:
            for _ in range(self._count):
                self._pool.submit(all_there.wait)
        except BaseException:
            all_there.abort()
            raise
        all_there.wait()

    def run(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        return self._loop.run_in_executor(self._pool, work, *arguments)

    def pause(self) -> None:
        """Let the loop run. Long work in pure Python calls this every fraction of a millisecond; otherwise
        the loop gets the interpreter's lock only every five milliseconds. Does nothing if work runs
        inline."""
        if threading.get_ident() != self._loop_thread:
            time.sleep(PAUSE_S)

    def close(self) -> None:
        self._pool.shutdown(wait=True)


class ThreadPools:
    """All threads of a node."""

    __slots__ = (
        "background",
        "folders",
        "logins",
        "metadata",
        "reads",
        "registry",
        "requests",
        "syncs",
        "tls",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.metadata = Threads(loop, METADATA_THREADS, "barnabas-metadata")  # only syncs of the metadata log
        self.syncs = Threads(loop, SYNC_THREADS, "barnabas-sync")  # syncs of partitions' logs, checkpoints
        self.reads = Threads(loop, READ_THREADS, "barnabas-read")  # reads for clients outside the page cache
        self.requests = Threads(
            loop, REQUEST_THREADS, "barnabas-request"
        )  # computation that clients wait for
        self.folders = Threads(
            loop, FOLDER_THREADS, "barnabas-folder"
        )  # creates and deletes folders of partitions
        # Retention, recovery, loading of coordinators, moves between dirs, snapshots: long, often pure
        # Python.
        self.background = Threads(loop, BACKGROUND_THREADS, "barnabas-background")
        # Steps of logins that compute long or ask other services. These threads begin with the first such
        # login: a node without SASL needs none.
        self.logins = Threads(loop, LOGIN_THREADS, "barnabas-login")
        # Questions to the schema registry. They begin with the first topic whose records must name a schema.
        self.registry = Threads(loop, REGISTRY_THREADS, "barnabas-registry")
        self.tls = Threads(loop, TLS_THREADS, "barnabas-tls")  # handshakes, and nothing else
        loop.set_default_executor(self.reads._pool)

    def run(self, work: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
        """Run work in the background pool, for which no client waits."""
        return self.background.run(work, *arguments)

    def pause(self) -> None:
        """See `Threads.pause`."""
        self.background.pause()

    def start_all(self) -> None:
        """See `Threads.start_all`."""
        for each in self._all():
            if each is not self.logins and each is not self.registry:
                each.start_all()

    def close(self) -> None:
        for each in self._all():
            each.close()

    def _all(self) -> tuple[Threads, ...]:
        """In the order in which they are closed."""
        return (
            self.tls,
            self.logins,
            self.registry,
            self.background,
            self.folders,
            self.requests,
            self.reads,
            self.syncs,
            self.metadata,
        )
