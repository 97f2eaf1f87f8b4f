"""Measurements of a connection's requests beside their times: bytes, sizes, waits, and who sent them.

In: calls of the channel, most of them for one wake-up of 16. Out: histograms of the route's API, and totals
of connections, added up by listener, and by client id and user. The number of clients that are told apart is
bounded; those that come later are counted as `other`. Does not know: how requests are served, names of
metrics.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.api.routes import Route
    from barnabas.broker.wire.channel import Channel

CLIENTS_MAX = 1_000
OTHER = "other"
_size_and_head = struct.Struct(">ihh").unpack_from
HEAD_BYTES = 8

Client = tuple[str, str]
"""Client id and user."""


class Traffic:
    """The bytes that a connection received and sent."""

    __slots__ = ("bytes_in", "bytes_out", "requests")

    def __init__(self) -> None:
        self.bytes_in = 0
        self.bytes_out = 0
        self.requests = 0

    def add(self, other: Traffic) -> None:
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.requests += other.requests


class TrafficLog:
    """The traffic of a listener: of its connections now, and of those that were closed."""

    __slots__ = ("_closed", "_closed_by_client", "closes", "creations")

    def __init__(self) -> None:
        self._closed = Traffic()
        self._closed_by_client: dict[Client, Traffic] = {}
        self.creations = 0
        self.closes = 0

    def closed(self, channel: Channel) -> None:
        self.closes += 1
        self._closed.add(channel.traffic)
        client = client_of(channel)
        if client not in self._closed_by_client and len(self._closed_by_client) >= CLIENTS_MAX:
            client = OTHER, OTHER
        self._closed_by_client.setdefault(client, Traffic()).add(channel.traffic)

    def total(self, channels: Iterable[Channel]) -> Traffic:
        found = Traffic()
        found.add(self._closed)
        for channel in channels:
            found.add(channel.traffic)
        return found

    def by_client(self, channels: Iterable[Channel]) -> dict[Client, Traffic]:
        found: dict[Client, Traffic] = {}
        for client, traffic in [
            *self._closed_by_client.items(),
            *((client_of(channel), channel.traffic) for channel in channels if channel.has_spoken),
        ]:
            if client not in found and len(found) >= CLIENTS_MAX:
                client = OTHER, OTHER
            found.setdefault(client, Traffic()).add(traffic)
        return found


def client_of(channel: Channel) -> Client:
    context = channel.context
    return context.client_id or "", context.principal.name


def by_software(channels: Iterable[Channel]) -> Iterator[tuple[tuple[str, str], int]]:
    """Connections by name and version of the client's software, as its ApiVersions request told them."""
    found = Counter(
        (channel.context.software_name or "unknown", channel.context.software_version or "unknown")
        for channel in channels
    )
    yield from sorted(found.items())[:CLIENTS_MAX]


def route_of(channel: Channel, run: memoryview) -> tuple[Route | None, int]:
    """The route of the first request in a run, if it was used before, and the size of the request."""
    if len(run) < HEAD_BYTES:
        return None, 0
    size, key, version = _size_and_head(run)
    return channel.routes.get(key << 16 | version), size


def sample_size(channel: Channel, run: memoryview) -> None:
    route, size = route_of(channel, run)
    if route is not None and size > 0:
        route.times.observe_bytes(size)


def note_wait(channel: Channel, run: memoryview, wait_ns: int) -> None:
    """Requests waited in the inbox, because their connection was busy with earlier ones."""
    route, _ = route_of(channel, run)
    if route is not None:
        route.times.observe_queue(wait_ns)
