"""The listeners of a node as its registration with the controller names them.

In: the end points, and the type of the entries: brokers and controllers have one each, with the same fields.
Out: the entries. Does not know: what else a registration holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from barnabas.settings.listeners import SECURITY_PROTOCOLS, EndPoint

Entry = TypeVar("Entry")


def listener_entries(make: Callable[..., Entry], end_points: Iterable[EndPoint]) -> list[Entry]:
    return [
        make(
            name=end_point.name,
            host=end_point.host,
            port=end_point.port,
            security_protocol=SECURITY_PROTOCOLS.index(end_point.security_protocol),
        )
        for end_point in end_points
    ]
