"""On which addresses a service of a pipeline may listen.

In: the address, whether clients must say who they are, whether the service speaks TLS. Out: None, or why not.
"""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def why_closed(host: str, *, is_guarded: bool, has_tls: bool) -> str | None:
    """Why a service must not listen on an address; None if it may."""
    if is_loopback(host):
        return None
    if not is_guarded:
        return f"{host} is no loopback address, and anybody could ask: give serving.tokens or serving.users"
    if not has_tls:
        return (
            f"{host} is no loopback address, and tokens and rows would travel readable: give "
            "serving.certificate and serving.private_key, or serving.plaintext: true if TLS ends before"
        )
    return None
