"""Listeners: the addresses of a node, its advertised addresses, and their security protocols.

In: the texts of `listeners`, `advertised.listeners`, `listener.security.protocol.map` and similar settings.
Out: `EndPoint` values. An empty host means every interface; the caller resolves it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.settings.errors import SettingsError

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
END_POINT = r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)"
HOST = r"[0-9a-zA-Z\-%._:]*"
PORT_MAX = 65535


@dataclass(frozen=True, slots=True)
class EndPoint:
    name: str
    security_protocol: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_end_points(
    setting: str, entries: Iterable[str], protocols: Mapping[str, str], *, distinct_ports: bool
) -> tuple[EndPoint, ...]:
    """Parse NAME://host:port entries. Names must be unique; a port may occur twice, once IPv4 and once
    IPv6."""
    listed = tuple(entries)
    shown = f"[{', '.join(listed)}]"
    found = tuple(parse_end_point(setting, entry, protocols, shown) for entry in listed)
    names = [end_point.name for end_point in found]
    if len(set(names)) != len(names):
        raise bad_listeners(setting, shown, f"Each listener must have a different name, listeners: {shown}")
    if distinct_ports:
        check_ports(setting, found, shown)
    return found


def parse_end_point(setting: str, entry: str, protocols: Mapping[str, str], shown: str) -> EndPoint:
    match = re.fullmatch(END_POINT, entry)
    if match is None:
        raise bad_listeners(
            setting, shown, f"Unable to parse {entry} to a broker endpoint", "NAME://host:port entries"
        )
    name, host, port = match[1].upper(), match[2], int(match[3])
    if name not in protocols:
        raise bad_listeners(
            setting,
            shown,
            f"No security protocol defined for listener {name}",
            f"names in listener.security.protocol.map: {', '.join(sorted(protocols))}",
        )
    if not 0 <= port <= PORT_MAX:
        raise bad_listeners(setting, shown, f"Port {port} of {entry} is not between 0 and {PORT_MAX}")
    return EndPoint(name, protocols[name], host, port)


def check_ports(setting: str, end_points: tuple[EndPoint, ...], shown: str) -> None:
    for port in {end_point.port for end_point in end_points if end_point.port}:
        hosts = [end_point.host for end_point in end_points if end_point.port == port]
        if len(hosts) == 1:
            continue
        families = sorted(address_family(host) for host in hosts)
        if families == [4, 6]:
            continue
        if families in ([4, 4], [6, 6]):
            problem = (
                "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6"
            )
        elif 0 in families:
            problem = "Each listener must have a different port"
        else:
            problem = (
                "Each listener must have a different port unless exactly one listener has an IPv4 address "
                "and the other IPv6 address"
            )
        raise bad_listeners(setting, shown, f"{problem}, listeners: {shown}, port: {port}")


def address_family(host: str) -> int:
    """4 or 6 for an address, 0 for a name or no host."""
    if ":" in host:
        return 6
    parts = host.split(".")
    if len(parts) == 4 and all(part.isdecimal() and int(part) <= 255 for part in parts):
        return 4
    return 0


def bad_listeners(setting: str, shown: str, problem: str, allowed: str = "") -> SettingsError:
    return SettingsError(
        f"Error creating broker listeners from '{shown}' of {setting}: {problem}",
        name=setting,
        allowed=allowed,
    )


def parse_map(setting: str, text: str) -> dict[str, str]:
    """Parse `key:value` entries, separated by commas. The last colon separates, so that keys may be
    addresses."""
    result: dict[str, str] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        key, colon, value = entry.rpartition(":")
        if not colon:
            raise SettingsError(
                f"Error parsing configuration property '{setting}': {entry} has no ':'",
                name=setting,
                allowed="key:value entries, separated by commas",
            )
        result[key.strip()] = value.strip()
    return result


def parse_protocol_map(setting: str, text: str) -> dict[str, str]:
    """Security protocols by listener name, both in capitals."""
    result: dict[str, str] = {}
    for name, protocol in parse_map(setting, text).items():
        if protocol.upper() not in SECURITY_PROTOCOLS:
            raise SettingsError(
                f"Invalid security protocol `{protocol}` defined in {setting}",
                name=setting,
                allowed=", ".join(SECURITY_PROTOCOLS),
            )
        result[name.upper()] = protocol.upper()
    return result


def parse_connection_overrides(setting: str, text: str) -> dict[str, int]:
    """Connection limits by address."""
    result: dict[str, int] = {}
    for host, limit in parse_map(setting, text).items():
        if not limit.isdecimal():
            raise SettingsError(
                f"Invalid value {text} for configuration {setting}: {limit} is not a number",
                name=setting,
                allowed="address:count entries, separated by commas",
            )
        if not re.fullmatch(HOST, host):
            raise SettingsError(f"{setting} contains invalid addresses : {host}", name=setting)
        result[host] = int(limit)
    return result
