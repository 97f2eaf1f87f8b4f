"""Rights of callers: roles that let them in, and roles that bound their requests.

In: roles of settings. Out: nothing, or ApiError 403. Does not know: how roles are proven.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.services.caller import Caller
from barnabas.services.errors import ApiError
from barnabas.services.routes import Need

EVERYBODY = "*"
RANKS = {Need.READ: 1, Need.WRITE: 2, Need.ADMIN: 3}


class Rights:
    """Without roles for reading, writing and administering, every caller that is let in may do everything."""

    def __init__(
        self,
        let_in: Iterable[str] = (EVERYBODY,),
        read: Iterable[str] = (),
        write: Iterable[str] = (),
        admin: Iterable[str] = (),
    ) -> None:
        self._let_in = frozenset(let_in)
        self._ranks: dict[str, int] = {}
        for need, roles in ((Need.READ, read), (Need.WRITE, write), (Need.ADMIN, admin)):
            for role in roles:
                self._ranks[role] = max(RANKS[need], self._ranks.get(role, 0))

    @property
    def is_bounded(self) -> bool:
        return bool(self._ranks) or EVERYBODY not in self._let_in

    def check(self, caller: Caller, need: Need) -> None:
        name = caller.principal.name
        if EVERYBODY not in self._let_in and not caller.roles & self._let_in:
            raise ApiError(403, 403, f"{name} has none of the roles {', '.join(sorted(self._let_in))}")
        if not self._ranks:
            return
        rank = max((self._ranks.get(role, 0) for role in caller.roles), default=0)
        rank = max(rank, self._ranks.get(EVERYBODY, 0))
        if rank < RANKS[need]:
            raise ApiError(403, 403, f"{name} has no role with the right to {need} here")
