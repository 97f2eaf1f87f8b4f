"""The core of a connection, without sockets: who gets which response, and what happens when none comes."""

from __future__ import annotations

import pytest

from barnabas.client.core.address import Address
from barnabas.client.core.connection import ConnectionCore
from barnabas.client.core.errors import ConnectError, ConnectionLost, RequestTimeout, UnsupportedApi
from barnabas.client.core.network import ConnectionSettings
from barnabas.protocol import ErrorCode, KafkaError, ProtocolError
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse

from .fake_broker import framed
from .scripted import SILENCE, Answers, ScriptedNetwork, run


def connected(answers: Answers) -> tuple[ScriptedNetwork, ConnectionCore]:
    network = ScriptedNetwork({1: answers})
    return network, run(network.connect(Address("broker", 1), ConnectionSettings("t")))


def named(name: str) -> MetadataResponse:
    return MetadataResponse(cluster_id=name)


ASK = MetadataRequest(topics=[])


def test_responses_find_their_requests_in_any_order() -> None:
    _, connection = connected({MetadataRequest: lambda request, version: SILENCE})
    version = connection.version_for(MetadataRequest)
    one = run(connection.start(ASK, MetadataResponse, version))
    two = run(connection.start(ASK, MetadataResponse, version))
    for exchange, name in ((two, "two"), (one, "one")):
        connection.receive(framed(named(name), 3, version, exchange.correlation_id))  # type: ignore[attr-defined]
    assert run(connection.wait(one)).cluster_id == "one"
    assert run(connection.wait(two)).cluster_id == "two"
    assert connection.is_idle


def test_a_late_response_is_not_taken_for_the_next_one() -> None:
    answers = iter([SILENCE, named("second")])
    _, connection = connected({MetadataRequest: lambda request, version: next(answers)})
    with pytest.raises(RequestTimeout, match="did not answer MetadataRequest within 20 ms"):
        run(connection.send(ASK, MetadataResponse, timeout_ms=20))
    version = connection.version_for(MetadataRequest)
    connection.receive(framed(named("first"), 3, version, 1))  # type: ignore[attr-defined]
    assert run(connection.send(ASK, MetadataResponse)).cluster_id == "second"


def test_all_requests_under_way_fail_when_the_connection_is_lost() -> None:
    answers = iter([SILENCE, SILENCE, None])
    _, connection = connected({MetadataRequest: lambda request, version: next(answers)})
    version = connection.version_for(MetadataRequest)
    exchanges = [run(connection.start(ASK, MetadataResponse, version)) for _ in range(3)]
    for exchange in exchanges:
        with pytest.raises(ConnectionLost, match="the broker closed it"):
            run(connection.wait(exchange))
    assert not connection.is_open and connection.is_idle
    with pytest.raises(ConnectionLost):
        run(connection.start(ASK, MetadataResponse, version))


def test_bytes_that_are_no_frame_lose_the_connection() -> None:
    _, connection = connected({MetadataRequest: lambda request, version: SILENCE})
    exchange = run(connection.start(ASK, MetadataResponse, 9))
    connection.receive(b"HTTP/1.1 400")  # type: ignore[attr-defined]
    with pytest.raises(ConnectionLost, match="it sent nonsense: a frame of 1213486160 bytes"):
        run(connection.wait(exchange))


def test_a_response_that_cannot_be_read_costs_its_request_only() -> None:
    answers = iter([b"\xff", named("fine")])
    _, connection = connected({MetadataRequest: lambda request, version: next(answers)})
    with pytest.raises(ProtocolError):
        run(connection.send(ASK, MetadataResponse))
    assert run(connection.send(ASK, MetadataResponse)).cluster_id == "fine"


def test_an_api_that_the_broker_does_not_have_is_not_sent() -> None:
    network, connection = connected({ApiVersionsRequest: lambda request, version: ApiVersionsResponse()})
    with pytest.raises(UnsupportedApi, match="does not support Metadata: the broker does not offer this API"):
        run(connection.send(ASK, MetadataResponse))
    assert len(network.seen) == 1


def test_versions_that_have_nothing_in_common_are_named() -> None:
    offer = ApiVersionsResponse.ApiVersion(api_key=3, min_version=90, max_version=99)
    _, connection = connected(
        {ApiVersionsRequest: lambda request, version: ApiVersionsResponse(api_keys=[offer])}
    )
    with pytest.raises(UnsupportedApi, match="it offers versions 90-99, we know"):
        run(connection.send(ASK, MetadataResponse))


def test_the_handshake_asks_an_old_broker_again_in_a_version_that_it_knows() -> None:
    own = ApiVersionsResponse.ApiVersion(api_key=18, min_version=0, max_version=1)

    def old(request: ApiVersionsRequest, version: int) -> ApiVersionsResponse | bytes:
        if version <= 1:
            return ApiVersionsResponse(api_keys=[own])
        return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own]).encode(0)

    network, connection = connected({ApiVersionsRequest: old})
    assert [version for _, _, version in network.seen] == [4, 1]
    assert connection.versions == {18: (0, 1)}


@pytest.mark.parametrize("answer", [None, SILENCE], ids=["closed", "silent"])
def test_a_handshake_that_gets_no_response_is_a_connection_that_was_not_made(answer: object) -> None:
    with pytest.raises(ConnectError, match="nothing there speaks Kafka's protocol"):
        connected({ApiVersionsRequest: lambda request, version: answer})


def test_a_handshake_that_is_refused_says_why() -> None:
    refusal = ApiVersionsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError, match="the broker does not tell its API versions"):
        connected({ApiVersionsRequest: lambda request, version: refusal})
