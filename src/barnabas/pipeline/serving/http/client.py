"""Client of the serving process: applications write parts, clients send queries.

In: its URL, the token for parts. Out: the port `views.parts.Parts` over HTTP; answers as JSON. Calls wait
for a process that is restarting: each can be repeated, because parts say where they begin. Does not know:
the store.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote

import httpx

from barnabas.pipeline.serving.http import wire
from barnabas.pipeline.serving.http.answers import ARROW_MEDIA
from barnabas.pipeline.views.parts import BatchPart, Conflict, Joined, SpeedPart, ViewState

TIMEOUT_S = 300.0
PUT_TIMEOUT_S = 3600.0  # a large part takes long to store
PATIENCE_S = 60.0
PAUSE_S, PAUSE_S_MAX = 0.1, 2.0


class ServingError(Exception):
    """The serving process refused the request or is not reachable; the message says why."""


class ServingClient:
    """`Parts` over HTTP (with the token), and queries (without)."""

    def __init__(
        self, url: str, token: str = "", patience_s: float = PATIENCE_S, certificate: Path | None = None
    ) -> None:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        # The serving process is local, so proxies of the environment do not apply.
        self._http = httpx.Client(
            base_url=url,
            headers=headers,
            timeout=TIMEOUT_S,
            trust_env=False,
            verify=True if certificate is None else pinned(certificate),
        )
        self._patience_s = patience_s

    def __enter__(self) -> ServingClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def state(self, view: str) -> ViewState | None:
        value = self._json("GET", inner(view))["state"]
        return wire.unpack_state(value) if value else None

    def announce(self, view: str, fingerprint: str, horizon: int, joined: Joined | None = None) -> None:
        body = {"fingerprint": fingerprint, "horizon": horizon, "joined": dict(joined or {})}
        self._json("PUT", f"{inner(view)}/announced", json=body)

    def put_batch(self, part: BatchPart) -> ViewState:
        return self._put(f"{inner(part.layout.view)}/batch", wire.pack_batch(part))

    def put_speed(self, part: SpeedPart) -> ViewState:
        return self._put(f"{inner(part.layout.view)}/speed", wire.pack_speed(part))

    def checked(self, view: str, version: int, at: datetime) -> None:
        self._json("PUT", f"{inner(view)}/checked", json={"version": version, "at": at.isoformat()})

    def drop(self, view: str) -> None:
        self._json("DELETE", inner(view))

    def views(self) -> list[dict[str, Any]]:
        """All views, as `GET /views` describes them."""
        found: list[dict[str, Any]] = self._json("GET", "/views")["views"]
        return found

    def query(self, view: str, parameters: Mapping[str, str] | list[tuple[str, str]] | None = None) -> Any:
        """Rows and freshness of a view: {"rows": […], "freshness": {…}, …}."""
        pairs = list(parameters.items()) if isinstance(parameters, Mapping) else list(parameters or [])
        return self._json("GET", f"/views/{quote(view, safe='')}", params=pairs)

    def sql(self, statement: str, as_of: int | str | None = None) -> Any:
        body = {"sql": statement} | ({} if as_of is None else {"as_of": as_of})
        return self._json("POST", "/sql", json=body)

    def query_arrow(self, view: str, parameters: list[tuple[str, str]] | None = None) -> bytes:
        """The same as an Arrow IPC stream."""
        headers = {"accept": ARROW_MEDIA}
        return self._call(
            "GET", f"/views/{quote(view, safe='')}", params=parameters or [], headers=headers
        ).content

    def _put(self, path: str, body: bytes) -> ViewState:
        return wire.unpack_state(self._json("PUT", path, content=body, timeout=PUT_TIMEOUT_S)["state"])

    def _json(self, method: str, path: str, **given: Any) -> Any:
        return self._call(method, path, **given).json()

    def _call(self, method: str, path: str, **given: Any) -> httpx.Response:
        until = time.monotonic() + self._patience_s
        pause_s = PAUSE_S
        while True:
            try:
                response = self._http.request(method, path, **given)
                if response.status_code != 503:
                    return checked_response(response)
                reason = sentence(response)
            except httpx.TransportError as problem:
                reason = f"the serving process at {self._http.base_url} is not reachable: {problem}"
            if time.monotonic() + pause_s > until:
                raise ServingError(reason)
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)


def pinned(certificate: Path) -> ssl.SSLContext:
    """Trusts this certificate and no other, whatever name it is for: the service is on this machine."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(certificate)
    return context


def inner(view: str) -> str:
    return f"/inner/views/{quote(view, safe='')}"


def checked_response(response: httpx.Response) -> httpx.Response:
    if response.status_code == 409:
        raise Conflict(sentence(response))
    if response.status_code >= 400:
        raise ServingError(sentence(response))
    return response


def sentence(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"])
    except (ValueError, KeyError, TypeError):
        return f"the serving process answers {response.status_code}"
