"""The service of interactive queries: lookups in the stores of one application.

In: a `StateView`, made when the service starts. Out: a `Service` with its routes. Lookups run in threads,
because they wait for brokers. Does not know: sockets, who may ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from barnabas.services.app import Service
from barnabas.services.errors import ApiError
from barnabas.services.routes import Need, ServiceRoute
from barnabas.streams.views.http import texts
from barnabas.streams.views.rows import Answer, NotReady, UnknownStore, ViewError, WrongLookup
from barnabas.streams.views.state_view import StateView
from barnabas.streams.views.store_view import FOREVER

NAME = "streams"
ROWS_DEFAULT, ROWS_MAX = 1000, 10_000
STATUSES: dict[type[ViewError], int] = {UnknownStore: 404, WrongLookup: 400, NotReady: 503}


def streams_service(make_view: Callable[[], StateView], advertised: Callable[[], str]) -> Service:
    """`advertised` gives the address that metadata of keys names."""
    api = StoresApi(make_view, advertised)
    return Service(
        NAME,
        api.routes(),
        start=api.start,
        stop=api.stop,
        converted=converted,
        why_not_ready=api.why_not_ready,
    )


def converted(error: Exception) -> ApiError | None:
    if not isinstance(error, ViewError):
        return None
    status = STATUSES.get(type(error), 500)
    return ApiError(status, status, str(error))


class StoresApi:
    def __init__(self, make_view: Callable[[], StateView], advertised: Callable[[], str]) -> None:
        self._make_view, self._advertised = make_view, advertised
        self._view: StateView | None = None

    @property
    def view(self) -> StateView:
        assert self._view is not None
        return self._view

    def why_not_ready(self) -> str | None:
        return "the view of the stores is being opened" if self._view is None else None

    async def start(self) -> None:
        self._view = await asyncio.to_thread(self._make_view)

    async def stop(self) -> None:
        if self._view is not None:
            await asyncio.to_thread(self._view.close)

    def routes(self) -> list[ServiceRoute]:
        paths = {
            "/stores": self.stores,
            "/stores/{store}": self.store,
            "/stores/{store}/keys/{key}": self.key,
            "/stores/{store}/rows": self.rows,
            "/stores/{store}/windows": self.windows,
            "/stores/{store}/windows/{key}": self.windows_of_key,
            "/stores/{store}/sessions/{key}": self.sessions_of_key,
            "/stores/{store}/versions/{key}": self.versions_of_key,
            "/stores/{store}/metadata/{key}": self.metadata,
        }
        return [ServiceRoute(path, endpoint, needs=Need.READ) for path, endpoint in paths.items()]

    # -- endpoints ---------------------------------------------------------------------------------

    async def stores(self, request: Request) -> Response:
        return JSONResponse([self._description(name) for name in self.view.stores])

    async def store(self, request: Request) -> Response:
        return JSONResponse(self._description(request.path_params["store"]))

    def _description(self, name: str) -> dict[str, Any]:
        found = self.view.description(name)
        spec = found.spec
        return {
            "name": name,
            "kind": spec.kind.value,
            "key_format": "bytes" if spec.key_serde is None else spec.key_serde.format,
            "value_format": "bytes" if spec.value_serde is None else spec.value_serde.format,
            "changelog": found.topic,
            "is_global": spec.is_global,
            "retention_ms": spec.retention_ms or None,
            "window_size_ms": spec.window_size_ms or None,
            "position": texts.position_document(found.position),
        }

    async def key(self, request: Request) -> Response:
        asked = Asked(request)
        answer = await self._look(self.view.get, request, asked.key(self.view), as_of=asked.number("as_of"))
        if answer.row is None:
            text = f"the store {request.path_params['store']} has no key {request.path_params['key']!r}"
            raise ApiError(404, 404, text)
        position = texts.position_document(answer.position)
        return JSONResponse({**texts.row_document(answer.row), "position": position})

    async def rows(self, request: Request) -> Response:
        asked = Asked(request)
        given: dict[str, Any] = {"limit": asked.limit()}
        prefix = asked.key(self.view, "prefix")
        if prefix is not None:
            return answered(await self._look(self.view.prefix, request, prefix, **given))
        first, last = asked.key(self.view, "from"), asked.key(self.view, "to")
        return answered(await self._look(self.view.range, request, first, last, **given))

    async def windows(self, request: Request) -> Response:
        asked = Asked(request)
        given: dict[str, Any] = {"first": asked.key(self.view, "key_from"), "limit": asked.limit()}
        given["last"] = asked.key(self.view, "key_to")
        return answered(await self._look(self.view.windows, request, *asked.times(), **given))

    async def windows_of_key(self, request: Request) -> Response:
        asked = Asked(request)
        return answered(await self._look(self.view.window, request, asked.key(self.view), *asked.times()))

    async def sessions_of_key(self, request: Request) -> Response:
        asked = Asked(request)
        return answered(await self._look(self.view.sessions, request, asked.key(self.view), *asked.times()))

    async def versions_of_key(self, request: Request) -> Response:
        asked = Asked(request)
        return answered(await self._look(self.view.versions, request, asked.key(self.view), *asked.times()))

    async def metadata(self, request: Request) -> Response:
        """The place of a key. One process serves all keys, so the host is always its own."""
        store = request.path_params["store"]
        key = Asked(request).key(self.view)
        place = await asyncio.to_thread(self.view.place_of, store, key)
        host, _, port = self._advertised().rpartition(":")
        return JSONResponse(
            {
                "store": store,
                "active_host": {"host": host, "port": int(port)},
                "standby_hosts": [],
                "topic": place.topic,
                "partition": place.partition,
            }
        )

    async def _look(
        self, look: Callable[..., Answer], request: Request, *arguments: Any, **given: Any
    ) -> Answer:
        asked = Asked(request)
        given = {name: value for name, value in given.items() if value is not None}
        given |= {"fresh": asked.text("fresh") != "false"}
        at_least = asked.text("position")
        if at_least is not None:
            given["at_least"] = texts.position_of(at_least)
        return await asyncio.to_thread(look, request.path_params["store"], *arguments, **given)


def answered(answer: Answer) -> Response:
    return JSONResponse(texts.answer_document(answer))


class Asked:
    """The parameters of a request."""

    def __init__(self, request: Request) -> None:
        self._store: str = request.path_params["store"]
        self._parameters = request.query_params
        self._key: str | None = request.path_params.get("key")

    def text(self, name: str) -> str | None:
        return self._parameters.get(name)

    def number(self, name: str) -> int | None:
        text = self.text(name)
        if text is None:
            return None
        try:
            return int(text)
        except ValueError:
            raise WrongLookup(f"{name} is {text!r}: a whole number is needed") from None

    def times(self) -> tuple[int, int]:
        low, high = self.number("from"), self.number("to")
        return 0 if low is None else low, FOREVER if high is None else high

    def limit(self) -> int:
        found = self.number("limit")
        if found is None:
            return ROWS_DEFAULT
        if not 1 <= found <= ROWS_MAX:
            raise WrongLookup(f"limit is {found}; it may be 1 to {ROWS_MAX}")
        return found

    def key(self, view: StateView, name: str | None = None) -> Any:
        """The key of the path, or that of a parameter."""
        text = self._key if name is None else self.text(name)
        serde = view.description(self._store).spec.key_serde
        return None if text is None else texts.key_of(text, serde)
