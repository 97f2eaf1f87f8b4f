"""Addresses of brokers: host and port, and the comma separated list that every client starts from.

In: text such as `host1:9092,[::1]:9093`. Out: addresses, or a ValueError that names the wrong part.
Does not know: name resolution, connections.
"""

from typing import NamedTuple

PORT_MAX = 65_535


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """`host:port`, with an IPv6 host in brackets."""
    host, colon, port = text.strip().rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"{text.strip()!r}: an IPv6 host is written in brackets, as in [::1]:9092")
    if not colon or not host:
        raise ValueError(f"{text.strip()!r} is not host:port, as in localhost:9092")
    if not (port.isascii() and port.isdigit()) or not 0 < int(port) <= PORT_MAX:
        raise ValueError(f"{text.strip()!r}: the port must be a number from 1 to {PORT_MAX}")
    return Address(host, int(port))


def parse_bootstrap(text: str) -> list[Address]:
    """The list of `--bootstrap-server` and `bootstrap.servers`; empty parts are skipped as Kafka does."""
    addresses = [parse_address(part) for part in text.split(",") if part.strip()]
    if not addresses:
        raise ValueError("no bootstrap server is named: give host:port, as in localhost:9092")
    return addresses
