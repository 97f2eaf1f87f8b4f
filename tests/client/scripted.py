"""Brokers without sockets: a Network for the core whose time is virtual and whose brokers are functions.

`ScriptedNetwork({1: {MetadataRequest: answer}})` has one broker, `answer(request, version)` is called for its
requests. A returned message is its response; None closes the connection, SILENCE lets the request time out,
HANGS_UP closes the connection as well, which is noticed only when somebody waits for a response.
`UNREACHABLE` in place of the functions refuses connections. Nothing ever waits: `now` moves instead.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from barnabas.client.blocking import run
from barnabas.client.core.address import Address
from barnabas.client.core.cluster import ClusterCore
from barnabas.client.core.connection import ConnectionCore, Exchange
from barnabas.client.core.errors import ConnectError, ConnectionLost, RequestTimeout
from barnabas.client.core.handshake import shake_hands
from barnabas.client.core.network import ConnectionSettings
from barnabas.protocol import Message
from barnabas.protocol.apis import request_class, request_header_version
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataResponse

from .fake_broker import SILENCE, framed

R = TypeVar("R", bound=Message)
T = TypeVar("T")
Answers = Mapping[type[Message], Callable[[Any, int], Any]]
UNREACHABLE: Answers = {}
HANGS_UP: Any = object()


class ScriptedNetwork:
    def __init__(self, brokers: Mapping[int, Answers]) -> None:
        self.brokers = dict(brokers)  # by port
        self.clock = 1000.0
        self.pauses: list[float] = []
        self.seen: list[tuple[int, Message, int]] = []  # port, request, version
        self.connected: list[int] = []

    def requests(self, kind: type[R]) -> list[tuple[int, R]]:
        return [(port, request) for port, request, _ in self.seen if isinstance(request, kind)]

    def now(self) -> float:
        return self.clock

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock += seconds

    def uniform(self, low: float, high: float) -> float:
        return (low + high) / 2

    async def gather(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        return [await each for each in coroutines]

    async def connect(self, address: Address, settings: ConnectionSettings) -> ScriptedConnection:
        self.connected.append(address.port)
        if self.brokers.get(address.port, UNREACHABLE) is UNREACHABLE:
            raise ConnectError(address, "connection refused")
        connection = ScriptedConnection(self, address, settings)
        await shake_hands(connection)
        return connection


class ScriptedConnection(ConnectionCore):
    def __init__(self, network: ScriptedNetwork, address: Address, settings: ConnectionSettings) -> None:
        super().__init__(address, settings, 1 << 20)
        self._network = network
        self._arrived = bytearray()
        self._hangs_up = False

    def now(self) -> float:
        return self._network.now()

    def uniform(self, low: float, high: float) -> float:
        return self._network.uniform(low, high)

    async def _transmit(self, pieces: list[bytes], name: str) -> None:
        frame = b"".join(pieces)[4:]
        key, version, correlation_id = struct.unpack_from(">hhi", frame)
        header_version = request_header_version(key, version)
        header = RequestHeader.decode(frame, header_version)
        request = request_class(key).decode(frame[len(header.encode(header_version)) :], version)
        port = self.address.port
        self._network.seen.append((port, request, version))
        answers = {ApiVersionsRequest: offers(self._network.brokers[port]), **self._network.brokers[port]}
        answer = answers[type(request)](request, version)
        if answer is None:
            self.fail(ConnectionLost(self.address, "the broker closed it"))
        elif answer is HANGS_UP:
            self._hangs_up = True
        elif answer is not SILENCE:
            self.receive(framed(answer, key, version, correlation_id))

    def receive(self, data: bytes) -> None:
        """Bytes arrive."""
        self._arrived += data

    async def wait(self, exchange: Exchange[R], timeout_ms: float | None = None) -> R:
        while not exchange.is_done and (self.complete(exchange) or self._take()):
            pass
        if not exchange.is_done:
            limit_ms = self.settings.request_timeout_ms if timeout_ms is None else timeout_ms
            self._network.clock += limit_ms / 1000
            self.forget(exchange)
            raise RequestTimeout(self.address, exchange.name, limit_ms)
        return exchange.result()

    def _take(self) -> bool:
        """Move what arrived into the receive memory, as much as there is room for."""
        if not self._arrived and self._hangs_up:
            self.fail(ConnectionLost(self.address, "the broker closed it"))
        if not self._arrived or not self.is_open:
            return False
        room = self.frames.room()
        count = min(len(room), len(self._arrived))
        room[:count] = self._arrived[:count]
        self.frames.received(count)
        del self._arrived[:count]
        return True

    async def close(self) -> None:
        self.fail(ConnectionLost(self.address, "it was closed here"))


def offers(answers: Answers) -> Callable[[Any, int], ApiVersionsResponse]:
    def answer(request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            api_keys=[
                ApiVersionsResponse.ApiVersion(
                    api_key=kind.schema.key,
                    min_version=kind.schema.versions.first,
                    max_version=kind.schema.versions.last,
                )
                for kind in answers
            ]
        )

    return answer


def cluster_of(network: ScriptedNetwork, *ports: int, **options: Any) -> ClusterCore:
    return ClusterCore([Address("broker", port) for port in ports or (1,)], network, **options)


def metadata(leaders: Callable[[], Mapping[str, list[int]]], brokers: Iterable[int]) -> Callable[..., Any]:
    """Answers Metadata: the leaders of each topic's partitions by name, -1 for none. Broker ids are ports."""

    def answer(request: MetadataRequest, version: int) -> MetadataResponse:
        known = leaders()
        names = known if request.topics is None else [each.name or "" for each in request.topics]
        nested = MetadataResponse.MetadataResponseTopic
        return MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(node_id=port, host="broker", port=port)
                for port in brokers
            ],
            topics=[
                nested(
                    name=name,
                    topic_id=name.encode().ljust(16, b"\1"),
                    error_code=0 if name in known else 3,
                    partitions=[
                        nested.MetadataResponsePartition(
                            partition_index=index,
                            leader_id=leader,
                            error_code=5 if leader < 0 else 0,
                            replica_nodes=[],
                            isr_nodes=[],
                        )
                        for index, leader in enumerate(known.get(name, ()))
                    ],
                )
                for name in names
            ],
        )

    return answer


__all__ = ["HANGS_UP", "SILENCE", "UNREACHABLE", "ScriptedNetwork", "cluster_of", "metadata", "run"]
