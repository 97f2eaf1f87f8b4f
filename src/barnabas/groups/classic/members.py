"""The members of a classic group by id, in the order of joining.

Most groups have one member, and a dict for one takes four times the memory of this object. So a single member
is stored without a dict.
Does not know: what a member is, beyond its id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, MutableMapping
from typing import Any

from barnabas.groups.classic.member import ClassicMember


class Members(MutableMapping[str, ClassicMember]):
    __slots__ = ("_many", "_one")

    def __init__(self) -> None:
        self._one: ClassicMember | None = None  # None while there are no members, or several
        self._many: dict[str, ClassicMember] | None = None

    def __len__(self) -> int:
        if self._many is not None:
            return len(self._many)
        return 0 if self._one is None else 1

    def __bool__(self) -> bool:
        return self._one is not None or bool(self._many)

    def __iter__(self) -> Iterator[str]:
        if self._many is not None:
            return iter(self._many)
        return iter(()) if self._one is None else iter((self._one.member_id,))

    def __contains__(self, member_id: object) -> bool:
        if self._many is not None:
            return member_id in self._many
        return self._one is not None and self._one.member_id == member_id

    def __getitem__(self, member_id: str) -> ClassicMember:
        found: ClassicMember | None = self.get(member_id)
        if found is None:
            raise KeyError(member_id)
        return found

    def get(self, member_id: str, default: Any = None) -> Any:
        if self._many is not None:
            return self._many.get(member_id, default)
        one = self._one
        return one if one is not None and one.member_id == member_id else default

    def values(self) -> Collection[ClassicMember]:  # type: ignore[override]
        if self._many is not None:
            return self._many.values()
        return () if self._one is None else (self._one,)

    def __setitem__(self, member_id: str, member: ClassicMember) -> None:
        assert member.member_id == member_id
        if self._many is not None:
            self._many[member_id] = member
        elif self._one is None or self._one.member_id == member_id:
            self._one = member
        else:
            self._many = {self._one.member_id: self._one, member_id: member}
            self._one = None

    def __delitem__(self, member_id: str) -> None:
        if self._many is None:
            if member_id not in self:
                raise KeyError(member_id)
            self._one = None
            return
        del self._many[member_id]
        if len(self._many) == 1:
            [self._one] = self._many.values()
            self._many = None
