"""Requests of many elements never keep the loop in one callback: calls of functions are counted, not time."""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import closing
from types import FrameType
from typing import Any

import pytest

from barnabas.protocol import ApiKey
from barnabas.runtime.loop_watch import is_loop, names_of
from barnabas.testing import Broker
from interop.talk import Talk

from .wide_requests import TOPIC, arrays, wide_frame

ELEMENTS = 20_000
CALLS_MAX = 15_000  # in one callback: a piece of a millisecond has a few thousand
READ_TIMEOUT_S = 30.0
DOES_WHAT_IT_SAYS = {ApiKey.UNREGISTER_BROKER}
USUAL = [
    (ApiKey.PRODUCE, ("topic_data", "partition_data")),
    (ApiKey.METADATA, ("topics",)),
    (ApiKey.FIND_COORDINATOR, ("coordinator_keys",)),
    (ApiKey.DESCRIBE_CONFIGS, ("resources",)),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, ("dirs", "topics", "partitions")),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, ("topics", "partition_indexes")),
]


class Counting:
    """Counts the calls in each callback of a loop, from inside its thread."""

    def __init__(self) -> None:
        self.calls = 0
        self.longest: list[str] = []  # callbacks with too many calls

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_back is not None and is_loop(frame.f_back):
            self.calls = 0
        elif event in ("call", "c_call"):
            self.calls += 1
            if self.calls == CALLS_MAX:
                self.longest.append(" < ".join(names_of(frame)))


@pytest.fixture(scope="module")
def counted() -> Iterator[tuple[Broker, Counting]]:
    with Broker() as broker:
        broker.create_topic(TOPIC)
        counting = Counting()
        runner: Any = broker._runner
        runner._loop.call_soon_threadsafe(sys.setprofile, counting)
        yield broker, counting
        runner._loop.call_soon_threadsafe(sys.setprofile, None)


def ask(port: int, frame: bytes) -> None:
    """Send a frame and wait for its response, or until the broker closes the connection."""
    with socket.create_connection(("127.0.0.1", port), READ_TIMEOUT_S) as connection:
        connection.sendall(frame)
        with contextlib.suppress(ConnectionError):
            head = connection.recv(4, socket.MSG_WAITALL)
            left = struct.unpack(">i", head)[0] if len(head) == 4 else 0
            while left > 0 and (part := connection.recv(min(left, 1 << 20))):
                left -= len(part)


def too_long(counted: tuple[Broker, Counting], frame: bytes) -> list[str]:
    broker, counting = counted
    counting.longest.clear()
    ask(broker.port, frame)
    return list(counting.longest)


@pytest.mark.parametrize(("key", "path"), USUAL, ids=lambda each: getattr(each, "name", ""))
def test_a_request_of_many_elements_is_handled_in_pieces(
    counted: tuple[Broker, Counting], key: ApiKey, path: tuple[str, ...]
) -> None:
    version = served(counted[0].port)[key]
    assert too_long(counted, wide_frame(key, version, path, ELEMENTS)) == []


def test_the_error_of_a_malformed_request_is_found_in_a_bounded_part_of_it(
    counted: tuple[Broker, Counting],
) -> None:
    frame = wide_frame(ApiKey.OFFSET_COMMIT, 9, ("topics",), ELEMENTS)
    cut = struct.pack(">i", len(frame) - 6) + frame[4:-2]
    assert too_long(counted, cut) == []


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_every_array_of_every_request_is_handled_in_pieces(counted: tuple[Broker, Counting]) -> None:
    failed = {}
    for key, version in served(counted[0].port).items():
        for path in arrays(key, version):
            found = too_long(counted, wide_frame(key, version, path, ELEMENTS))
            if found:
                failed[f"{key.name} {'.'.join(path)}"] = found[0]
    assert not failed


def served(port: int) -> dict[ApiKey, int]:
    """The APIs of the broker, each with its last version."""
    with closing(Talk(port, "hostile")) as talk:
        answer = talk.silently(ApiKey.API_VERSIONS, 0)
    found = {ApiKey(each["api_key"]): each["max_version"] for each in answer["api_keys"]}
    return {key: version for key, version in found.items() if key not in DOES_WHAT_IT_SAYS}
