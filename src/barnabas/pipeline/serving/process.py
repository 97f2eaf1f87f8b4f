"""The serving process: opens the store, listens, says that it is ready, ends in order.

In: `Settings`. Out: an exit code; the ready file tells the URL once requests are answered.
Does not know: the pipeline's file, who supervises it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import uvicorn

from barnabas.pipeline.serving.http.service import application
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import KEEP_HORIZONS, Limits, StoreError

PARENT_CHECKED_EVERY_S = 1.0
GRACE_S = 10


@dataclass(frozen=True, slots=True)
class Settings:
    """`store` and `token` may hold secrets: they are not shown."""

    store: str = field(repr=False)
    name: str
    folder: Path
    token: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8088
    keep_horizons: int = KEEP_HORIZONS
    ready: Path | None = None
    parent: int = 0  # ends when this process is not the parent, or never was; 0: it does not
    limits: Limits = field(default_factory=Limits)


class Server(uvicorn.Server):
    """Uvicorn that tells when it listens, and that ends without raising the signal that ended it."""

    def __init__(self, config: uvicorn.Config, url: str, ready: Path | None) -> None:
        super().__init__(config)
        self._url = url
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        if self._ready is not None:
            partial = self._ready.with_suffix(".partial")
            partial.write_text(json.dumps({"url": self._url, "pid": os.getpid()}))
            partial.replace(self._ready)
        print(f"serving views on {self._url}", flush=True)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        def stop(number: int, frame: FrameType | None) -> None:
            self.should_exit = True

        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def serve(settings: Settings) -> int:
    """Runs until it is told to stop (SIGTERM, SIGINT). 0: ended in order; 2: could not begin, with one line
    why."""
    try:
        listener = listening(settings.host, settings.port)
    except OSError as problem:
        print(
            f"cannot listen on {settings.host}:{settings.port}: {problem.strerror or problem}",
            file=sys.stderr,
        )
        return 2
    try:
        store = open_store(
            settings.store,
            name=settings.name,
            folder=settings.folder,
            keep_horizons=settings.keep_horizons,
            limits=settings.limits,
        )
    except StoreError as problem:
        listener.close()
        print(problem, file=sys.stderr)
        return 2
    config = uvicorn.Config(
        application(store, settings.token),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
        lifespan="off",
        server_header=False,
    )
    server = Server(config, url_of(listener), settings.ready)
    if settings.parent:
        threading.Thread(target=watch_parent, args=(server, settings.parent), daemon=True).start()
    try:
        server.run(sockets=[listener])
    finally:
        store.close()
        if settings.ready is not None:
            settings.ready.unlink(missing_ok=True)
    return 0


def listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError:
        listener.close()
        raise
    return listener


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def watch_parent(server: uvicorn.Server, parent: int) -> None:
    """A supervisor that was killed leaves nothing behind that holds the store."""
    nothing = threading.Event()
    while not nothing.wait(PARENT_CHECKED_EVERY_S):
        if os.getppid() != parent:
            server.should_exit = True
            return
