"""The principal: the authenticated name behind a connection. ACLs, quotas and audit lines use it."""

from __future__ import annotations

from typing import NamedTuple

USER = "User"


class Principal(NamedTuple):
    name: str
    type: str = USER
    is_token: bool = False  # logged in with a delegation token of this owner

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal("ANONYMOUS")  # a connection without authentication


def parse_principal(text: str) -> Principal:
    """The principal of `Type:name`. ValueError if the text has another form."""
    kind, colon, name = text.partition(":")
    if not colon or not kind:
        raise ValueError(f"expected a principal of the form Type:name, not {text!r}")
    return Principal(name, kind)
