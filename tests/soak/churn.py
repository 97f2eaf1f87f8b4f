"""Connections that come and go: opened and closed at once, asking one question, sending half a frame, idle.

In: addresses, a bound on connections that are open at once. Out: how many were opened, by kind, and what went
wrong with those that asked. Connections that are left idle or in the middle of a frame end with a reset.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Sequence

API_VERSIONS = struct.pack(">hhih", 18, 0, 1, -1)
FRAME = struct.pack(">i", len(API_VERSIONS)) + API_VERSIONS
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset
AT_ONCE_MAX = 100
IDLE_S_MAX = 2.0
ANSWER_S_MAX = 30.0
KINDS = ("at once", "a question", "half a frame", "a size and no frame", "idle", "no protocol")


class Churn(threading.Thread):
    """Opens connections until it is told to stop, about `per_second` of them."""

    def __init__(self, addresses: Sequence[tuple[str, int]], per_second: int, seed: int = 1) -> None:
        super().__init__(name="churn")
        self.opened: Counter[str] = Counter()
        self.problems: list[str] = []
        self._addresses = addresses
        self._pause_s = 1 / per_second
        self._rng = random.Random(seed)
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            asyncio.run(self._churn())
        except BaseException as error:
            self.problems.append(f"churn ended: {error!r}")

    def finish(self) -> None:
        self._stopping.set()
        self.join(60)

    async def _churn(self) -> None:
        loop = asyncio.get_running_loop()
        running: set[asyncio.Task[None]] = set()
        due = loop.time()
        while not self._stopping.is_set():
            if len(running) >= AT_ONCE_MAX:
                _, running = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
                continue
            kind = self._rng.choice(KINDS)
            running.add(loop.create_task(self._one(kind, self._rng.choice(self._addresses))))
            running = {task for task in running if not task.done()}
            due = max(due + self._pause_s, loop.time() - 1)
            await asyncio.sleep(max(0.0, due - loop.time()))
        if running:
            await asyncio.wait(running)

    async def _one(self, kind: str, address: tuple[str, int]) -> None:
        try:
            reader, writer = await asyncio.open_connection(*address)
        except OSError as error:
            self.problems.append(f"{kind}: cannot connect: {error}")
            return
        self.opened[kind] += 1
        try:
            await self._talk(kind, reader, writer)
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as error:
            if kind == "a question":
                self.problems.append(f"a question was not answered: {error!r}")
        finally:
            writer.transport.abort() if kind != "a question" else writer.close()

    async def _talk(self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if kind == "a question":
            writer.write(FRAME)
            async with asyncio.timeout(ANSWER_S_MAX):
                size = int.from_bytes(await reader.readexactly(4))
                answer = await reader.readexactly(size)
            if answer[:6] != b"\0\0\0\1\0\0":
                self.problems.append(f"a question was answered {answer[:6].hex()}")
            return
        if kind == "at once":
            return
        if kind == "no protocol":
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(ANSWER_S_MAX):
                if await reader.read(1):
                    self.problems.append("something that is no protocol was answered")
            return
        if kind == "half a frame":
            writer.write(FRAME[: self._rng.randrange(5, len(FRAME))])
        elif kind == "a size and no frame":
            writer.write(struct.pack(">i", self._rng.randrange(10, 90_000_000)))
        sock: socket.socket = writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        await asyncio.sleep(self._rng.uniform(0.0, IDLE_S_MAX))
