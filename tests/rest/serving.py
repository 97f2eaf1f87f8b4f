"""Runs a proxy in a thread of the tests, with sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import httpx

from barnabas.client.core.address import Address
from barnabas.rest.application.service import RestOptions, rest_service
from barnabas.rest.formats.source import SchemaSource
from barnabas.rest.kafka import Kafka, KafkaSettings
from barnabas.rest.proxy import Proxy, ProxySettings
from barnabas.services.app import ServiceApp
from barnabas.services.hosting.binding import bind
from barnabas.services.hosting.connections import ConnectionLimits
from barnabas.services.hosting.host import Host, HostSettings
from barnabas.services.limits import Limits
from barnabas.services.settings.listeners import parse_listeners

START_SECONDS_MAX = 20
HTTP = httpx.Client(verify=False, trust_env=False, timeout=30)  # one for all tests: making one takes long


@dataclass(frozen=True, slots=True)
class Served:
    url: str
    cluster_id: str
    proxy: Proxy
    loop: asyncio.AbstractEventLoop
    connections: Collection[object]  # open ones

    @property
    def cluster(self) -> str:
        return f"{self.url}/v3/clusters/{self.cluster_id}"

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])


@contextmanager
def serving(
    bootstrap: str,
    settings: ProxySettings | None = None,
    limits: Limits | None = None,
    schemas: SchemaSource | None = None,
    socket_bytes: int | None = None,
    options: RestOptions | None = None,
) -> Iterator[Served]:
    """`socket_bytes` bounds the buffers of connections."""
    limits = limits or Limits()
    bound = bind(parse_listeners("listeners", ["http://127.0.0.1:0"]), None)
    if socket_bytes is not None:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            bound[0].socket.setsockopt(socket.SOL_SOCKET, option, socket_bytes)
    url = f"http://127.0.0.1:{bound[0].listener.port}"
    found: list[tuple[Proxy, Host, asyncio.AbstractEventLoop]] = []
    is_ready = threading.Event()

    async def run() -> None:
        host, _, port = bootstrap.rpartition(":")
        kafka = Kafka(KafkaSettings([Address(host, int(port))]))
        proxy = Proxy(kafka, settings, schemas=schemas)
        service = rest_service(proxy, limits, options)
        connections = ConnectionLimits(stall_s_max=limits.stall_s_max)
        running = Host(service, ServiceApp(service), bound, HostSettings(connections))
        found.append((proxy, running, asyncio.get_running_loop()))
        await running.run(is_ready.set)

    thread = threading.Thread(target=asyncio.run, args=(run(),), daemon=True)
    thread.start()
    assert is_ready.wait(START_SECONDS_MAX)
    proxy, host, loop = found[0]
    try:
        cluster_id = HTTP.get(f"{url}/v3/clusters").json()["data"][0]["cluster_id"]
        yield Served(url, cluster_id, proxy, loop, host._server.server_state.connections)
    finally:
        loop.call_soon_threadsafe(host.stop)
        thread.join(START_SECONDS_MAX)
