"""Requests of API v2, with its media types."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import httpx

from barnabas.testing.waiting import wait_until
from rest.serving import HTTP

V2 = "application/vnd.kafka.v2+json"
PATIENCE_S = 30.0
until = partial(wait_until, seconds=PATIENCE_S)


def embedded(data: str) -> str:
    return f"application/vnd.kafka.{data}.v2+json"


class Api:
    """A part of the API below a URL."""

    def __init__(self, url: str) -> None:
        self.url = url

    def call(
        self, method: str, path: str, body: Any = None, content: str | None = V2, accept: str | None = V2
    ) -> httpx.Response:
        headers = {"accept": accept or "*/*"}
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        if data is not None and content is not None:
            headers["content-type"] = content
        return HTTP.request(method, self.url + path, content=data, headers=headers)

    def get(self, path: str, body: Any = None, **others: Any) -> httpx.Response:
        return self.call("GET", path, body, **others)

    def post(self, path: str, body: Any = None, **others: Any) -> httpx.Response:
        return self.call("POST", path, body, **others)

    def delete(self, path: str, **others: Any) -> httpx.Response:
        return self.call("DELETE", path, **others)

    def produce(self, topic: str, *records: Any, data: str = "json", **others: Any) -> httpx.Response:
        return self.post(f"/topics/{topic}", {"records": list(records), **others}, content=embedded(data))

    def read(self, count: int, data: str = "json") -> list[dict[str, Any]]:
        """So many records, in as many reads as it takes."""
        found: list[dict[str, Any]] = []

        def has_all() -> bool:
            response = self.get("/records?timeout=500", accept=embedded(data))
            assert response.status_code == 200, response.text
            found.extend(response.json())
            return len(found) >= count

        until(has_all)
        return found


def refusal(response: httpx.Response) -> tuple[int, int]:
    """Status and code of an error, whose body has the form of the API."""
    body = response.json()
    assert set(body) == {"error_code", "message"}, body
    assert isinstance(body["message"], str) and body["message"]
    assert response.headers["content-type"].startswith("application/vnd.kafka."), response.headers
    return response.status_code, body["error_code"]
