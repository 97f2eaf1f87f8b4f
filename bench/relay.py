"""`python -m bench.relay`: measures how fast four processes pass one record on; no produce can be faster.

In: a duration. Out: the median time of a frame. A process writes the client's frame to a file and passes it
to two others; these write it and confirm; then the client gets its response. Nothing is checked or encoded.
Does not know: Kafka.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, cast

import uvloop

from bench import frames, generator
from bench.generator import Plan

FOLLOWERS = 2
HELLO, DONE = b"listener", b"d" * 120  # about as long as a fetch
ANSWER = (54).to_bytes(4, "big") + bytes(54)


class End(asyncio.Protocol):
    """One end of a connection, with a file to write to."""

    file: ClassVar[int]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)


class Leading(End):
    followers: ClassVar[list[asyncio.Transport]] = []
    client: ClassVar[asyncio.Transport]
    missing: ClassVar[int] = 0

    def data_received(self, data: bytes) -> None:
        if self.transport in Leading.followers:
            Leading.missing -= 1
            if not Leading.missing:
                Leading.client.write(ANSWER)
        elif data == HELLO:
            Leading.followers.append(self.transport)
        else:
            Leading.client, Leading.missing = self.transport, FOLLOWERS
            os.pwrite(self.file, data, 0)
            for listener in Leading.followers:
                listener.write(data)


class Following(End):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.write(HELLO)

    def data_received(self, data: bytes) -> None:
        os.pwrite(self.file, data, 0)
        self.transport.write(DONE)


def lead(told: Any) -> None:
    async def serve() -> None:
        server = await asyncio.get_running_loop().create_server(Leading, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        while len(Leading.followers) < FOLLOWERS:
            await asyncio.sleep(0.01)
        told.send("complete")
        await server.serve_forever()

    with tempfile.TemporaryFile() as file:
        End.file = file.fileno()
        uvloop.run(serve())


def follow(port: int) -> None:
    async def serve() -> None:
        await asyncio.get_running_loop().create_connection(Following, "127.0.0.1", port)
        await asyncio.get_running_loop().create_future()

    with tempfile.TemporaryFile() as file:
        End.file = file.fileno()
        uvloop.run(serve())


@contextmanager
def relay() -> Iterator[int]:
    """The port for clients."""
    spawn = multiprocessing.get_context("spawn")
    told, telling = spawn.Pipe(duplex=False)
    processes = [spawn.Process(target=lead, args=(telling,), daemon=True)]
    processes[0].start()
    try:
        port: int = told.recv()
        for _ in range(FOLLOWERS):
            processes.append(spawn.Process(target=follow, args=(port,), daemon=True))
            processes[-1].start()
        told.recv()
        yield port
    finally:
        for process in processes:
            process.terminate()
            process.join()


def p50_us(seconds: float) -> float:
    load = frames.produce("latency", frames.batch_of(1), 2, acks=-1)
    with relay() as port:
        return generator.run(port, load.frames, Plan(1, 1, seconds=seconds)).p50_us


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.relay", description=__doc__)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args(arguments)
    print(f"one record through four processes, p50: {p50_us(options.seconds):.0f} µs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
