"""One request of API v3: who asks, of which cluster, with which parameters.

In: a request and the proxy. Out: `Call`, which endpoints take, and `serving`, which makes an endpoint of the
frame out of one of v3. Refuses other media types (415, 406) and ids of other clusters (404).
Does not know: resources.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.rest.address import base_of
from barnabas.rest.kafka import Kafka
from barnabas.rest.kafka_errors import refusal
from barnabas.rest.proxy import Proxy
from barnabas.rest.v3.resources import Links
from barnabas.services.json_bodies import read_json
from barnabas.services.negotiation import accepted, content_type

JSON = ("application/json",)
INT_MAX = 2**31 - 1

CallEndpoint = Callable[["Call"], Awaitable[Response]]


class Call:
    """The arguments of an endpoint of v3."""

    __slots__ = ("kafka", "links", "proxy", "request")

    def __init__(self, proxy: Proxy, request: Request, kafka: Kafka, links: Links) -> None:
        self.proxy = proxy
        self.request = request
        self.kafka = kafka
        self.links = links

    def path(self, name: str) -> str:
        found: str = self.request.path_params[name]
        return found

    def number(self, name: str) -> int:
        """A number in the path. Another text names nothing that exists."""
        text = self.path(name)
        if not (text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= INT_MAX):
            raise refusal(404, 404, f"{name} is a number from 0 to {INT_MAX}, not {text[:100]!r}.")
        return int(text)

    def query(self, name: str) -> str | None:
        return self.request.query_params.get(name)

    def choice(self, name: str, words: Collection[str]) -> str | None:
        """A parameter of the query that is one of some words."""
        text = self.query(name)
        if text is None or text in words:
            return text
        raise refusal(400, 400, f"{name} is one of {', '.join(words)}, not {text[:100]!r}.")

    def flag(self, name: str) -> bool:
        return self.choice(name, ("true", "false")) == "true"

    async def body(self) -> Any:
        content_type(self.request.headers.get("content-type"), JSON, JSON[0])
        if not (await self.request.body()).strip():
            raise refusal(422, 42206, "Request body is empty. Data is required.")
        return await read_json(self.request)


def serving(
    proxy: Proxy, *, any_cluster: bool = False
) -> Callable[[CallEndpoint], Callable[[Request], Awaitable[Response]]]:
    """Make endpoints of the frame out of those of v3. `any_cluster`: the id in the path does not count."""

    def bound(endpoint: CallEndpoint) -> Callable[[Request], Awaitable[Response]]:
        async def serve(request: Request) -> Response:
            accepted(request.headers.get("accept"), JSON)
            async with proxy.kafka_of(request) as kafka:
                cluster_id = await kafka.cluster_id()
                asked = request.path_params.get("cluster_id", cluster_id)
                if asked != cluster_id and not any_cluster:
                    raise refusal(404, 404, f"Cluster {asked[:100]} cannot be found.")
                links = Links(
                    base_of(proxy.settings.advertised_url, request), cluster_id, proxy.settings.crn_authority
                )
                return await endpoint(Call(proxy, request, kafka, links))

        serve.__name__ = getattr(endpoint, "__name__", "serve")
        return serve

    return bound
