"""Media types: which one a body has, and which one the response gets.

In: the headers Content-Type and Accept, the types that a service knows. Out: a media type, or ApiError (415,
406). Weights count, and the more exact range of a type; among equals the order of the service decides.
Does not know: bodies.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from barnabas.services.errors import ApiError

HEADER_LENGTH_MAX = 4096
RANGES_MAX = 64


class Range(NamedTuple):
    kind: str
    subtype: str
    weight: float
    order: int

    def fits(self, media_type: str) -> int:
        """How exactly: 0 not at all, 1 by */*, 2 by its kind, 3 whole."""
        kind, _, subtype = media_type.partition("/")
        if self.kind == "*":
            return 1
        if self.kind != kind:
            return 0
        return 2 if self.subtype == "*" else 3 * (self.subtype == subtype)


def content_type(header: str | None, allowed: tuple[str, ...], default: str | None = None) -> str:
    """The media type of a body, without parameters. No header means `default`, if there is one."""
    if not header:
        if default is not None:
            return default
        raise unsupported("a body without Content-Type", allowed)
    found = header.partition(";")[0].strip().lower()
    if found not in allowed:
        raise unsupported(f"Content-Type {found[:100]!r}", allowed)
    return found


def unsupported(given: str, allowed: tuple[str, ...]) -> ApiError:
    return ApiError(
        415, 415, f"HTTP 415 Unsupported Media Type: {given} is not taken; send {' or '.join(allowed)}"
    )


@lru_cache(maxsize=1024)
def chosen(accept: str | None, offered: tuple[str, ...]) -> str | None:
    """The type of `offered` that the client likes most; None if it accepts none of them."""
    if not accept or not accept.strip():
        return offered[0]
    ranges = parsed(accept)
    best, best_weight = None, 0.0
    for media_type in offered:
        fitting = max(((each.fits(media_type), each.weight) for each in ranges), default=(0, 0.0))
        weight = fitting[1] if fitting[0] else 0.0
        if weight > best_weight:
            best, best_weight = media_type, weight
    return best


def accepted(accept: str | None, offered: tuple[str, ...]) -> str:
    """The type of the response. ApiError 406 if the client accepts none."""
    found = chosen(accept if accept is None else accept[:HEADER_LENGTH_MAX], offered)
    if found is None:
        raise ApiError(406, 406, f"HTTP 406 Not Acceptable: the response is {' or '.join(offered)}")
    return found


def parsed(accept: str) -> list[Range]:
    """The ranges of an Accept header. Parts that are none are left out."""
    found = []
    for order, part in enumerate(accept.lower().split(",")[:RANGES_MAX]):
        name, *parameters = (each.strip() for each in part.split(";"))
        kind, slash, subtype = name.partition("/")
        if name == "*":  # Java's URLConnection sends it
            kind, slash, subtype = "*", "/", "*"
        if not slash or not kind or not subtype:
            continue
        found.append(Range(kind, subtype, weight_of(parameters), order))
    return found


def weight_of(parameters: list[str]) -> float:
    for each in parameters:
        name, _, value = each.partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0
