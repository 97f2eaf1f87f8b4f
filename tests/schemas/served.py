"""Registries over HTTP for tests: one without brokers, and the real service on a broker."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from barnabas.services.app import Service
from barnabas.services.hosting.binding import bind, listener_tls
from barnabas.services.hosting.process import host_of
from barnabas.services.settings.loading import load_settings
from barnabas.services.settings.service_settings import ServiceSettings
from registry.instant import InstantRegistry

START_S_MAX = 60


@contextmanager
def instant_registry() -> Iterator[str]:
    """The URL of a registry that keeps its records in memory."""
    unused = {"kafkastore.bootstrap.servers": "127.0.0.1:9"}
    with served(lambda settings: InstantRegistry(parse=None).service, **unused) as url:
        yield url


@contextmanager
def registry_on(bootstrap: str, topic: str) -> Iterator[str]:
    """The URL of a registry that keeps its records in a topic of a cluster."""
    from barnabas.registry.service import service

    changes = {
        "kafkastore.bootstrap.servers": bootstrap,
        "kafkastore.topic": topic,
        "schema.registry.group.id": topic,
        "kafkagroup.heartbeat.interval.ms": "100",
    }
    with served(service, **changes) as url:
        yield url


@contextmanager
def served(make: Callable[[ServiceSettings], Service], **changes: str) -> Iterator[str]:
    """A service on a port of its own, in a thread with a loop of its own."""
    ready, told = threading.Event(), {}

    async def main() -> None:
        settings = load_settings("registry", overrides={"listeners": "http://127.0.0.1:0", **changes})
        bound = bind(settings.listeners, listener_tls(settings))
        listeners = tuple(each.listener for each in bound)
        host = host_of(settings.listening_on(listeners), make, bound)
        told.update(host=host, loop=asyncio.get_running_loop(), port=listeners[0].port)
        await host.run(ready.set)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:  # the test shows it
            told["error"] = error
        finally:
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(START_S_MAX)
    if "error" in told:
        raise told["error"]
    try:
        yield f"http://127.0.0.1:{told['port']}"
    finally:
        stopped: Any = told
        stopped["loop"].call_soon_threadsafe(stopped["host"].stop)
        thread.join(START_S_MAX)
