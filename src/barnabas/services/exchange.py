"""One request and its response, as the parts of the frame share them.

In: notes of each part. Out: the same notes for the others: metrics, the access log, the error form.
Does not know: HTTP's bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.types import Scope

KEY = "barnabas.exchange"
UNMATCHED = "unmatched"


class Exchange:
    """Lives in the scope of its request."""

    __slots__ = (
        "body_arrived", "bytes_received", "bytes_sent", "caller", "extend", "spend", "status", "template",
    )  # fmt: skip

    def __init__(self) -> None:
        self.template = UNMATCHED  # the path of the route, with the names of its parameters
        self.status = 0  # 0: no response began
        self.bytes_received = 0
        self.bytes_sent = 0
        self.body_arrived = False
        self.caller: Any = None  # a `Caller`, once it is known
        # Counts bytes of the body against the caller's rate; returns how many seconds to wait.
        self.spend: Callable[[int], float] | None = None
        # Gives the request so many seconds more, for one that waits because its caller asked for that.
        self.extend: Callable[[float], None] | None = None

    @property
    def has_begun(self) -> bool:
        return self.status != 0


def exchange_of(scope: Scope) -> Exchange:
    """The exchange of this scope. A scope that did not pass the frame gets a new one."""
    found: Exchange | None = scope.get(KEY)
    if found is None:
        found = scope[KEY] = Exchange()
    return found
