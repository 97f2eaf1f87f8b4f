"""The controller quorum's addresses: voters `id@host:port` and bootstrap servers `host:port`.

In: entries of `controller.quorum.voters` and `controller.quorum.bootstrap.servers`. Out: `Voter`, `Address`.
Does not know: the current voters (see `raft`), name resolution.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.settings.errors import SettingsError

VOTERS = "controller.quorum.voters"
BOOTSTRAP_SERVERS = "controller.quorum.bootstrap.servers"
ADDRESS = r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]+)\]?:([0-9]+)"
VOTER_FORM = "Each entry should be in the form `{id}@{host}:{port}`."


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Voter:
    id: int
    address: Address


def parse_address(text: str) -> Address | None:
    match = re.fullmatch(ADDRESS, text)
    if match is None or int(match[2]) > 65535:
        return None
    return Address(match[1], int(match[2]))


def parse_voters(entries: Iterable[str]) -> tuple[Voter, ...]:
    """Parse voters, sorted by id. The last entry of a repeated id counts."""
    found: dict[int, Voter] = {}
    for entry in entries:
        parts = entry.split("@")
        if len(parts) != 2:
            raise SettingsError(
                f"Invalid configuration value for {VOTERS}: {entry}. {VOTER_FORM}", name=VOTERS
            )
        if not parts[0].isdecimal():
            raise SettingsError(
                f"Failed to parse voter ID as an integer from {parts[0]} for the configuration {VOTERS}. "
                f"{VOTER_FORM}",
                name=VOTERS,
            )
        address = parse_address(parts[1])
        if address is None:
            raise SettingsError(
                f"Failed to parse host name from entry {entry} for the configuration {VOTERS}. {VOTER_FORM}",
                name=VOTERS,
            )
        found[int(parts[0])] = Voter(int(parts[0]), address)
    return tuple(found[voter_id] for voter_id in sorted(found))


def parse_bootstrap_servers(entries: Iterable[str]) -> tuple[Address, ...]:
    result = []
    for entry in entries:
        address = parse_address(entry)
        if address is None:
            raise SettingsError(
                f"Failed to parse host name from {entry} for the configuration {BOOTSTRAP_SERVERS}. "
                'Each entry should be in the form "{host}:{port}"',
                name=BOOTSTRAP_SERVERS,
            )
        result.append(address)
    return tuple(result)
