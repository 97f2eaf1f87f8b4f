"""Endpoints of API v2: bodies checked, responses and errors in its media type.

In: a function that takes the request and the cluster as its caller sees it. Out: an endpoint of the frame.
Does not know: what endpoints do.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.rest.formats import json_text
from barnabas.rest.kafka import Kafka
from barnabas.rest.kafka_errors import status_of, text_of
from barnabas.rest.proxy import Proxy
from barnabas.rest.v2.media import ALL, V2, check_control
from barnabas.services.errors import ApiError
from barnabas.services.negotiation import HEADER_LENGTH_MAX, chosen

BAD_REQUEST, UNPROCESSABLE = 400, 422
INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1

V2Endpoint = Callable[[Request, Kafka], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


def serving(proxy: Proxy, endpoint: V2Endpoint) -> Endpoint:
    """An endpoint of the frame out of one of v2: errors of Kafka become those of the API."""

    async def serve(request: Request) -> Response:
        try:
            async with proxy.kafka_of(request) as kafka:
                return await endpoint(request, kafka)
        except (KafkaError, ClientError) as error:
            status, code = status_of(error)
            raise ApiError(status, code, text_of(error), error_headers(request)) from error
        except ApiError as error:
            if "content-type" not in error.headers:
                error.headers = {**error.headers, **error_headers(request)}
            raise

    return serve


def error_headers(request: Request) -> dict[str, str]:
    accept = request.headers.get("accept")
    return {"content-type": chosen(accept[:HEADER_LENGTH_MAX] if accept else None, ALL) or V2}


def json_response(value: object) -> Response:
    return Response(json_text.dumps(value), media_type=V2)


def no_content() -> Response:
    return Response(status_code=204)


async def read_control(request: Request) -> Any:
    """The JSON body of a request without embedded data; None if there is no body."""
    body = await request.body()
    headers = request.headers
    check_control(headers.get("content-type"), headers.get("accept"), has_body=bool(body.strip()))
    return parse_body(body) if body.strip() else None


def parse_body(body: bytes) -> Any:
    try:
        return json_text.loads(body)
    except ValueError as error:
        raise ApiError(400, BAD_REQUEST, f"The body is no valid JSON: {error}") from None


# -- fields of bodies ------------------------------------------------------------------------------


def fields(value: Any, known: Collection[str], place: str = "the body") -> dict[str, Any]:
    """An object that has no other fields than those."""
    if not isinstance(value, dict):
        raise unprocessable(f"{place} must be a JSON object")
    for name in value:
        if name not in known:
            raise unprocessable(f"Unrecognized field: {str(name)[:100]}")
    return value


def items(value: Any, name: str) -> list[Any]:
    if not isinstance(value, list):
        raise unprocessable(f"{name} must be a list")
    return value


def text(value: Any, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise unprocessable(f"{name} must be a text that is not empty")
    return value


def whole(value: Any, name: str, largest: int = INT_MAX, smallest: int = 0) -> int:
    if type(value) is not int or not smallest <= value <= largest:
        raise unprocessable(f"{name} must be a whole number from {smallest} to {largest}")
    return value


def unprocessable(message: str) -> ApiError:
    return ApiError(422, UNPROCESSABLE, message)
