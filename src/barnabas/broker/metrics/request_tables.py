"""Requests as Kafka's RequestMetrics show them: by request, by version, by error, by phase.

In: the counters of APIs. Out: sources for the registry. Does not know: how requests are served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from barnabas.metrics import Kind, Registry, Tags, metric_of
from barnabas.metrics.histogram import Histogram, Snapshot, snapshot_of
from barnabas.protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.metrics.counters import ApiMetrics
    from barnabas.metrics.registry import Row

KIND = "kafka.network", "RequestMetrics"
NS_PER_MS = 1_000_000
FETCH, FETCH_CONSUMER, FETCH_FOLLOWER = "Fetch", "FetchConsumer", "FetchFollower"

ApiId = tuple[int, int, bool]
"""Key, version, and whether a follower fetches."""
Apis = Callable[[], list[tuple[ApiId, "ApiMetrics"]]]


def total(api: ApiMetrics) -> Iterable[Histogram | None]:
    return api.immediate, api.waited


def local(api: ApiMetrics) -> Iterable[Histogram | None]:
    return api.immediate, api.local


# The phases of a request, their unit, and whether all other requests count as zeros.
PHASES: dict[str, tuple[str, Callable[[ApiMetrics], Iterable[Histogram | None]], float, bool]] = {
    "TotalTimeMs": ("Time from reading a request to its response.", total, NS_PER_MS, False),
    "LocalTimeMs": ("Time of a request in its handler and the write of its tick.", local, NS_PER_MS, False),
    "RemoteTimeMs": (
        "Time that a request waited for followers, other members, records or threads.",
        lambda api: (api.remote,),
        NS_PER_MS,
        True,
    ),
    "RequestQueueTimeMs": (
        "Time that a request waited behind earlier ones of its connection.",
        lambda api: (api.queue,),
        NS_PER_MS,
        True,
    ),
    "ResponseQueueTimeMs": (
        "Time that a response waited for earlier ones of its connection.",
        lambda api: (api.response_queue,),
        NS_PER_MS,
        True,
    ),
    "ResponseSendTimeMs": (
        "Time to give a response to the socket; a busy broker measures one of 16, and all that must wait.",
        lambda api: (api.send,),
        NS_PER_MS,
        False,
    ),
    "ThrottleTimeMs": ("Time by which quotas delayed a client.", lambda api: (api.throttle_ms,), 1.0, True),
    "RequestBytes": (
        "Size of a request; a busy broker measures one of 16.",
        lambda api: (api.request_bytes,),
        1.0,
        False,
    ),
}


def register(registry: Registry, apis: Apis, produced: Callable[[], int]) -> None:
    """`produced`: writes to partitions that succeeded, which produce requests do not count by themselves."""
    registry.add(
        metric_of(*KIND, "RequestsPerSec", Kind.COUNTER, "Requests that got a response."),
        lambda: by_version(apis()),
    )
    registry.add(
        metric_of(*KIND, "ErrorsPerSec", Kind.COUNTER, "Errors in responses, NONE included; by partition."),
        lambda: by_error(apis(), produced()),
    )
    for name, (help, parts, unit, has_zeros) in PHASES.items():
        registry.add(
            metric_of(*KIND, name, Kind.HISTOGRAM, help),
            lambda parts=parts, unit=unit, has_zeros=has_zeros: phases(apis(), parts, unit, has_zeros),  # type: ignore[misc]
        )


def by_version(apis: list[tuple[ApiId, ApiMetrics]]) -> Iterator[Row]:
    counts: dict[Tags, int] = {}
    for (key, version, is_follower), api in apis:
        for request in request_names(key, is_follower, version):
            tags = (("request", request), ("version", str(version)))
            counts[tags] = counts.get(tags, 0) + api.count
    yield from counts.items()


def by_error(apis: list[tuple[ApiId, ApiMetrics]], produced: int) -> Iterator[Row]:
    counts: dict[Tags, int] = {}
    for (key, _, _), api in apis:
        if key == ApiKey.PRODUCE:
            counts[error_tags("Produce", 0)] = produced
        for code, count in list(api.errors.items()):
            if key == ApiKey.PRODUCE and not code:
                continue
            tags = error_tags(request_names(key, False, 1)[0], code)
            counts[tags] = counts.get(tags, 0) + count
    yield from counts.items()


def error_tags(request: str, code: int) -> Tags:
    try:
        name = ErrorCode(code).name
    except ValueError:
        name = str(code)
    return (("request", request), ("error", name))


def phases(
    apis: list[tuple[ApiId, ApiMetrics]],
    parts: Callable[[ApiMetrics], Iterable[Histogram | None]],
    unit: float,
    has_zeros: bool,
) -> Iterator[tuple[Tags, Snapshot]]:
    by_request: dict[str, list[ApiMetrics]] = {}
    for (key, version, is_follower), api in apis:
        for request in request_names(key, is_follower, version):
            by_request.setdefault(request, []).append(api)
    for request, counters in by_request.items():
        histograms = [each for api in counters for each in parts(api) if each is not None]
        zeros = 0
        if has_zeros:
            zeros = sum(api.count for api in counters) - sum(each.count for each in histograms)
        yield (("request", request),), snapshot_of(histograms, unit, zeros)


def request_names(key: int, is_follower: bool, version: int) -> tuple[str, ...]:
    """Kafka's labels of a request; a fetch has two: all fetches, and those of consumers or of followers. So
    has a request whose version 0 was a request of its own."""
    if key == ApiKey.FETCH:
        return FETCH, FETCH_FOLLOWER if is_follower else FETCH_CONSUMER
    if key == ApiKey.LIST_CONFIG_RESOURCES and not version:
        return "ListConfigResources", "ListClientMetricsResources"
    try:
        return ("".join(part.capitalize() for part in ApiKey(key).name.split("_")),)
    except ValueError:
        return (str(key),)
