"""Credentials of a request: the Authorization header, taken apart.

In: the header's text. Out: `Basic` or `Bearer`, or None for anything else. Does not know: whether they hold.
"""

from __future__ import annotations

import base64
import binascii
from typing import NamedTuple

HEADER_LENGTH_MAX = 64 * 1024


class Basic(NamedTuple):
    name: str
    password: str


class Bearer(NamedTuple):
    token: str


def parse_authorization(header: str) -> Basic | Bearer | None:
    if len(header) > HEADER_LENGTH_MAX:
        return None
    kind, _, rest = header.partition(" ")
    if kind.lower() == "bearer":
        return Bearer(rest.strip())
    if kind.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(rest.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return Basic(name, password) if colon and name else None
