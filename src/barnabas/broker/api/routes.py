"""Routes: which handler serves which API and versions, and the codecs of each version, compiled when needed.

A handler declares itself with `@handles(Request, "0-4", needs=...)` over a function `(request, context)`
that returns a response, an awaitable of one, or None when there is nothing to send. Routing, ApiVersions,
authorization and the table of APIs in the docs all use that declaration.
"""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from barnabas.broker.api.large_requests import encode_in_steps
from barnabas.broker.api.response_errors import count_in_steps, count_nothing, error_counter
from barnabas.protocol import ApiKey, Message, apis
from barnabas.protocol.codec import codec
from barnabas.protocol.produce_layout import VERSIONS as PRODUCE_VERSIONS
from barnabas.protocol.produce_layout import ProduceLayout

if TYPE_CHECKING:
    from barnabas.broker.api.context import RequestContext
    from barnabas.broker.api.needs import Need, Needs
    from barnabas.broker.metrics import ApiMetrics, Metrics
    from barnabas.broker.quotas.throttling import Guard
    from barnabas.metadata.steps import Steps

_header = struct.Struct(">ii").pack
_flexible_header = struct.Struct(">iiB").pack
HandlerResult = Message | Awaitable[Message | None] | None
Handler = Callable[[Any, "RequestContext"], HandlerResult]
Encoder = Callable[[int], Callable[[Any, Callable[[Any], object]], None]]
H = TypeVar("H", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One API as it is served: the handler's declaration."""

    key: ApiKey
    version_min: int
    version_max: int
    needs: Needs
    handler: Handler
    announced_min: int  # Produce is announced from 0 because librdkafka looks for it, and served from 3
    listeners: frozenset[str]
    fallback: Handler | None = None  # handles unknown versions; its response is encoded as version 0
    unstable_max: int | None = None  # served only with `unstable.api.versions.enable`
    encoder: Encoder | None = None  # instead of the codec's, for responses with encoded parts
    counts_errors: bool = True  # False if the encoded parts of a response hide its errors

    def last_version(self, serves_unstable: bool) -> int:
        if serves_unstable and self.unstable_max is not None:
            return self.unstable_max
        return self.version_max


class Route:
    """One API in one version, with all that a connection needs to decode, handle and respond."""

    __slots__ = (
        "_count_errors",
        "_follower_times",
        "_has_codec",
        "decode",
        "encode",
        "flexible_request",
        "flexible_response",
        "handler",
        "has_many_elements",
        "key",
        "layout",
        "request_class",
        "times",
        "version",
    )

    def __init__(
        self, endpoint: Endpoint, version: int, times: ApiMetrics, handler: Handler | None = None
    ) -> None:
        key = endpoint.key
        self.key = int(key)
        self.request_class = apis.request_class(key)
        self.has_many_elements = key not in HOLDING_RECORDS  # which makes a large request slow to decode
        self.version = version
        self.times = times
        self.handler = handler or endpoint.handler
        self.decode = codec(self.request_class, version).decode
        encoder = endpoint.encoder
        response_class = apis.response_class(key)
        self.encode = encoder(version) if encoder else codec(response_class, version).encode
        self._has_codec = encoder is None
        counts_errors = endpoint.counts_errors
        self._count_errors = error_counter(response_class) if counts_errors else count_nothing
        self._follower_times: ApiMetrics | None = None
        self.flexible_request = apis.request_header_version(key, version) >= 2
        self.flexible_response = apis.response_header_version(key, version) >= 1
        # Set for produce requests without a guard: their batches are found in the bytes of the request.
        self.layout: ProduceLayout | None = None

    def count_errors(self, response: Message | bytes) -> None:
        """Count the error codes of a response; encoded ones have none."""
        if isinstance(response, bytes):
            count_nothing(response, self.times.errors)
        else:
            self._count_errors(response, self.times.errors)

    def encode_large(self, response: Message | bytes) -> Steps[Message | bytes]:
        """Encode the response to a large request in steps, unless the API has an encoder of its own."""
        if isinstance(response, bytes) or not self._has_codec:
            return response
        if self._count_errors is not count_nothing:
            yield from count_in_steps(response, self.times.errors)
        return (yield from encode_in_steps(response, self.version))

    def follower_times(self, metrics: Metrics) -> ApiMetrics:
        """The counters of this API for fetches of followers."""
        if self._follower_times is None:
            self._follower_times = metrics.api(self.key, self.version, is_follower=True)
        return self._follower_times

    def framed(self, correlation_id: int, response: Message | bytes) -> list[Any]:
        """A response with its size and header, in parts."""
        parts: list[Any] = [b""]
        if isinstance(response, bytes):
            parts.append(response)
        else:
            self.encode(response, parts.append)
        if self.flexible_response:
            parts[0] = _flexible_header(sum(map(len, parts)) + 5, correlation_id, 0)
        else:
            parts[0] = _header(sum(map(len, parts)) + 4, correlation_id)
        return parts


HOLDING_RECORDS = (ApiKey.PRODUCE,)
_endpoints: dict[str, dict[int, Endpoint]] = {"broker": {}, "controller": {}}  # by kind of listener


def handles(
    request: type[Message] | ApiKey,
    versions: str,
    *,
    needs: Need | Needs,
    announced_from: int | None = None,
    listeners: str = "broker",
    fallback: Handler | None = None,
    unstable_max: int | None = None,
    encoder: Encoder | None = None,
    counts_errors: bool = True,
) -> Callable[[H], H]:
    """Declare the decorated function as the handler of `request` in `versions` ("0-4").

    A key instead of a class leaves the message's module unimported until the first request.
    """
    low, _, high = versions.partition("-")
    key = request if isinstance(request, ApiKey) else ApiKey(request.schema.key or 0)

    def register(function: H) -> H:
        version_min, version_max = int(low), int(high or low)
        endpoint = Endpoint(
            key=key,
            version_min=version_min,
            version_max=version_max,
            needs=needs if isinstance(needs, tuple) else (needs,),
            handler=function,
            announced_min=version_min if announced_from is None else announced_from,
            listeners=frozenset(listeners.split()),
            fallback=fallback,
            unstable_max=unstable_max,
            encoder=encoder,
            counts_errors=counts_errors,
        )
        for kind in endpoint.listeners:
            _endpoints[kind][key] = endpoint
        return function

    return register


def endpoints(listener: str = "broker") -> list[Endpoint]:
    """The endpoints of a kind of listener, in the order of API keys."""
    served = _endpoints[listener]
    return [served[key] for key in sorted(served)]


class Wraps(Protocol):
    """Puts something around handlers."""

    def wrap(self, endpoint: Endpoint, handler: Handler) -> Handler: ...


Check = Callable[[Endpoint, Handler, int, str], Handler]


class Router:
    """The routes of one listener, made at the first request for each."""

    __slots__ = (
        "_check",
        "_guard",
        "_kind",
        "_log",
        "_metrics",
        "_serves_unstable",
        "is_guarded",
        "is_wrapped",
        "routes",
    )

    def __init__(
        self, kind: str, metrics: Metrics, serves_unstable: bool = False, check: Check | None = None
    ) -> None:
        """`check` puts the checks of rights before a handler; None where everything is allowed."""
        self._kind = kind
        self._check = check
        self._serves_unstable = serves_unstable
        self._metrics = metrics
        self._guard: Guard | None = None
        self._log: Wraps | None = None
        self.is_guarded = False  # handlers are wrapped and must not be bypassed
        self.is_wrapped = check is not None  # responses may be changed after their handlers made them
        self.routes: dict[int, Route] = {}  # by (key << 16 | version): channels look here first

    def guard(self, guard: Guard | None) -> None:
        """Wrap every handler from now on; None stops that."""
        self._guard = guard
        self._rewrap()

    def log_requests(self, log: Wraps | None) -> None:
        """Let this wrap every handler too, which writes the request log; None stops that."""
        if log is not self._log:
            self._log = log
            self._rewrap()

    def _rewrap(self) -> None:
        self.is_guarded = self._guard is not None or self._log is not None
        self.is_wrapped = self.is_guarded or self._check is not None
        self.routes.clear()

    def find(self, key: int, version: int) -> Route | None:
        """The route of a request, or None for an API or version that is not served here."""
        endpoint = _endpoints[self._kind].get(key)
        if endpoint is None:
            return None
        if endpoint.version_min <= version <= endpoint.last_version(self._serves_unstable):
            handler = endpoint.handler
            if self._check is not None:
                handler = self._check(endpoint, handler, version, self._kind)
            if self._guard is not None:
                handler = self._guard.wrap(endpoint, handler)
            if self._log is not None:
                handler = self._log.wrap(endpoint, handler)
            found = self.routes[key << 16 | version] = Route(
                endpoint, version, self._metrics.api(key, version), handler
            )
            if key == ApiKey.PRODUCE and not self.is_guarded and version in PRODUCE_VERSIONS:
                found.layout = ProduceLayout(version)
            return found
        if endpoint.fallback is not None:
            # KIP-511: an unknown version of ApiVersions gets a response of version 0 with the known versions.
            return Route(endpoint, 0, self._metrics.api(key), endpoint.fallback)
        return None
