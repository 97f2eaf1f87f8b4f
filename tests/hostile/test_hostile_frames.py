"""Random and mutated frames by the thousand, while an honest client works: no crash, memory bounded."""

from __future__ import annotations

import contextlib
import socket
from itertools import islice

import pytest

from .conftest import MIB, Starter, honest_work, resident_bytes
from .frames_of_all_kinds import hostile_frames

CONNECTIONS = 32
GROWTH_MAX = 64 * MIB
READ_TIMEOUT_S = 20.0


@pytest.mark.timeout(3600)
def test_hostile_frames_harm_nobody(start: Starter, request: pytest.FixtureRequest) -> None:
    count = int(request.config.getoption("--frames"))
    frames = hostile_frames(seed=count)
    with start() as broker:
        broker.create_topic("hostile")
        broker.create_topic("honest")
        with honest_work(broker.port, "honest"):
            attack(broker.port, list(islice(frames, 2_000)))
            before = resident_bytes(broker.pid)
            sent = 2_000
            while sent < count:
                sent += attack(broker.port, list(islice(frames, CONNECTIONS * 4)))
            after = resident_bytes(broker.pid)

    if isinstance(broker.pid, int) and "apache" not in request.node.name:
        assert after - before < GROWTH_MAX, f"{(after - before) / MIB:.0f} MiB more than before"


def attack(port: int, frames: list[bytes]) -> int:
    """Each frame on a connection of its own, many at once; waits until the broker let go of each."""
    for at in range(0, len(frames), CONNECTIONS):
        victims = []
        for frame in frames[at : at + CONNECTIONS]:
            connection = socket.create_connection(("127.0.0.1", port), READ_TIMEOUT_S)
            victims.append(connection)
            with contextlib.suppress(ConnectionError):
                connection.sendall(frame)
                connection.shutdown(socket.SHUT_WR)
        for connection in victims:
            with connection, contextlib.suppress(ConnectionError):
                while connection.recv(1 << 16):
                    pass
    return len(frames)
