"""The quota that applies to a client: Kafka's eight levels, from (user, client id) to the default client id.

In: limits of one kind by entity, from the metadata. Out: for a user and client id, the limit and the group of
connections that share it: those of a user, of a client id, or of one client id of a user.
Does not know: what is limited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

USER, CLIENT_ID, IP = "user", "client-id", "ip"
Entity = tuple[tuple[str, str | None], ...]  # sorted by type; None is the default entity
Shared = tuple[str, str]  # user and client id that share a limit; "" means any


class Limit(NamedTuple):
    shared_by: Shared
    bound: float


class Levels:
    __slots__ = ("_bounds",)

    def __init__(self, bounds: Mapping[Entity, float]) -> None:
        self._bounds = dict(bounds)

    @classmethod
    def of(cls, by_entity: Mapping[Entity, Mapping[str, float]], kind: str) -> Levels | None:
        """The limits of one kind (`producer_byte_rate`, ...); None if there are none."""
        bounds = {entity: values[kind] for entity, values in by_entity.items() if kind in values}
        return cls(bounds) if bounds else None

    def limit(self, user: str, client_id: str) -> Limit | None:
        """The most specific limit. Limits of a user have priority over limits of a client id."""
        both, user_only, client_only = (user, client_id), (user, ""), ("", client_id)
        for entity, shared_by in (
            (((CLIENT_ID, client_id), (USER, user)), both),
            (((CLIENT_ID, None), (USER, user)), both),
            (((USER, user),), user_only),
            (((CLIENT_ID, client_id), (USER, None)), both),
            (((CLIENT_ID, None), (USER, None)), both),
            (((USER, None),), user_only),
            (((CLIENT_ID, client_id),), client_only),
            (((CLIENT_ID, None),), client_only),
        ):
            bound = self._bounds.get(entity)
            if bound is not None:
                return Limit(shared_by, bound)
        return None

    def address(self, host: str) -> float | None:
        """The limit of an address, or the default for addresses."""
        bound = self._bounds.get(((IP, host),))
        return bound if bound is not None else self._bounds.get(((IP, None),))

    def with_addresses(self, addresses: Mapping[str, str]) -> Levels:
        """A copy in which limits of host names also apply to their addresses."""
        bounds = dict(self._bounds)
        for address, host in addresses.items():
            bounds.setdefault(((IP, address),), self._bounds[((IP, host),)])
        return Levels(bounds)

    def hosts(self) -> list[str]:
        """The addresses and host names that have their own limit."""
        return [entity[0][1] for entity in self._bounds if entity[0][0] == IP and entity[0][1] is not None]
