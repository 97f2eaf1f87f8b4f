"""A node of the registry as the others see it: its URL, and whether it may be the primary.

In: the JSON that members of the group exchange. Out: identities and elections, and their JSON with the fields
that other registries write. Pure. Does not know: the group, HTTP.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

VERSION = 1
NO_ERROR, DUPLICATE_URLS = 0, 1
HOST_LENGTH_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Identity:
    scheme: str
    host: str
    port: int
    is_eligible: bool = True
    is_primary: bool = False  # it was elected last time, and stays if it can

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    def to_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.is_eligible,
            "scheme": self.scheme,
            "leader": self.is_primary,
        }

    def encode(self) -> bytes:
        return compact(self.to_json())


@dataclass(frozen=True, slots=True)
class Election:
    """The assignment that every member of the group gets."""

    member_id: str | None  # of the primary
    primary: Identity | None
    error: int = NO_ERROR

    def encode(self) -> bytes:
        return compact(
            {
                "version": VERSION,
                "error": self.error,
                "master": self.member_id,
                "master_identity": None if self.primary is None else self.primary.to_json(),
            }
        )


NOBODY = Election(None, None)


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def identity_of(data: bytes) -> Identity:
    """The identity in a member's metadata. ValueError if it is none."""
    return identity_from(loaded(data))


def election_of(data: bytes) -> Election:
    """The election in an assignment. ValueError if it is none; an empty one elects nobody."""
    if not data:
        return NOBODY
    value = loaded(data)
    error, member_id, primary = (
        value.get("error", NO_ERROR),
        value.get("master"),
        value.get("master_identity"),
    )
    if not isinstance(error, int) or not (member_id is None or isinstance(member_id, str)):
        raise ValueError("the assignment has another shape")
    return Election(member_id, None if primary is None else identity_from(primary), error)


def identity_from(value: Any) -> Identity:
    if not isinstance(value, dict):
        raise ValueError("the identity of a node is not a JSON object")
    scheme, host, port = value.get("scheme", "http"), value.get("host"), value.get("port")
    if scheme not in ("http", "https"):
        raise ValueError(f"the scheme is {str(scheme)[:20]!r}")
    if not isinstance(host, str) or not 0 < len(host) <= HOST_LENGTH_MAX or not isinstance(port, int):
        raise ValueError("the identity of a node has no host and port")
    is_eligible, is_primary = value.get("master_eligibility", True), value.get("leader", False)
    return Identity(scheme, host, port, is_eligible is True, is_primary is True)


def loaded(data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("the JSON is not an object")
    return value


def elect(members: dict[str, Identity]) -> Election:
    """The primary among members by id: the last one if it is there, else the one with the smallest URL."""
    urls = [identity.url for identity in members.values()]
    if len(set(urls)) < len(urls):
        return Election(None, None, DUPLICATE_URLS)
    eligible = [(identity.url, member_id) for member_id, identity in members.items() if identity.is_eligible]
    sticky = [each for each in eligible if members[each[1]].is_primary]
    if not eligible:
        return NOBODY
    _, chosen = min(sticky or eligible)
    return Election(chosen, replace(members[chosen], is_primary=True))
