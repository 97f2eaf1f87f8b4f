"""Workers that clean logs: a process, or a thread where the disk is not the real one.

In: a `CleaningJob`, and a function that places each cleaned segment. Out: the statistics of the pass. The
process starts with the first job and stops after a while without jobs; it always ends with the broker.
Does not know: which log, where segments go, checkpoints.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, Protocol

from barnabas.storage.compaction.job import CleanedGroup, CleaningJob, CleaningStats

if TYPE_CHECKING:
    from barnabas.runtime.disk import Disk
    from barnabas.runtime.pieces import Pieces
    from barnabas.runtime.threads import Threads

log = logging.getLogger("barnabas.cleaner")

MODULE = "barnabas.storage.compaction.worker"
LINE_BYTES_MAX = 16 << 20
IDLE_MS_MAX = 30_000

PlaceSegment = Callable[[CleanedGroup], Awaitable[bool]]


class Uncleanable(Exception):
    """The log has data that cannot be cleaned."""


class Abandoned(Exception):
    """The pass ended early: the log was deleted, the broker stops, or the process died."""


class Worker(Protocol):
    async def clean(self, job: CleaningJob, place: PlaceSegment) -> CleaningStats:
        """Clean a log. `place` replaces old segments with a cleaned one; if it returns False, the pass ends.
        Raises `Uncleanable`, `Abandoned`, or `OSError` when the disk failed."""

    async def idle(self, now_ms: int) -> None:
        """Note that there was nothing to do."""

    async def stop(self) -> None:
        """End the current pass, if any: its `clean` raises `Abandoned`. Another may begin afterwards."""


class ProcessWorker:
    """Cleans in a process; `storage.compaction.worker` describes the messages."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._process: asyncio.subprocess.Process | None = None
        self._idle_since_ms: int | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def clean(self, job: CleaningJob, place: PlaceSegment) -> CleaningStats:
        self._idle_since_ms = None
        if self._process is None or self._process.returncode is not None:
            await self._start()
        await self._send_line(await self._pieces.run(job.encode()))
        while True:
            kind, content = await self._receive()
            if kind == "done":
                return CleaningStats(**content)
            if kind == "failed":
                number, message = content
                raise OSError(number, message)
            if kind == "corrupt":
                raise Uncleanable(content)
            if not await place(CleanedGroup(tuple(content["base_offsets"]), content["size"])):
                await self.stop()
                raise Abandoned("the log was changed meanwhile")
            await self._send_line("next")

    async def idle(self, now_ms: int) -> None:
        if self._process is None:
            return
        if self._idle_since_ms is None:
            self._idle_since_ms = now_ms
        elif now_ms - self._idle_since_ms >= IDLE_MS_MAX:
            await self.stop()

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            try:
                process.kill()
            except ProcessLookupError:
                pass
            await process.wait()

    async def _start(self) -> None:
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # import nothing from the current directory
                "-m",
                MODULE,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LINE_BYTES_MAX,
            )
        except OSError as error:  # a shortage of processes or descriptors: the log and its disk are fine
            raise Abandoned(f"the cleaner's process cannot be started: {error}") from error
        log.debug("the cleaner's process is %d", self._process.pid)

    async def _send_line(self, line: str) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return  # stopped or dead: `_receive` raises
        try:
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
        except (BrokenPipeError, ConnectionResetError):
            pass  # dead: `_receive` raises

    async def _receive(self) -> tuple[str, Any]:
        process = self._process
        line = b""
        if process is not None:
            assert process.stdout is not None
            line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            died = self._process is process is not None
            await self.stop()
            raise Abandoned("the cleaner's process died" if died else "the cleaner was stopped")
        [(kind, content)] = json.loads(line).items()
        return kind, content


class ThreadWorker:
    """Cleans in threads, one step for each segment, on a disk that other processes cannot see."""

    def __init__(self, threads: Threads, disk: Disk) -> None:
        self._threads = threads
        self._disk = disk
        self._stopped = False

    async def clean(self, job: CleaningJob, place: PlaceSegment) -> CleaningStats:
        from barnabas.storage.compaction.cleaner import Cleaner
        from barnabas.storage.logs.context import LogContext

        self._stopped = False
        cleaner = Cleaner(job, LogContext(self._disk))
        groups = cleaner.run()
        while True:
            group = await self._threads.run(_next_group, groups)
            if self._stopped:
                raise Abandoned("the cleaner was stopped")
            if group is None:
                return cleaner.stats
            if not await place(group):
                raise Abandoned("the log was changed meanwhile")

    async def idle(self, now_ms: int) -> None:
        pass

    async def stop(self) -> None:
        self._stopped = True


def _next_group(groups: Generator[CleanedGroup, None, None]) -> CleanedGroup | None:
    try:
        return next(groups, None)
    except (OSError, MemoryError):
        raise
    except Exception as error:  # as in the process: a damaged log may raise anything
        raise Uncleanable(f"{type(error).__name__}: {error}") from error
