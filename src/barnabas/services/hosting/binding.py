"""Sockets and TLS of a service's listeners.

In: `ServiceSettings`. Out: sockets that are bound and not yet listening, each with its TLS. ListenError says
which listener failed and why. Does not know: HTTP.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from barnabas.security.tls.contexts import ServerTls, server_tls, tls_settings
from barnabas.services.callers.building import client_auth
from barnabas.services.settings.listeners import Listener
from barnabas.services.settings.service_settings import ServiceSettings
from barnabas.settings.values import Password


class ListenError(Exception):
    """A listener cannot be opened; the text is for the operator."""

    def __init__(self, listener: Listener, reason: str) -> None:
        super().__init__(f"cannot listen on {listener}: {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Bound:
    listener: Listener  # with the port that it got
    socket: socket.socket
    tls: ServerTls | None
    is_beside: bool = False  # serves only `Service.beside`


def bind_all(settings: ServiceSettings) -> tuple[Bound, ...]:
    """The listeners of a service, and those beside."""
    found = bind(settings.listeners, listener_tls(settings))
    if settings.beside is None:
        return found
    try:
        return (*found, *bind(settings.beside.listeners, listener_tls(settings.beside), is_beside=True))
    except BaseException:
        close_all(found)
        raise


def bind(
    listeners: Iterable[Listener], tls: ServerTls | None, *, is_beside: bool = False
) -> tuple[Bound, ...]:
    found: list[Bound] = []
    try:
        for listener in listeners:
            opened = bound_socket(listener)
            at = listener._replace(port=opened.getsockname()[1])
            found.append(Bound(at, opened, tls if listener.has_tls else None, is_beside))
    except ListenError:
        close_all(found)
        raise
    return tuple(found)


def close_all(bound: Iterable[Bound]) -> None:
    for each in bound:
        each.socket.close()


def bound_socket(listener: Listener) -> socket.socket:
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    # asyncio turns Nagle's algorithm off only for sockets that say TCP; with it, responses take 40 ms more.
    opened = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind((listener.host, listener.port))
        opened.setblocking(False)
    except OSError as error:
        opened.close()
        raise ListenError(listener, error.strerror or str(error)) from None
    return opened


def listener_tls(settings: ServiceSettings) -> ServerTls | None:
    """The TLS of listeners with https; None if there are none. SecuritySettingsError."""
    if not any(each.has_tls for each in settings.listeners):
        return None

    def value(name: str) -> Any:
        if name == "ssl.client.auth":
            return client_auth(settings) or "none"
        if not settings.knows(name):
            return None
        found = settings[name]
        return found.value if isinstance(found, Password) else found

    return server_tls(tls_settings(value))


def store_files(settings: ServiceSettings) -> list[str]:
    """The files that `listener_tls` reads."""
    if not any(each.has_tls for each in settings.listeners):
        return []
    names = ("ssl.keystore.location", "ssl.truststore.location")
    return [settings[name] for name in names if settings[name]]
