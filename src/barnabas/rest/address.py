"""The address under which callers know the proxy, for URLs in responses."""

from __future__ import annotations

import re

from starlette.requests import HTTPConnection

HOST = re.compile(r"[A-Za-z0-9._\-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")
HOST_LENGTH_MAX = 300


def base_of(advertised_url: str, request: HTTPConnection) -> str:
    """The advertised address, or that of the request."""
    if advertised_url:
        return advertised_url.rstrip("/")
    host = request.headers.get("host", "")
    if len(host) > HOST_LENGTH_MAX or HOST.fullmatch(host) is None:
        name, port = request.scope.get("server") or ("localhost", None)
        host = name if port is None else f"{name}:{port}"
    return f"{request.url.scheme}://{host}"
