"""The ports of a registry's client on httpx: blocking and asyncio.

In: requests of the core. Out: responses, or Unreachable. Does not know: endpoints, retries. httpx is imported
when a client is made, so that importing this costs little.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from typing import TYPE_CHECKING, Any

from barnabas.schemas.client.calling import Request, Response, Unreachable
from barnabas.schemas.client.settings import ClientSettings

if TYPE_CHECKING:
    import httpx


def tls_of(settings: ClientSettings) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=settings.ca_location)
    if settings.certificate_location is not None:
        context.load_cert_chain(settings.certificate_location, settings.key_location, settings.key_password)
    return context


def options_of(settings: ClientSettings) -> dict[str, Any]:
    # Redirects are not followed: a redirect would carry credentials to another host.
    options: dict[str, Any] = {"timeout": settings.timeout_s, "follow_redirects": False}
    if any(url.startswith("https:") for url in settings.urls):
        options["verify"] = tls_of(settings)
    return options


class BlockingPort:
    def __init__(self, settings: ClientSettings, http: httpx.Client | None = None) -> None:
        import httpx

        self._http = http or httpx.Client(**options_of(settings))
        self._is_ours = http is None
        self._errors = (httpx.TransportError, httpx.DecodingError)

    async def send(self, request: Request) -> Response:
        try:
            response = self._http.request(
                request.method, request.url, headers=dict(request.headers), content=request.body
            )
        except self._errors as error:
            raise Unreachable(str(error) or type(error).__name__) from error
        return Response(response.status_code, response.content)

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        if self._is_ours:
            self._http.close()


class AsyncioPort:
    def __init__(self, settings: ClientSettings, http: httpx.AsyncClient | None = None) -> None:
        import httpx

        self._http = http or httpx.AsyncClient(**options_of(settings))
        self._is_ours = http is None
        self._errors = (httpx.TransportError, httpx.DecodingError)
        self._reading: dict[str, asyncio.Task[Response]] = {}  # requests that are on their way, by URL

    async def send(self, request: Request) -> Response:
        """Callers that read the same URL at the same time share one request."""
        if request.method != "GET":
            return await self._sent(request)
        task = self._reading.get(request.url)
        if task is None:
            task = self._reading[request.url] = asyncio.ensure_future(self._sent(request))
            task.add_done_callback(lambda done: self._landed(request.url, done))
        return await asyncio.shield(task)  # a caller that gives up does not end it for others

    def _landed(self, url: str, done: asyncio.Task[Response]) -> None:
        self._reading.pop(url, None)
        if not done.cancelled():
            done.exception()  # counts as seen, even if every caller has given up

    async def _sent(self, request: Request) -> Response:
        try:
            response = await self._http.request(
                request.method, request.url, headers=dict(request.headers), content=request.body
            )
        except self._errors as error:
            raise Unreachable(str(error) or type(error).__name__) from error
        return Response(response.status_code, response.content)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def now(self) -> float:
        return time.monotonic()

    async def close(self) -> None:
        if self._is_ours:
            await self._http.aclose()
