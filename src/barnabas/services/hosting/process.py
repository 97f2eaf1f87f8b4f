"""A service as a process: its settings, the log, signals, the exit status.

In: the name of a service, its settings. Out: 0 after a graceful stop (SIGTERM, SIGINT), 1 with one line on
standard error when it cannot start. A second signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from barnabas.client.core.errors import ClientError
from barnabas.protocol import KafkaError
from barnabas.runtime import descriptors, garbage
from barnabas.security.errors import AuthenticationFailed, SecuritySettingsError
from barnabas.services.app import Service, ServiceApp
from barnabas.services.callers.building import guard_of
from barnabas.services.hosting.binding import (
    Bound,
    ListenError,
    bind_all,
    close_all,
    listener_tls,
    store_files,
)
from barnabas.services.hosting.connections import ConnectionLimits
from barnabas.services.hosting.host import Host, HostSettings
from barnabas.services.hosting.tls_reload import TlsReload
from barnabas.services.limits import Limits
from barnabas.services.settings.listeners import Listener
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings import SettingsError

PARENT_CHECKED_EVERY_S = 1.0
DESCRIPTORS_RESERVED = 256  # for connections to brokers, files and the rest of the process
MakeService = Callable[[ServiceSettings], Service]
Ready = Callable[[tuple[Listener, ...]], None]

START_ERRORS = (
    SettingsError,
    SecuritySettingsError,
    AuthenticationFailed,
    ListenError,
    KafkaError,
    ClientError,
    TimeoutError,
)

MAKERS = {
    "alerts": "barnabas.monitor.alert_service.service",
    "audit": "barnabas.audit.report.service",
    "lag": "barnabas.monitor.lag_service.from_settings",
    "rest": "barnabas.rest.application.from_settings",
    "sql": "barnabas.sql.server.service",
}

log = logging.getLogger("barnabas.services")


def service_maker(name: str) -> MakeService:
    """`service(settings)` of the module that makes the service."""
    made: MakeService = import_module(MAKERS.get(name, f"barnabas.{name}.service")).service
    return made


def main(
    settings: ServiceSettings,
    make: MakeService | None = None,
    *,
    on_ready: Ready | None = None,
    log_level: str = "INFO",
    parent: int = 0,
) -> int:
    """Run a service until a signal stops it, or its parent process is gone (0: it has none)."""
    logging.basicConfig(
        stream=sys.stderr,
        level=log_level,
        format="[%(asctime)s,%(msecs)03d] %(levelname)s %(message)s (%(name)s)",
        datefmt="%Y-%m-%d %H:%M:%S",
    )
    log_without_origins()
    for warning in settings.warnings:
        log.warning("%s", warning)
    garbage.collect_rarely()
    descriptors.raise_limit()
    try:
        run(serve(settings, make or service_maker(settings.service), on_ready, parent))
    except START_ERRORS as error:
        print(f"barnabas {settings.service}: {error or type(error).__name__}", file=sys.stderr)
        return 1
    return 0


def log_without_origins() -> None:
    """Log lines name no threads, processes and lines of code, so the access log need not look for them."""
    logging._srcfile = None  # as Python's logging HOWTO says
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False


def run(coroutine: Coroutine[Any, Any, None]) -> None:
    """Use uvloop if it is installed; the standard loop is slower."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(coroutine)
    else:
        uvloop.run(coroutine)


async def serve(
    settings: ServiceSettings, make: MakeService, on_ready: Ready | None = None, parent: int = 0
) -> None:
    bound = bind_all(settings)
    listeners = tuple(each.listener for each in bound if not each.is_beside)
    try:
        host = host_of(settings.listening_on(listeners), make, bound)
    except BaseException:
        close_all(bound)
        raise
    stop_on_signals(host, settings.service)
    if parent:
        stop_with_parent(host, parent)

    def ready() -> None:
        everywhere = ", ".join(str(each.listener) for each in bound)
        log.info("the service %s is ready at %s", settings.service, everywhere)
        garbage.freeze_startup_objects()
        if on_ready is not None:
            on_ready(listeners)

    reloads = tls_reloads(settings, host)
    for each in reloads:
        each.start()
    try:
        await host.run(ready)
    finally:
        for each in reloads:
            each.stop()
    log.info("the service %s has stopped", settings.service)


def tls_reloads(settings: ServiceSettings, host: Host) -> list[TlsReload]:
    """Reload the stores of the listeners, and those of the listeners beside, which may be others."""
    found = [TlsReload(store_files(settings), lambda: listener_tls(settings), host.replace_tls)]
    beside = settings.beside
    if beside is not None:
        renew = partial(host.replace_tls, is_beside=True)
        found.append(TlsReload(store_files(beside), lambda: listener_tls(beside), renew))
    return found


def host_of(settings: ServiceSettings, make: MakeService, bound: tuple[Bound, ...]) -> Host:
    """The service with everything around it that its settings ask for."""
    guard = guard_of(settings)
    service = make(settings)
    service.limits = limits_of(settings)
    if not settings["barnabas.http.access.log"]:
        logging.getLogger(f"barnabas.{service.name}.access").setLevel(logging.WARNING)
    if guard is None:
        warn_about_open(settings.service, [each.listener for each in bound])
    application = with_origins(ServiceApp(service, guard), settings)
    beside = with_origins(ServiceApp(replace(service, routes=service.beside), guard), settings)
    return Host(service, application, bound, host_settings(settings), beside)


def limits_of(settings: ServiceSettings) -> Limits:
    return Limits(
        body_bytes_max=settings["barnabas.http.body.bytes.max"],
        bodies_bytes_max=settings["barnabas.http.bodies.bytes.max"],
        request_s_max=settings["barnabas.http.request.timeout.ms"] / 1000,
        requests_max=settings["barnabas.http.requests.max"],
        streams_max=settings["barnabas.http.streams.max"],
        stall_s_max=settings["barnabas.http.stall.timeout.ms"] / 1000,
    )


def host_settings(settings: ServiceSettings) -> HostSettings:
    room = max(descriptors.open_files_max() - DESCRIPTORS_RESERVED, DESCRIPTORS_RESERVED)
    wanted = settings["server.connection.limit"] or room
    return HostSettings(
        ConnectionLimits(
            connections_max=min(wanted, room),
            header_bytes_max=settings["max.request.header.size"],
            header_s_max=settings["barnabas.http.header.timeout.ms"] / 1000,
            stall_s_max=settings["barnabas.http.stall.timeout.ms"] / 1000,
        ),
        idle_s_max=settings["idle.timeout.ms"] / 1000,
        grace_s=settings["shutdown.graceful.ms"] / 1000,
    )


def with_origins(application: ASGIApp, settings: ServiceSettings) -> ASGIApp:
    """Let scripts of other origins ask, where a setting says so."""
    origins = settings["access.control.allow.origin"]
    if not origins:
        return application
    return CORSMiddleware(
        application,
        allow_origins=origins,
        allow_methods=settings["access.control.allow.methods"] or ("GET", "POST", "HEAD"),
        allow_headers=settings["access.control.allow.headers"] or ("*",),
    )


def warn_about_open(service: str, listeners: Iterable[Listener]) -> None:
    reachable = [str(each) for each in listeners if not each.is_loopback]
    if reachable:
        log.warning(
            "everybody who reaches %s may use the service %s: set authentication.method to ask for names",
            ", ".join(reachable),
            service,
        )


def stop_on_signals(host: Host, service: str) -> None:
    if threading.current_thread() is not threading.main_thread():
        return
    told: list[int] = []

    def stop(number: int) -> None:
        if told:
            os._exit(128 + number)
        told.append(number)
        log.info("the service %s stops on %s", service, signal.Signals(number).name)
        host.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)


def stop_with_parent(host: Host, parent: int) -> None:
    """Stop when the process that started this one is gone."""

    def look() -> None:
        if os.getppid() == parent:
            loop.call_later(PARENT_CHECKED_EVERY_S, look)
            return
        log.warning("the process %d is gone, which started this service: stopping", parent)
        host.stop()

    loop = asyncio.get_running_loop()
    loop.call_later(PARENT_CHECKED_EVERY_S, look)
