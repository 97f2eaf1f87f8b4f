"""Requests to one of several registries: failover, retries, errors.

In: method, path, query and body. Out: the response's JSON, or RegistryError. Does not know: endpoints,
sockets; a port sends and waits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlencode

from barnabas.schemas.client.errors import RegistryError
from barnabas.schemas.client.settings import ClientSettings

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
RETRIABLE = frozenset({408, 429, 500, 502, 503, 504})
MESSAGE_MAX = 2_000  # characters of a response that is no JSON


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes


class Unreachable(Exception):
    """No response: the connection failed or took too long."""


class Port(Protocol):
    """Input and output of a client. On the blocking face every call returns when it is done."""

    async def send(self, request: Request) -> Response: ...

    async def pause(self, seconds: float) -> None: ...

    def now(self) -> float: ...


class Caller:
    """Sends requests to the registry that responded last, and to the next one when it does not."""

    def __init__(self, settings: ClientSettings, port: Port) -> None:
        self._settings = settings
        self._port = port
        self._current = 0  # index of the URL that responded last

    async def call(
        self, method: str, path: str, query: Mapping[str, Any] | None = None, body: object = None
    ) -> Any:
        settings = self._settings
        tail = path + _query(query or {})
        content = None if body is None else json.dumps(body).encode()
        pause = settings.retry_wait_s
        failed = RegistryError(0, 0, "no request was sent")
        for attempt in range(settings.retries_max + 1):
            if attempt:
                await self._port.pause(pause)
                pause = min(pause * 2, settings.retry_wait_s_max)
            for _ in settings.urls:
                response = await self._try(method, tail, content)
                if isinstance(response, Response):
                    return _value_of(response)
                failed = response
                self._current = (self._current + 1) % len(settings.urls)
        raise failed

    async def _try(self, method: str, tail: str, content: bytes | None) -> Response | RegistryError:
        """The response, or the error with which the next registry may be tried."""
        url = self._settings.urls[self._current]
        headers = {"Accept": f"{CONTENT_TYPE}, application/json", **self._settings.headers()}
        if content is not None:
            headers["Content-Type"] = CONTENT_TYPE
        try:
            response = await self._port.send(Request(method, url + tail, headers, content))
        except Unreachable as error:
            return RegistryError(0, 0, f"the registry {url} could not be reached: {error}")
        return error_of(response) if response.status in RETRIABLE else response


def _query(query: Mapping[str, Any]) -> str:
    """Parameters that are None or False are left out, as the API's defaults are."""
    pairs: list[tuple[str, str]] = []
    for name, value in query.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is not None and one is not False:
                pairs.append((name, "true" if one is True else str(one)))
    return f"?{urlencode(pairs)}" if pairs else ""


def _value_of(response: Response) -> Any:
    if response.status >= 300:
        raise error_of(response)
    if not response.body:
        return None
    try:
        return json.loads(response.body)
    except ValueError:
        raise RegistryError(response.status, 0, f"the response is no JSON: {_shown(response.body)}") from None


def error_of(response: Response) -> RegistryError:
    try:
        body = json.loads(response.body)
        return RegistryError(response.status, int(body["error_code"]), str(body["message"]))
    except (ValueError, KeyError, TypeError):
        text = _shown(response.body) or "no message"
        return RegistryError(response.status, response.status, text)


def _shown(body: bytes) -> str:
    return body.decode(errors="replace")[:MESSAGE_MAX]
