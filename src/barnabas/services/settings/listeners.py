"""Listeners of a service: URLs with http or https.

In: the texts of `listeners`. Out: `Listener`s, or SettingsError that names the wrong one.
Does not know: sockets, TLS.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from barnabas.settings.errors import SettingsError

SCHEMES = ("http", "https")
DEFAULT_PORTS = {"http": 80, "https": 443}
LOOPBACK = ("localhost", "127.", "::1")


class Listener(NamedTuple):
    scheme: str
    host: str
    port: int  # 0: any that is free

    @property
    def has_tls(self) -> bool:
        return self.scheme == "https"

    @property
    def is_loopback(self) -> bool:
        return self.host.startswith(LOOPBACK)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def parse_listeners(name: str, texts: Iterable[str]) -> tuple[Listener, ...]:
    found: list[Listener] = []
    for text in texts:
        listener = parse_listener(name, text)
        if any(each.port == listener.port != 0 and each.host == listener.host for each in found):
            raise SettingsError(f"{name}: two listeners have the address {listener.host}:{listener.port}")
        found.append(listener)
    if not found:
        raise SettingsError(f"{name} names no listener", name=name, allowed="http://0.0.0.0:8081")
    return tuple(found)


def parse_listener(name: str, text: str) -> Listener:
    parts = urlsplit(text if "://" in text else f"http://{text}")
    scheme = parts.scheme.lower()
    if scheme not in SCHEMES:
        raise SettingsError(
            f"{name}: {text} has the scheme {parts.scheme}", name=name, allowed="http and https"
        )
    try:
        port = parts.port
    except ValueError:
        raise SettingsError(f"{name}: the port of {text} is no number from 0 to 65535", name=name) from None
    if parts.path.strip("/") or parts.query or parts.username:
        raise SettingsError(f"{name}: {text} has more than a scheme, a host and a port", name=name)
    return Listener(scheme, parts.hostname or "0.0.0.0", DEFAULT_PORTS[scheme] if port is None else port)
