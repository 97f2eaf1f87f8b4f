"""The request log: a line for each request, or for one of some, when `kafka.request.logger` is at DEBUG or
TRACE.

In: a handler. Out: a handler that also writes a line when the response is there, in the form of Kafka's
request log: one JSON object. At TRACE it holds the request too. Listeners use wrapped handlers only while the
logger is enabled, so it costs nothing when it is not; while it is, produce requests take the ordinary path.
Does not know: levels, files.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

from barnabas.broker.api.deferred import Deferred, Response
from barnabas.broker.api.response_errors import error_counter
from barnabas.broker.log_lines.levels import TRACE
from barnabas.broker.log_lines.names import REQUESTS
from barnabas.protocol import ApiKey, ErrorCode, Message

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.api.routes import Endpoint, Handler

log = logging.getLogger(REQUESTS)
NS_PER_MS = 1_000_000
REQUEST_CHARACTERS_MAX = 2_000


class RequestLog:
    def __init__(self, every: int) -> None:
        """One of `every` requests is a line."""
        self._every = max(every, 1)
        self._seen = 0

    def wrap(self, endpoint: Endpoint, handler: Handler) -> Handler:
        def logged(request: Any, context: RequestContext) -> Any:
            self._seen += 1
            if self._seen % self._every:
                return handler(request, context)
            line = Line(endpoint.key, request, context)
            result = handler(request, context)
            line.handled()
            if isinstance(result, Deferred):
                later = Deferred(result.cancel)

                def resolved(response: Response | None) -> None:
                    line.write(response)
                    later.resolve(response)

                result.then(resolved)
                return later
            if result is None or isinstance(result, Message):
                line.write(result or context.channel.unsent)
                return result
            return awaited(result, line)

        return logged


async def awaited(result: Awaitable[Message | None], line: Line) -> Message | None:
    response = await result
    line.write(response)
    return response


class Line:
    """The content of a line about one request."""

    def __init__(self, key: ApiKey, request: Message, context: RequestContext) -> None:
        self._key = key
        self._head = {
            "clientId": context.client_id or "",
            "correlationId": context.correlation_id,
            "requestApiKey": int(key),
            "requestApiKeyName": key.name,
            "requestApiVersion": context.version,
        }
        self._of = {
            "connection": context.host,
            "listener": context.listener,
            "principal": str(context.principal),
            "clientInformation": {
                "softwareName": context.software_name or "unknown",
                "softwareVersion": context.software_version or "unknown",
            },
        }
        self._request = repr(request)[:REQUEST_CHARACTERS_MAX] if log.isEnabledFor(TRACE) else None
        self._started_ns = perf_counter_ns()
        self._local_ns = 0

    def handled(self) -> None:
        self._local_ns = perf_counter_ns() - self._started_ns

    def write(self, response: Response | None) -> None:
        total_ns = perf_counter_ns() - self._started_ns
        line: dict[str, Any] = {"requestHeader": self._head, **self._of}
        if self._request is not None:
            line["request"] = self._request
        if isinstance(response, Message):
            counts: dict[int, int] = {}
            error_counter(type(response))(response, counts)
            line["errors"] = {name_of(code): count for code, count in sorted(counts.items())}
        line["totalTimeMs"] = round(total_ns / NS_PER_MS, 3)
        line["localTimeMs"] = round(self._local_ns / NS_PER_MS, 3)
        line["remoteTimeMs"] = round((total_ns - self._local_ns) / NS_PER_MS, 3)
        log.debug("Completed request:%s", json.dumps(line))


def name_of(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
