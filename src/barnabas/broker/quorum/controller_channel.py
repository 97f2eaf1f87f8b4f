"""Requests to the active controller: a call if it is on this node, else a request over the network.

In: requests of this broker (`send`) or of its clients (`handle`, which puts them into an Envelope, as Kafka
does). Out: the controller's responses. The quorum knows which node leads. NOT_CONTROLLER and broken
connections are retried until the timeout.
Does not know: what the requests mean.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Any

from barnabas.client.core.frames import decode_response
from barnabas.controller.context import unlimited
from barnabas.controller.refusals import is_not_controller, refusal
from barnabas.metrics import Histogram
from barnabas.protocol import ErrorCode, KafkaError, Message, apis
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.default_principal_data import DefaultPrincipalData
from barnabas.protocol.messages.envelope import EnvelopeRequest
from barnabas.quorum import lanes
from barnabas.quorum.peers import PeerUnreachable
from barnabas.security.principal import ANONYMOUS, Principal
from barnabas.settings.quorum import Address

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.quorum.channel_traffic import ChannelTraffic
    from barnabas.broker.quorum.peers import Connections
    from barnabas.quorum.controller import Controller
    from barnabas.quorum.quorum import Quorum
    from barnabas.raft.leader_hint import LeaderHint

AskRemote = Callable[[Address, float], Coroutine[Any, Any, Any]]
AskOwn = Callable[["Controller"], Awaitable[Any]]
RETRY_MS = 50
NS_A_SECOND = 1_000_000_000
REQUEST_TIMEOUT_MS = 30_000  # as `request.timeout.ms`: clients stop waiting then
PRINCIPAL_VERSION = 0


class Forwarding:
    """Requests on their way to the controller of another node; times, of those of clients, in nanoseconds."""

    __slots__ = ("queued", "remote", "waiting")

    def __init__(self) -> None:
        self.waiting = 0  # requests of this node and of its clients for which no controller is known
        self.queued = Histogram()  # until the request was sent
        self.remote = Histogram()  # until its response came


class ControllerChannel:
    def __init__(
        self,
        quorum: Quorum,
        connections: Connections,
        controller: Controller | None,
        request_timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        self._quorum = quorum
        self._connections = connections
        self._controller = controller  # this node's own, active or not
        self._timeout_ms = request_timeout_ms
        self.forwarding = Forwarding()
        self._waiting: dict[asyncio.Future[None], None] = {}  # resolved when the leader changes
        # Waits until this broker has applied what its own controller decided, as clients expect.
        self.when_applied: Callable[[], Awaitable[None]] | None = None
        quorum.on_leader_change.append(self._leader_changed)

    def _leader_changed(self, leader: LeaderHint) -> None:
        for future in list(self._waiting):
            if not future.done():
                future.set_result(None)

    @property
    def leader_id(self) -> int:
        """The active controller's node id; -1 while none is known."""
        return self._quorum.leader_hint.leader_id

    def traffic(self, lane: str) -> ChannelTraffic:
        """The traffic of all connections of a lane to nodes with a controller."""
        return self._connections.traffic(lane)

    @property
    def kraft_version(self) -> int:
        return self._quorum.kraft_version

    async def send(self, request: Message, *, timeout_ms: float | None = None) -> Any:
        """Send a request of this node to the active controller. After the timeout the response has the error
        REQUEST_TIMED_OUT."""
        lane = lanes.to_controller(request)
        return await self._retry(
            request,
            lambda controller: controller.handle(request),
            lambda address, left_ms: self._connections.send_request(address, request, left_ms, lane),
            timeout_ms,
        )

    async def handle(
        self,
        request: Message,
        version: int | None = None,
        charge_mutations: Callable[[int], None] = unlimited,
        context: RequestContext | None = None,
    ) -> Any:
        """Send a client's request to the active controller, in the version that the client used. If the
        controller changes meanwhile, the next one gets the request."""

        began_s = asyncio.get_running_loop().time()

        async def forward(address: Address, left_ms: float) -> Any:
            if context is None:  # the broker asks for itself
                return await self._connections.send_request(
                    address, request, left_ms, lanes.to_controller(request)
                )
            return await self._measured(self._forward(address, request, context, left_ms), began_s)

        async def ask_own(controller: Controller) -> Any:
            principal = ANONYMOUS if context is None else context.principal
            response = await controller.handle(request, version, charge_mutations, principal)
            if self.when_applied is not None:
                await self.when_applied()
            return response

        return await self._retry(request, ask_own, forward, None)

    async def _retry(
        self, request: Message, ask_own: AskOwn, ask_remote: AskRemote, timeout_ms: float | None
    ) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (self._timeout_ms if timeout_ms is None else timeout_ms) / 1000
        while True:
            response = await self._try(ask_own, ask_remote, max(deadline - loop.time(), 0.001) * 1000)
            if response is not None:
                return response
            if loop.time() + RETRY_MS / 1000 >= deadline:
                error = KafkaError(ErrorCode.REQUEST_TIMED_OUT, "the active controller could not be reached")
                return refusal(request, error)
            self.forwarding.waiting += 1
            try:
                await asyncio.sleep(RETRY_MS / 1000)
            finally:
                self.forwarding.waiting -= 1

    async def _try(self, ask_own: AskOwn, ask_remote: AskRemote, left_ms: float) -> Any:
        """Return the response, or None if a retry may help."""
        controller = self._controller
        if controller is not None and controller.is_active:
            response = await ask_own(controller)
        else:
            leading = self._quorum.leader_hint
            if leading.leader_id < 0 or not leading.host:
                return None
            try:
                response = await self._while_leading(ask_remote(Address(leading.host, leading.port), left_ms))
            except PeerUnreachable:
                return None
        return None if is_not_controller(response) else response

    async def _while_leading(self, asking: Coroutine[Any, Any, Any]) -> Any:
        """Wait for the response while the node leads. A node that was paused may respond late or never."""
        task = asyncio.ensure_future(asking)
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[over] = None
        try:
            await asyncio.wait([task, over], return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise PeerUnreachable("another controller is active now")
        finally:
            task.cancel()
            self._waiting.pop(over, None)

    async def _measured(self, response: Coroutine[Any, Any, Message], began_s: float) -> Message:
        now_s, forwarding = asyncio.get_running_loop().time, self.forwarding
        sent_s = now_s()
        found = await response
        forwarding.queued.observe(int((sent_s - began_s) * NS_A_SECOND))
        forwarding.remote.observe(int((now_s() - sent_s) * NS_A_SECOND))
        return found

    async def _forward(
        self, address: Address, request: Message, context: RequestContext, left_ms: float
    ) -> Message:
        key, version = request.schema.key, context.version
        assert key is not None
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=context.correlation_id,
            client_id=context.client_id,
        )
        data = header.encode(apis.request_header_version(key, version)) + request.encode(version)
        envelope = EnvelopeRequest(
            request_data=data,
            request_principal=encode_principal(context.principal),
            client_host_address=packed(context.host),
        )
        response = await self._connections.send_request(address, envelope, left_ms, lane=lanes.FORWARDED)
        if response.error_code == ErrorCode.NOT_CONTROLLER:
            raise PeerUnreachable("the node is not the active controller any more")
        if response.error_code != ErrorCode.NONE:
            return refusal(request, KafkaError(ErrorCode(response.error_code)), version)
        return decode_response(response.response_data or b"", apis.response_class(key), key, version)


def encode_principal(principal: Principal) -> bytes:
    """Encode a principal in Kafka's default form: the version, then the fields."""
    data = DefaultPrincipalData(
        type=principal.type, name=principal.name, token_authenticated=principal.is_token
    )
    return PRINCIPAL_VERSION.to_bytes(2, "big") + data.encode(PRINCIPAL_VERSION)


def packed(host: str) -> bytes:
    """An address as bytes; the loopback address for clients without one (Unix sockets)."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.inet_pton(family, host.partition("%")[0])
    except OSError:
        return bytes((127, 0, 0, 1))
