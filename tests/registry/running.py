"""A registry on a port, in a thread of the test's process: with brokers, or without."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx

from barnabas.registry.service import service
from barnabas.services.app import Service
from barnabas.services.hosting.process import MakeService, serve
from barnabas.services.settings.loading import load_settings
from barnabas.services.settings.service_settings import ServiceSettings
from registry.instant import InstantRegistry

START_S_MAX = 60.0


async def is_ready(client: httpx.AsyncClient, place: str = "") -> bool:
    return (await client.get(f"{place}/health/ready")).status_code == 200


def instant(settings: ServiceSettings) -> Service:
    """A registry without brokers that knows the real languages of schemas."""
    return InstantRegistry(parse=None).service


@contextmanager
def running(make: MakeService = service, given: Mapping[str, str] | None = None) -> Iterator[str]:
    """The URL of a registry."""
    settings = load_settings(
        "registry",
        None,
        {"listeners": "http://127.0.0.1:0", "kafkastore.bootstrap.servers": "127.0.0.1:1", **(given or {})},
    )
    found: list[str] = []
    failures: list[BaseException] = []
    is_ready = threading.Event()
    loop = asyncio.new_event_loop()
    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        def ready(listeners: object) -> None:
            found.extend(map(str, listeners))  # type: ignore[call-overload]
            is_ready.set()

        tasks.append(asyncio.ensure_future(serve(settings, make, ready)))
        try:
            await tasks[0]
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            failures.append(error)
            is_ready.set()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
    thread.start()
    try:
        assert is_ready.wait(START_S_MAX), "the registry did not start"
        if failures:
            raise failures[0]
        yield found[0]
    finally:
        loop.call_soon_threadsafe(tasks[0].cancel)
        thread.join(START_S_MAX)
        assert not thread.is_alive(), "the registry did not stop"
        loop.close()
