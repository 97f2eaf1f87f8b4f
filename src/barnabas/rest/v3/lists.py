"""Lists of resources, rendered in pieces: a long list neither stalls the loop nor fills the memory.

In: pages of resources, as they are computed. Out: a response. A list that fits into the first pieces is sent
whole with its length; a longer one is streamed. An error before that has its status; a later one cuts the
response off, so that no client takes half a list for a whole one.
Does not know: resources.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from itertools import islice
from typing import TypeVar

from starlette.responses import Response, StreamingResponse

from barnabas.rest.v3.resources import Resource

PIECE = 100  # resources rendered in one turn of the loop: about a millisecond
WHOLE_BYTES_MAX = 256 * 1024
MEDIA_TYPE = "application/json"
T = TypeVar("T")
R = TypeVar("R")


def encoded(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def one(resource: object, status: int = 200) -> Response:
    return Response(encoded(resource).encode(), status, media_type=MEDIA_TYPE)


async def listed(kind: str, url: str, pages: AsyncIterator[Iterable[Resource]]) -> Response:
    """The list of all resources of the pages."""
    head = encoded({"kind": kind, "metadata": {"self": url, "next": None}})[:-1] + ',"data":['
    pieces = rendered(head, pages)
    begun: list[bytes] = []
    size = 0
    async for piece in pieces:
        begun.append(piece)
        size += len(piece)
        if size > WHOLE_BYTES_MAX:
            return StreamingResponse(continued(begun, pieces), media_type=MEDIA_TYPE)
    return Response(b"".join(begun), media_type=MEDIA_TYPE)


async def rendered(head: str, pages: AsyncIterator[Iterable[Resource]]) -> AsyncIterator[bytes]:
    yield head.encode()
    separator = ""
    async for page in pages:
        resources = iter(page)
        while piece := list(islice(resources, PIECE)):
            yield (separator + ",".join(map(encoded, piece))).encode()
            separator = ","
            await asyncio.sleep(0)
    yield b"]}"


async def continued(begun: list[bytes], pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield b"".join(begun)
    async for piece in pieces:
        yield piece


async def page_of(resources: Iterable[Resource]) -> AsyncIterator[Iterable[Resource]]:
    """One page, of resources that are known already."""
    yield resources


async def in_portions(
    items: Sequence[T], size: int, ask: Callable[[Sequence[T]], Awaitable[R]], at_once: int = 4
) -> AsyncIterator[R]:
    """RecordResults about portions of the items, in order. At most `at_once` questions are under way."""
    waiting: list[asyncio.Future[R]] = []
    starts = iter(range(0, len(items), size))
    try:
        while True:
            for start in islice(starts, at_once - len(waiting)):
                waiting.append(asyncio.ensure_future(ask(items[start : start + size])))
            if not waiting:
                return
            yield await waiting[0]
            del waiting[0]
    finally:
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
