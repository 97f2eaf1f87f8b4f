"""Writes on their way to the primary: the same request over HTTP, marked as forwarded.

In: a request and the primary's identity. Out: the primary's response as it is, errors included, or ApiError
50003. Credentials go along, so the primary checks the caller itself. Does not know: who the primary is.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass

import httpx
from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry.election.identity import Identity
from barnabas.services.errors import ApiError

FORWARDED = "x-forward"  # the header of a request that must not be forwarded again
SENT_ALONG = ("content-type", "accept", "authorization")
SENT_BACK = ("content-type", "www-authenticate", "retry-after")
RESPONSE_BYTES_MAX = 64 << 20
CONNECTIONS_MAX = 100


@dataclass(frozen=True, slots=True)
class ForwardingSettings:
    connect_timeout_ms: float = 60_000
    read_timeout_ms: float = 60_000
    tls: ssl.SSLContext | None = None  # for primaries with https; None: the system's certificates
    headers: tuple[str, ...] = ()  # that go along besides those that HTTP and logins need


def is_forwarded(request: Request) -> bool:
    return FORWARDED in request.headers


class Forwarder:
    def __init__(
        self, settings: ForwardingSettings, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        """`transport` takes the place of sockets, for tests."""
        timeout = httpx.Timeout(settings.read_timeout_ms / 1000, connect=settings.connect_timeout_ms / 1000)
        limits = httpx.Limits(max_connections=CONNECTIONS_MAX)
        self._sent_along = {*SENT_ALONG, *(name.lower() for name in settings.headers)}
        self._client = httpx.AsyncClient(
            verify=settings.tls or True,
            timeout=timeout,
            limits=limits,
            trust_env=False,
            transport=transport,
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def send(self, request: Request, primary: Identity) -> Response:
        path: bytes = request.scope.get("raw_path") or request.url.path.encode()
        query: bytes = request.scope["query_string"]
        target = path + (b"?" + query if query else b"")
        headers = {
            name: request.headers[name] for name in sorted(self._sent_along) if name in request.headers
        }
        outgoing = self._client.build_request(
            request.method,
            httpx.URL(scheme=primary.scheme, host=primary.host, port=primary.port, raw_path=target),
            headers={**headers, FORWARDED: "true"},
            content=await request.body(),
        )
        try:
            response = await self._client.send(outgoing, stream=True)
            try:
                body = await read_bounded(response)
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise ApiError(
                500, 50003, f"Error while forwarding the request to the primary {primary.url}: {why}"
            ) from error
        found = {name: response.headers[name] for name in SENT_BACK if name in response.headers}
        return Response(body, response.status_code, found)


async def read_bounded(response: httpx.Response) -> bytes:
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > RESPONSE_BYTES_MAX:
            raise httpx.ReadError(f"the response has more than {RESPONSE_BYTES_MAX} bytes")
        parts.append(part)
    return b"".join(parts)
