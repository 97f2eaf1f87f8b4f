"""The proxy: settings of both APIs, the Kafka cluster behind them, and the clients of each caller.

In: settings. Out: for a request, the cluster as its caller may see it. Does not know: endpoints.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from barnabas.rest.formats.embedded import Formats
from barnabas.rest.formats.source import NoRegistry, SchemaSource
from barnabas.rest.kafka import Kafka
from barnabas.rest.produce_rates import ProduceRates
from barnabas.services.caller import CredentialKind, caller_of
from barnabas.services.callers.client_pool import ClientPool

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class ProxySettings:
    """Settings of the proxy, behind each the property that sets it."""

    advertised_url: str = ""  # advertised.listeners; empty: the address that a request names
    crn_authority: str = ""  # crn.authority.name
    produce_records_per_s: int = 0  # api.v3.produce.rate.limit.max.requests.per.sec; 0: no bound
    produce_bytes_per_s: int = 0  # api.v3.produce.rate.limit.max.bytes.per.sec
    batch_entries_max: int = 10  # api.v3.produce.batch.maximum.entries
    record_chars_max: int = 10 * 1024 * 1024  # barnabas.stream.record.max.bytes: one object of a stream
    stream_ms_max: float = DAY_MS  # streaming.connection.max.duration.ms
    stream_grace_ms: float = 500  # streaming.connection.max.duration.grace.period.ms
    stream_idle_ms: float = 300_000  # barnabas.stream.idle.ms
    stream_in_flight_max: int = 10_000  # barnabas.stream.records.in.flight.max: without a result
    stream_in_flight_bytes_max: int = 8 * 1024 * 1024  # barnabas.stream.bytes.in.flight.max
    tails_max: int = 200  # barnabas.tail.connections.max
    tail_idle_ms: float = 15_000  # barnabas.tail.keep.alive.ms
    tail_fetch_bytes_max: int = 1024 * 1024  # barnabas.tail.fetch.max.bytes
    origins: tuple[str, ...] = ()  # access.control.allow.origin: whose pages may open WebSockets


class Proxy:
    """`own` is the cluster as the proxy itself sees it. `pool` has clients that log in at the brokers as
    their callers; None: all callers share the proxy's own."""

    def __init__(
        self,
        own: Kafka,
        settings: ProxySettings | None = None,
        *,
        pool: ClientPool[Kafka] | None = None,
        schemas: SchemaSource | None = None,
    ) -> None:
        self.settings = settings or ProxySettings()
        self.formats = Formats(schemas or NoRegistry())
        self.stopping = asyncio.Event()  # set: long responses end
        self.tails = 0
        limits = self.settings
        self.rates = ProduceRates(limits.produce_records_per_s, limits.produce_bytes_per_s)
        self._own = own
        self._pool = pool

    @asynccontextmanager
    async def kafka_of(self, request: HTTPConnection) -> AsyncIterator[Kafka]:
        """The cluster as the caller of this request sees it, while the request uses it."""
        caller = caller_of(request)
        if self._pool is None or caller.kind not in (CredentialKind.BASIC, CredentialKind.BEARER):
            yield self._own
            return
        async with self._pool.use(caller) as kafka:
            yield kafka

    async def start(self) -> None:
        if self._pool is not None:
            self._pool.start()

    async def stop(self) -> None:
        self.stopping.set()
        if self._pool is not None:
            await self._pool.close()
        await self._own.close()
