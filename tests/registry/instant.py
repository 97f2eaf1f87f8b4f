"""A registry over HTTP in one process, without brokers: changes are stored in a list and applied at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import Response

from barnabas.registry.api.application import routes
from barnabas.registry.api.media_types import RESPONSE_TYPES
from barnabas.registry.api.registry import ApiSettings, RegistryApi
from barnabas.registry.api.response_bodies import classic_error
from barnabas.registry.state.deciding import Decider, Rules
from barnabas.registry.state.parsed import ParsedSchemas
from barnabas.registry.state.state import State
from barnabas.services.app import Service, ServiceApp
from barnabas.services.errors import error_body
from registry import plain_schemas


class InstantChanges:
    """Implements `Changes` for the only node."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._lock = asyncio.Lock()
        self.log: list[tuple[bytes, bytes | None]] = []
        self.failure: Exception | None = None  # raised instead of the next change
        self.response: Response | None = None  # of a primary elsewhere

    async def forwarded(self, request: Request) -> Response | None:
        return self.response

    async def change(self, decide: Any) -> Any:
        async with self._lock:
            if self.failure is not None:
                raise self.failure
            decision = await decide()
            for key, value in decision.records:
                self.log.append((key, value))
                self._state.apply(key, value, timestamp_ms=1000 + len(self.log))
            return decision.reply


class InstantRegistry:
    """`parse` None takes the real languages of schemas."""

    def __init__(
        self,
        parse: Any = plain_schemas.parse,
        settings: ApiSettings | None = None,
        rules: Rules | None = None,
    ) -> None:
        self.state = State()
        self.changes = InstantChanges(self.state)
        schemas = ParsedSchemas() if parse is None else ParsedSchemas(parse)
        settings = settings or ApiSettings(cluster_id="kafka-1", version="1.0")
        self.api = RegistryApi(Decider(self.state, schemas, rules), self.changes, settings, clock=lambda: 1.0)
        self.service = Service(
            "registry",
            routes(self.api),
            media_types=RESPONSE_TYPES,
            error_form=classic_error if settings.is_classic else error_body,
        )
        self.app = ServiceApp(self.service)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[httpx.AsyncClient]:
        transport = httpx.ASGITransport(app=self.app)
        try:
            async with httpx.AsyncClient(transport=transport, base_url="http://registry") as client:
                yield client
        finally:
            self.api.close()
