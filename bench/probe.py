"""A producer that writes one record at a time and records the latency of each: `probe.py PORT TOPIC OUT`.

In: a broker's port, a topic of one partition. Out: a file of pairs (send time in the machine's monotonic
time, seconds until the response), until SIGTERM. It pauses between two requests, so that it leaves the cores
to the broker and to the load.
"""

from __future__ import annotations

import signal
import socket
import struct
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from bench import frames

REST_S = 0.0003
PAIR = struct.Struct("<dd")
RESPONSE_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Wait:
    """One request of the probe."""

    at_s: float
    seconds: float


def read_waits(path: Path) -> list[Wait]:
    data = path.read_bytes()
    return [Wait(*pair) for pair in PAIR.iter_unpack(data[: len(data) // PAIR.size * PAIR.size])]


def probe(port: int, topic: str, out: Path) -> None:
    load = frames.produce(topic, frames.batch_of(1), 1)
    with out.open("wb", buffering=0) as file, socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            began = time.monotonic()
            connection.sendall(load.frames)
            response = connection.recv(RESPONSE_BYTES_MAX)
            file.write(PAIR.pack(began, time.monotonic() - began))
            if response[load.error_at : load.error_at + 2] != b"\0\0":
                raise SystemExit(f"the probe's request failed: {response.hex()}")
            time.sleep(REST_S)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    probe(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
