"""A proxy made from settings, on a port, in a thread of the test's process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from barnabas.rest.application.from_settings import service
from barnabas.services.hosting.process import serve
from barnabas.services.settings.loading import load_settings

START_S_MAX = 60.0


@contextmanager
def running(given: Mapping[str, str]) -> Iterator[str]:
    """The URL of a proxy with these settings."""
    settings = load_settings("rest", None, {"listeners": "http://127.0.0.1:0", **given})
    found: list[str] = []
    is_ready = threading.Event()
    loop = asyncio.new_event_loop()
    tasks: list[asyncio.Task[None]] = []

    async def main() -> None:
        def ready(listeners: object) -> None:
            found.extend(map(str, listeners))  # type: ignore[call-overload]
            is_ready.set()

        tasks.append(asyncio.ensure_future(serve(settings, service, ready)))
        try:
            await tasks[0]
        except asyncio.CancelledError:
            pass
        finally:
            is_ready.set()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),), daemon=True)
    thread.start()
    try:
        assert is_ready.wait(START_S_MAX) and found, "the proxy did not start"
        yield found[0]
    finally:
        loop.call_soon_threadsafe(tasks[0].cancel)
        thread.join(START_S_MAX)
        assert not thread.is_alive(), "the proxy did not stop"
        loop.close()
