"""Envelope: a broker forwards a client's request, with the client's identity (KIP-590).

Version 0. The request inside is served as if the client had sent it to this listener. Only forwardable APIs
are accepted. A controller that is not the active one responds NOT_CONTROLLER, and the broker retries.
"""

from __future__ import annotations

import inspect
import socket
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.api.context import RequestContext
from barnabas.broker.api.large_requests import bounded
from barnabas.broker.api.needs import cluster_action
from barnabas.broker.api.routes import handles
from barnabas.controller.refusals import is_not_controller
from barnabas.protocol import ErrorCode, Message, ProtocolError, apis
from barnabas.protocol.codec import codec
from barnabas.protocol.headers import RequestHeader, ResponseHeader
from barnabas.protocol.messages.default_principal_data import DefaultPrincipalData
from barnabas.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.security.principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    from barnabas.broker.wire.channel import Channel
    from barnabas.broker.wire.server import Listener


class ForwardedChannel:
    """The channel of a forwarded request. The broker that forwarded it applies the client's quota."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener

    def mute(self, wait_ms: int) -> None:
        """Do nothing: the response carries the throttle time."""


@handles(EnvelopeRequest, "0", needs=cluster_action, listeners="controller")
async def envelope(request: EnvelopeRequest, context: RequestContext) -> EnvelopeResponse:
    controller = context.broker.own_controller
    if controller is None or not controller.is_active:
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    try:
        inner, asked, key, version = await unpack(request, context)
    except ProtocolError:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    route = context.channel.listener.router.find(key, version)
    if route is None or not apis.APIS[key].forwardable:
        return EnvelopeResponse(error_code=ErrorCode.INVALID_REQUEST)
    response: Any = route.handler(asked, inner)
    if inspect.isawaitable(response):
        response = await response
    if is_not_controller(response):  # it lost leadership while it handled the request
        return EnvelopeResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if response is None:
        return EnvelopeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(response, Message)
    header = ResponseHeader(correlation_id=inner.correlation_id)
    data = header.encode(apis.response_header_version(key, version)) + response.encode(version)
    return EnvelopeResponse(response_data=data)


async def unpack(
    request: EnvelopeRequest, context: RequestContext
) -> tuple[RequestContext, Message, int, int]:
    """Decode an envelope. Out: the client's context, its request, and the request's key and version."""
    data = memoryview(bytes(request.request_data))
    if len(data) < 8:
        raise ProtocolError("envelope", "it holds no request")
    key, version = int.from_bytes(data[:2], "big"), int.from_bytes(data[2:4], "big")
    if key not in apis.APIS or version not in apis.APIS[key].versions:
        raise ProtocolError("envelope", f"api key {key} version {version} is not known")
    header, position = codec(RequestHeader, apis.request_header_version(key, version)).decode(data, 0)
    decoding = codec(apis.request_class(key), version).decode_in_steps(data, position)
    asked, _ = await context.broker.pieces.run(bounded(decoding, apis.request_class(key).__name__, version))
    channel = cast("Channel", ForwardedChannel(context.channel.listener))
    inner = RequestContext(context.broker, channel, context.listener)
    inner.principal = principal_of(bytes(request.request_principal or b""))
    inner.host = host(bytes(request.client_host_address)) or context.host
    inner.client_id = header.client_id
    inner.correlation_id = header.correlation_id
    inner.version = version
    return inner, asked, key, version


def principal_of(data: bytes) -> Principal:
    """The principal that the forwarding broker wrote: two bytes of version, then DefaultPrincipalData."""
    if len(data) < 2:
        return ANONYMOUS
    found = DefaultPrincipalData.decode(data[2:], int.from_bytes(data[:2], "big"))
    return Principal(found.name, found.type, found.token_authenticated)


def host(address: bytes) -> str:
    family = {4: socket.AF_INET, 16: socket.AF_INET6}.get(len(address))
    return socket.inet_ntop(family, address) if family is not None else ""
