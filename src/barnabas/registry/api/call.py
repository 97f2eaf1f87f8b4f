"""One request to the registry: its names, flags and body in the registry's terms.

In: a Starlette request. Out: qualified subjects, numbers, pages, JSON bodies; ApiError for what is malformed.
`bind` makes an endpoint of a function that takes a `Call` and returns a JSON value or a response.
Does not know: what endpoints do.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry.api.media_types import REQUEST_TYPES
from barnabas.registry.api.registry import RegistryApi
from barnabas.registry.state import refusals
from barnabas.registry.state.lookups import Page, version_number
from barnabas.registry.state.names import (
    ALL_CONTEXTS,
    DEFAULT_CONTEXT,
    context_name,
    is_qualified,
    qualified,
)
from barnabas.services.errors import ApiError
from barnabas.services.json_bodies import read_object
from barnabas.services.negotiation import accepted, content_type

NUMBER_LENGTH_MAX = 11


class Call:
    __slots__ = ("api", "media_type", "request")

    def __init__(self, api: RegistryApi, request: Request, media_type: str) -> None:
        self.api = api
        self.request = request
        self.media_type = media_type

    @property
    def context(self) -> str:
        """The context of the path, `/contexts/.ctx/...`."""
        given = self.request.path_params.get("context")
        return DEFAULT_CONTEXT if given is None else context_name(given)

    def subject(self) -> str:
        """The subject of the path, qualified; behind an alias, the one that it stands for."""
        return self.api.state.alias_of(self.scope() or "")

    def scope(self) -> str | None:
        """The subject or context that a setting belongs to. None is the default context."""
        given = self.request.path_params.get("subject", "")
        return qualified(given, self.context) or None

    def version(self) -> int:
        return version_number(self.request.path_params["version"])

    def schema_id(self) -> int:
        text = self.request.path_params["id"]
        number = whole_number(text)
        if number is None:
            raise ApiError(404, 404, f"HTTP 404 Not Found: {text[:100]!r} is no id of a schema")
        return number

    def text(self, name: str) -> str | None:
        return self.request.query_params.get(name) if self.request.scope["query_string"] else None

    def texts(self, name: str) -> list[str]:
        return self.request.query_params.getlist(name) if self.request.scope["query_string"] else []

    def flag(self, name: str) -> bool:
        return (self.text(name) or "").lower() == "true"

    def number(self, name: str, default: int) -> int:
        text = self.text(name)
        if not text:
            return default
        number = whole_number(text)
        if number is None:
            raise refusals.malformed(f"the parameter {name} is no whole number: {text[:100]!r}")
        return number

    def page(self) -> Page:
        return Page(self.number("offset", 0), self.number("limit", -1))

    def named_subject(self) -> str | None:
        """The query parameter `subject`, in the context of the path."""
        given = self.text("subject")
        if "context" not in self.request.path_params:
            return given if not given else self.api.state.alias_of(qualified(given))
        name = given if given and is_qualified(given) else f":{self.context}:{given or ''}"
        return self.api.state.alias_of(name)

    def prefix(self, default: str) -> str:
        """The query parameter `subjectPrefix`, in the context of the path."""
        given = self.text("subjectPrefix")
        if "context" not in self.request.path_params:
            return default if given is None else given
        if given and (is_qualified(given) or given.startswith(ALL_CONTEXTS)):
            return given
        return f":{self.context}:{given or ''}"

    async def body(self) -> dict[str, Any]:
        return await read_object(self.request)


def whole_number(text: str) -> int | None:
    digits = text[1:] if text[:1] == "-" else text
    if not (digits.isascii() and digits.isdigit()) or len(text) > NUMBER_LENGTH_MAX:
        return None
    number = int(text)
    return number if -(2**31) <= number < 2**31 else None


def as_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


Run = Callable[[Call], Awaitable[Any]]


def bind(api: RegistryApi) -> Callable[[Run], Callable[[Request], Awaitable[Response]]]:
    """Endpoints over one registry: media types are checked before and the result is printed after."""

    def bound(run: Run) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            headers = request.headers
            media_type = accepted(headers.get("accept"), api.settings.media_types)
            given = headers.get("content-type")
            if given is not None and request.method in ("POST", "PUT"):
                content_type(given, REQUEST_TYPES)
            found = await run(Call(api, request, media_type))
            if isinstance(found, Response):
                return found
            return Response(found if type(found) is bytes else as_json(found), media_type=media_type)

        return serve

    return bound
