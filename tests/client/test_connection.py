"""One connection: versions, order, time, and every way in which it ends."""

import asyncio
import struct

import pytest

from barnabas.client.asyncio_network import Connection, connect
from barnabas.client.core.address import Address
from barnabas.client.core.errors import ConnectError, ConnectionLost, RequestTimeout, UnsupportedApi
from barnabas.client.core.network import ConnectionSettings
from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.testing.ports import free_ports

from .fake_broker import SILENCE, FakeBroker


def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
    return MetadataResponse(cluster_id="c")


def test_the_newest_common_version_is_used() -> None:
    async def main() -> None:
        async with FakeBroker({MetadataRequest: metadata}, versions={3: (4, 9)}) as broker:
            connection = await connect(broker.address)
            await connection.send(MetadataRequest(topics=None), MetadataResponse)
            await connection.close()
            assert broker.seen[-1][1] == 9

    asyncio.run(main())


def test_an_old_broker_is_asked_for_its_versions_again_in_one_that_it_knows() -> None:
    def old(request: ApiVersionsRequest, version: int) -> ApiVersionsResponse | bytes:
        nested = ApiVersionsResponse.ApiVersion
        keys = [
            nested(api_key=18, min_version=0, max_version=1),
            nested(api_key=3, min_version=0, max_version=5),
        ]
        if version > 1:
            refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=keys)
            return refusal.encode(0)
        return ApiVersionsResponse(api_keys=keys)

    async def main() -> None:
        async with FakeBroker({ApiVersionsRequest: old}) as broker:
            connection = await connect(broker.address)
            await connection.close()
            assert connection.versions == {18: (0, 1), 3: (0, 5)}
            assert [version for _, version in broker.seen] == [4, 1]

    asyncio.run(main())


def test_answers_find_their_requests_whatever_their_order() -> None:
    """Correlation ids decide, although brokers answer in order."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = []
        for _ in range(2):
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            frames.append(await reader.readexactly(length))
        for index in (1, 0):
            (correlation_id,) = struct.unpack_from(">i", frames[index], 4)
            body = MetadataResponse(cluster_id=f"answer {index}").encode(4)
            writer.write(struct.pack(">ii", 4 + len(body), correlation_id) + body)
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(Address(host, port), ConnectionSettings("t")), host, port
        )
        answers = await asyncio.gather(
            *(connection.send(MetadataRequest(topics=None), MetadataResponse, version=4) for _ in range(2))
        )
        await connection.close()
        server.close()
        await server.wait_closed()
        assert [answer.cluster_id for answer in answers] == ["answer 0", "answer 1"]

    asyncio.run(main())


def test_a_refused_connection_says_so() -> None:
    address = Address("127.0.0.1", free_ports(1)[0])
    with pytest.raises(ConnectError, match=f"cannot connect to {address}: connection refused"):
        asyncio.run(connect(address))


def test_an_unknown_host_says_so() -> None:
    with pytest.raises(
        ConnectError, match=r"cannot connect to nowhere\.invalid:9092: the host name is not known"
    ):
        asyncio.run(connect(Address("nowhere.invalid", 9092)))


def test_a_server_that_is_no_broker_is_told_apart() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        try:
            await connect(Address(*server.sockets[0].getsockname()))
        finally:
            server.close()
            await server.wait_closed()

    with pytest.raises(ConnectError, match="nothing there speaks Kafka's protocol"):
        asyncio.run(main())


def test_an_answer_that_does_not_come_times_out_and_the_connection_lives() -> None:
    def silent(request: MetadataRequest, version: int) -> object:
        return SILENCE if request.topics is None else metadata(request, version)

    async def main() -> None:
        async with FakeBroker({MetadataRequest: silent}) as broker:
            connection = await connect(broker.address)
            with pytest.raises(RequestTimeout, match="did not answer MetadataRequest within 20 ms"):
                await connection.send(MetadataRequest(topics=None), MetadataResponse, timeout_ms=20)
            assert (await connection.send(MetadataRequest(topics=[]), MetadataResponse)).cluster_id == "c"
            await connection.close()

    asyncio.run(main())


def test_requests_fail_when_the_broker_hangs_up() -> None:
    async def main() -> None:
        async with FakeBroker({MetadataRequest: lambda request, version: None}) as broker:
            connection = await connect(broker.address)
            with pytest.raises(ConnectionLost, match="the broker closed it"):
                await connection.send(MetadataRequest(topics=None), MetadataResponse)
            assert not connection.is_open
            with pytest.raises(ConnectionLost):
                await connection.send(MetadataRequest(topics=None), MetadataResponse)
            await connection.close()

    asyncio.run(main())


def test_an_answer_that_cannot_be_read_raises_where_it_was_awaited() -> None:
    async def main() -> None:
        async with FakeBroker({MetadataRequest: lambda request, version: b"\xff"}) as broker:
            connection = await connect(broker.address)
            try:
                await connection.send(MetadataRequest(topics=None), MetadataResponse)
            finally:
                await connection.close()

    with pytest.raises(ProtocolError):
        asyncio.run(main())


def test_an_api_that_the_broker_does_not_offer_is_not_sent() -> None:
    async def main() -> None:
        async with FakeBroker({}) as broker:
            connection = await connect(broker.address)
            try:
                await connection.send(MetadataRequest(topics=None), MetadataResponse)
            finally:
                await connection.close()

    with pytest.raises(UnsupportedApi, match="does not support Metadata: the broker does not offer this API"):
        asyncio.run(main())


def test_a_field_that_the_version_lacks_is_refused_before_it_is_sent() -> None:
    async def main() -> None:
        async with FakeBroker({MetadataRequest: metadata}, versions={3: (0, 0)}) as broker:
            connection = await connect(broker.address)
            try:
                await connection.send(
                    MetadataRequest(topics=[], include_topic_authorized_operations=True), MetadataResponse
                )
            finally:
                await connection.close()

    with pytest.raises(KafkaError) as caught:
        asyncio.run(main())
    assert caught.value.code == ErrorCode.UNSUPPORTED_VERSION
