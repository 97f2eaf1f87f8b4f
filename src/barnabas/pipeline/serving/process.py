"""The serving process: opens the store, listens, reports that it is ready, and stops cleanly.

In: `Settings`. Out: an exit code. The ready file has the URL as soon as requests are answered.
Does not know: the pipeline's file, the supervisor.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from barnabas.pipeline.lake.tables import Lake
from barnabas.pipeline.serving.http.guests import Guests, ServingGuard
from barnabas.pipeline.serving.http.service import serving_service
from barnabas.pipeline.serving.store.opening import open_store
from barnabas.pipeline.serving.store.port import KEEP_HORIZONS, Limits, Store, StoreError
from barnabas.pipeline.spec.exposure import why_closed
from barnabas.pipeline.views.part_files import LakeParts
from barnabas.security.tls.contexts import ServerTls, server_tls, tls_settings
from barnabas.services.app import ServiceApp
from barnabas.services.hosting.binding import Bound, ListenError, bind
from barnabas.services.hosting.host import Host, HostSettings
from barnabas.services.hosting.process import run, stop_on_signals, stop_with_parent
from barnabas.services.settings.listeners import Listener

GRACE_S = 10.0


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
    lake: str = ""  # where files of parts lie
    lake_settings: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def has_tls(self) -> bool:
        return self.certificate is not None and self.private_key is not None


def serve(settings: Settings) -> int:
    """Serve until SIGTERM or SIGINT. 0: stopped cleanly; 2: could not start, the reason is on stderr."""
    closed = why_closed(
        settings.host,
        is_guarded=not settings.guests.is_open,
        has_tls=settings.has_tls or settings.plaintext,
    )
    if closed is not None:
        return refused(f"cannot listen on {settings.host}:{settings.port}: {closed}")
    try:
        tls = tls_of(settings)
    except (OSError, ValueError) as problem:  # unreadable or wrong certificate and key
        return refused(f"serving.certificate and serving.private_key cannot be used: {problem}")
    scheme = "http" if tls is None else "https"
    try:
        bound = bind([Listener(scheme, settings.host, settings.port)], tls)
    except ListenError as problem:
        return refused(f"cannot listen on {settings.host}:{settings.port}: {problem.reason}")
    try:
        store = open_store(
            settings.store,
            name=settings.name,
            folder=settings.folder,
            keep_horizons=settings.keep_horizons,
            limits=settings.limits,
            lake=LakeParts(Lake(settings.lake), settings.lake_settings) if settings.lake else None,
        )
    except StoreError as problem:
        bound[0].socket.close()
        return refused(str(problem))
    try:
        run(host(settings, store, bound))
    finally:
        if settings.ready is not None:
            settings.ready.unlink(missing_ok=True)
    return 0


def refused(reason: str) -> int:
    print(reason, file=sys.stderr)
    return 2


async def host(settings: Settings, store: Store, bound: tuple[Bound, ...]) -> None:
    service = serving_service(store)
    application = ServiceApp(service, ServingGuard(settings.guests, settings.token))
    running = Host(service, application, bound, HostSettings(grace_s=GRACE_S))
    stop_on_signals(running, service.name)
    if settings.parent:
        stop_with_parent(running, settings.parent)
    url = str(bound[0].listener)

    def ready() -> None:
        if settings.ready is not None:
            partial = settings.ready.with_suffix(".partial")
            partial.write_text(json.dumps({"url": url, "pid": os.getpid()}))
            partial.replace(settings.ready)
        print(f"serving views on {url}", flush=True)

    await running.run(ready)


def tls_of(settings: Settings) -> ServerTls | None:
    """The TLS of the listener; None without a certificate and its key."""
    if settings.certificate is None or settings.private_key is None:
        return None
    given = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": settings.certificate.read_text(),
        "ssl.keystore.key": settings.private_key.read_text(),
    }
    return server_tls(tls_settings(given.get))
