"""Connect's API, as statements about connectors use it.

In: the URL of a worker. Out: the JSON of its responses, or StatementRefused with Connect's own message.
Does not know: statements.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx

from barnabas.sql.server.statements.errors import SERVER_ERROR, StatementRefused

RESPONSE_BYTES_MAX = 16 << 20


class ConnectClient:
    def __init__(self, url: str, timeout_s: float, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """`transport` takes the place of sockets, for tests."""
        self.url = url.rstrip("/")
        self._client = httpx.AsyncClient(
            base_url=self.url, timeout=timeout_s, trust_env=False, transport=transport
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def connectors(self) -> dict[str, Any]:
        """All connectors by name, with `status` and `info`."""
        found: dict[str, Any] = await self.ask("GET", "/connectors?expand=status&expand=info")
        return found

    async def connector(self, name: str, part: str = "") -> Any:
        """The description of a connector; None if there is none of this name."""
        tail = f"/{part}" if part else ""
        return await self.ask("GET", f"/connectors/{quote(name, safe='')}{tail}", missing=True)

    async def plugins(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await self.ask("GET", "/connector-plugins")
        return found

    async def create(self, name: str, config: dict[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = await self.ask("POST", "/connectors", {"name": name, "config": config})
        return found

    async def delete(self, name: str) -> None:
        await self.ask("DELETE", f"/connectors/{quote(name, safe='')}")

    async def ask(self, method: str, path: str, body: Any = None, *, missing: bool = False) -> Any:
        try:
            response = await self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            why = str(error) or type(error).__name__
            raise StatementRefused(
                f"Connect cannot be reached at {self.url}: {why}. Set ksql.connect.url to a worker.",
                code=SERVER_ERROR,
                status=500,
            ) from None
        if response.status_code == 404 and missing:
            return None
        if len(response.content) > RESPONSE_BYTES_MAX:
            raise StatementRefused("the response of Connect is too large", code=SERVER_ERROR, status=500)
        if response.status_code >= 400:
            raise StatementRefused(f"Connect refused: {message_of(response)}")
        return response.json() if response.content else None


def message_of(response: httpx.Response) -> str:
    try:
        return str(response.json()["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code}"
