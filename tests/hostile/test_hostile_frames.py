"""Random and mutated frames by the thousand, while an honest client works: no crash, memory bounded."""

from __future__ import annotations

import contextlib
import socket
from contextlib import closing
from itertools import islice

import pytest

from barnabas.protocol import ApiKey
from barnabas.testing import Broker
from interop.talk import Talk

from .conftest import MIB, honest_work, resident_bytes
from .frames_of_all_kinds import hostile_frames

CONNECTIONS = 32
GROWTH_MAX = 64 * MIB
READ_TIMEOUT_S = 20.0
WARM_UP = 2_000
DOES_WHAT_IT_SAYS = {ApiKey.UNREGISTER_BROKER}  # one wrong byte may name the only broker there is


@pytest.mark.timeout(3600)
def test_hostile_frames_harm_nobody(ours: Broker, request: pytest.FixtureRequest) -> None:
    count = int(request.config.getoption("--frames"))
    ours.create_topic("hostile")
    frames = hostile_frames(seed=count, keys=announced(ours.port))
    with honest_work(ours.port, "honest"):
        sent = attack(ours.port, list(islice(frames, WARM_UP)))
        before = resident_bytes(ours.pid)
        while sent < count:
            sent += attack(ours.port, list(islice(frames, CONNECTIONS * 4)))
        after = resident_bytes(ours.pid)

    assert after - before < GROWTH_MAX, f"{(after - before) / MIB:.0f} MiB more than before"


def announced(port: int) -> set[int]:
    """Keys of the APIs that the broker serves: most frames should get past the first check."""
    with closing(Talk(port, "hostile")) as talk:
        answer = talk.silently(ApiKey.API_VERSIONS, 0)
    return {each["api_key"] for each in answer["api_keys"]} - DOES_WHAT_IT_SAYS


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
