"""The blocking face on real sockets: the same core, without an event loop in this thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.blocking import BlockingCluster, BlockingNetwork, run
from barnabas.client.core.address import Address
from barnabas.client.core.errors import BootstrapError, ConnectError, ConnectionLost, RequestTimeout
from barnabas.client.core.network import ConnectionSettings
from barnabas.protocol import Message
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.testing.ports import free_ports

from .fake_broker import SILENCE, Answer, FakeBroker

ASK = MetadataRequest(topics=[])
QUICK = ConnectionSettings("t", 5_000, 100)
LARGE = 3_000_000


@contextmanager
def serving(answers: Mapping[type[Message], Answer]) -> Iterator[FakeBroker]:
    """A broker on a loop of another thread."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    broker = FakeBroker(answers)
    try:
        asyncio.run_coroutine_threadsafe(broker.__aenter__(), loop).result(5)
        yield broker
        asyncio.run_coroutine_threadsafe(broker.__aexit__(None, None, None), loop).result(5)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def connect(broker: FakeBroker, settings: ConnectionSettings = QUICK) -> Any:
    return run(BlockingNetwork().connect(broker.address, settings))


def fetched(fill: bytes) -> FetchResponse:
    topic = FetchResponse.FetchableTopicResponse(topic_id=bytes(16))
    topic.partitions = [topic.PartitionData(partition_index=0, records=fill * LARGE)]
    return FetchResponse(responses=[topic])


def records(response: FetchResponse) -> bytes:
    return bytes(response.responses[0].partitions[0].records or b"")


def test_a_coroutine_that_waits_for_a_loop_is_refused() -> None:
    class Never:
        def __await__(self) -> Any:
            yield

    async def waits() -> None:
        await Never()

    with pytest.raises(RuntimeError, match="it cannot run on the blocking client"):
        run(waits())


def test_a_response_is_received_in_one_thread() -> None:
    with serving({MetadataRequest: lambda request, version: MetadataResponse(cluster_id="c")}) as broker:
        connection = connect(broker)
        assert run(connection.send(ASK, MetadataResponse)).cluster_id == "c"
        run(connection.close())


def test_admin_runs_on_it() -> None:
    with (
        serving({MetadataRequest: lambda request, version: MetadataResponse(cluster_id="c")}) as broker,
        BlockingCluster([broker.address]) as cluster,
    ):
        assert run(Admin(cluster).list_topics()) == []
        assert cluster.topology.cluster_id == "c"


def test_large_responses_under_way_together_do_not_overwrite_each_other() -> None:
    fills = iter([b"a", b"b", b"c"])
    with serving({FetchRequest: lambda request, version: fetched(next(fills))}) as broker:
        connection = connect(broker, ConnectionSettings("t"))
        version = connection.version_for(FetchRequest)
        one, two, three = (run(connection.start(FetchRequest(), FetchResponse, version)) for _ in range(3))
        second = run(connection.wait(two))
        assert records(second) == b"b" * LARGE
        assert records(run(connection.wait(one))) == b"a" * LARGE
        assert records(run(connection.wait(three))) == b"c" * LARGE
        assert connection.is_idle
        run(connection.close())


def test_a_response_that_does_not_come_ends_the_connection() -> None:
    with serving({MetadataRequest: lambda request, version: SILENCE}) as broker:
        connection = connect(broker)
        with pytest.raises(RequestTimeout, match="did not answer MetadataRequest within 100 ms"):
            run(connection.send(ASK, MetadataResponse))
        assert not connection.is_open
        with pytest.raises(ConnectionLost, match="no response to MetadataRequest within 100 ms"):
            run(connection.send(ASK, MetadataResponse))


def test_requests_fail_when_the_broker_hangs_up_and_the_next_one_connects_again() -> None:
    answers = iter([None, MetadataResponse(cluster_id="again")])
    with (
        serving({MetadataRequest: lambda request, version: next(answers)}) as broker,
        BlockingCluster([broker.address]) as cluster,
    ):
        with pytest.raises(ConnectionLost, match="the broker closed it"):
            run(cluster.refresh())
        assert run(cluster.refresh()).cluster_id == "again"


def test_a_refused_connection_says_so() -> None:
    address = Address("127.0.0.1", free_ports(1)[0])
    with pytest.raises(ConnectError, match=f"cannot connect to {address}: connection refused"):
        run(BlockingNetwork().connect(address, QUICK))
    with BlockingCluster([address]) as cluster, pytest.raises(BootstrapError, match="connection refused"):
        run(cluster.refresh())
