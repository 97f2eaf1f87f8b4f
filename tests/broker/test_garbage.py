"""Connections leave no garbage for the collector.

The collector looks at objects that lived for some seconds perhaps once in hours (`runtime.garbage`): a
connection whose objects refer to each other in a circle would stay in memory until then.
"""

from __future__ import annotations

import gc
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from barnabas.broker.fetch.consumer_fetch import ConsumerFetch
from barnabas.broker.wire.channel import Channel
from barnabas.broker.wire.outbox import Outbox
from barnabas.connection.inbox import Inbox
from barnabas.protocol.messages.api_versions import ApiVersionsRequest
from barnabas.testing import Broker
from barnabas.testing.broker import InProcess
from barnabas.testing.waiting import wait_until

from .conversation import Conversation, batch, end_offset, fetch, produce

KINDS = Channel, Outbox, Inbox
TOPIC = "kept"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic(TOPIC)
        yield broker


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def alive(broker: Broker, *kinds: type) -> set[int]:
    """Ids of the objects that are there. The broker's thread looks, since only that may free uvloop's
    objects, and the list of all objects holds some of them last."""
    runner = broker._runner
    assert isinstance(runner, InProcess) and runner._loop is not None
    found: Future[set[int]] = Future()

    def look() -> None:
        found.set_result({id(each) for each in gc.get_objects() if isinstance(each, kinds)})

    runner._loop.call_soon_threadsafe(look)
    return found.result(30)


def nothing_sent(broker: Broker) -> None:
    socket.create_connection(("127.0.0.1", broker.port)).close()


def half_a_frame(broker: Broker) -> None:
    with socket.create_connection(("127.0.0.1", broker.port)) as connection:
        connection.sendall(struct.pack(">ih", 100, 18))


def no_protocol(broker: Broker) -> None:
    with socket.create_connection(("127.0.0.1", broker.port)) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert not connection.recv(1)


def requests(broker: Broker) -> None:
    with Conversation(broker) as talk:
        talk.ask(ApiVersionsRequest(client_software_name="a", client_software_version="1"), 3)
        for _ in range(3):
            talk.ask(*produce(TOPIC, batch(b"v")))
        talk.ask(*fetch(TOPIC, 0))


def a_fetch_that_waits(broker: Broker) -> None:
    with Conversation(broker) as talk:
        talk.send(fetch(TOPIC, end_offset(talk, TOPIC), wait_ms=60_000))
        wait_until(lambda: bool(alive(broker, ConsumerFetch)), what="the fetch waits")


def responses_that_are_not_read(broker: Broker) -> None:
    with Conversation(broker) as talk:
        talk.send(*(produce(TOPIC, batch(b"v" * 100_000), acks=-1) for _ in range(20)))
        talk.receive()  # the others are lost


@pytest.mark.parametrize(
    "connect",
    [nothing_sent, half_a_frame, no_protocol, requests, a_fetch_that_waits, responses_that_are_not_read],
)
def test_a_connection_leaves_no_garbage(
    broker: Broker, uncollected: None, connect: Callable[[Broker], None]
) -> None:
    # Brokers of other tests in this process may have left objects behind, which frames or threads hold.
    before = alive(broker, *KINDS)
    for _ in range(3):
        connect(broker)

    def left() -> int:
        return len(alive(broker, *KINDS) - before)

    wait_until(lambda: not left(), what=lambda: f"{left()} objects of connections go")
