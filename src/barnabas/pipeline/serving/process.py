"""The serving process: opens the store, listens, reports that it is ready, and stops cleanly.

In: `Settings`. Out: an exit code. The ready file has the URL as soon as requests are answered.
Does not know: the pipeline's file, the supervisor.
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

from barnabas.pipeline.serving.http.gate import Gate, Guests
from barnabas.pipeline.serving.http.service import application
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import KEEP_HORIZONS, Limits, StoreError
from barnabas.pipeline.spec.exposure import why_closed

PARENT_CHECKED_EVERY_S = 1.0
GRACE_S = 10


@dataclass(frozen=True, slots=True)
class Settings:
    """`store` and `token` may hold secrets, so they are not in the repr."""

    store: str = field(repr=False)
    name: str
    folder: Path
    token: str = field(repr=False)
    host: str = "127.0.0.1"
    port: int = 8088
    keep_horizons: int = KEEP_HORIZONS
    ready: Path | None = None
    parent: int = 0  # the process stops when its parent is another one; 0: never
    limits: Limits = field(default_factory=Limits)
    guests: Guests = field(default_factory=Guests)
    certificate: Path | None = None  # PEM files: with both, the service speaks TLS
    private_key: Path | None = None
    plaintext: bool = False  # something in front of the service does TLS

    @property
    def has_tls(self) -> bool:
        return self.certificate is not None and self.private_key is not None


class Server(uvicorn.Server):
    """Uvicorn that writes the ready file, and does not raise the signal again that stopped it."""

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
    """Serve until SIGTERM or SIGINT. 0: stopped cleanly; 2: could not start, the reason is on stderr."""
    closed = why_closed(
        settings.host,
        is_guarded=not settings.guests.everybody,
        has_tls=settings.has_tls or settings.plaintext,
    )
    if closed is not None:
        print(f"cannot listen on {settings.host}:{settings.port}: {closed}", file=sys.stderr)
        return 2
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
        Gate(application(store, settings.token), settings.guests),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=GRACE_S,
        lifespan="off",
        server_header=False,
        ssl_certfile=settings.certificate if settings.has_tls else None,
        ssl_keyfile=settings.private_key if settings.has_tls else None,
    )
    try:
        config.load()
    except (OSError, ValueError) as problem:  # unreadable or wrong certificate and key
        listener.close()
        store.close()
        print(f"serving.certificate and serving.private_key cannot be used: {problem}", file=sys.stderr)
        return 2
    server = Server(config, url_of(listener, has_tls=settings.has_tls), settings.ready)
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


def url_of(listener: socket.socket, *, has_tls: bool = False) -> str:
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if has_tls else 'http'}://{shown}:{port}"


def watch_parent(server: uvicorn.Server, parent: int) -> None:
    """Stop the server when the supervisor is gone, so that the store is free again."""
    nothing = threading.Event()
    while not nothing.wait(PARENT_CHECKED_EVERY_S):
        if os.getppid() != parent:
            server.should_exit = True
            return
