"""The members of a classic group: a mapping that is small for one member."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.classic.member import ClassicMember
from barnabas.groups.classic.members import Members


def member(member_id: str) -> ClassicMember:
    return ClassicMember(member_id, None, ("", ""), 0, 0, ())


@given(st.integers(0, 2**32))
def test_it_behaves_like_a_dict(seed: int) -> None:
    rng = random.Random(seed)
    members, wanted = Members(), dict[str, ClassicMember]()
    for _ in range(40):
        member_id = rng.choice("abc")
        if rng.random() < 0.5:
            members[member_id] = wanted[member_id] = member(member_id)
        else:
            assert members.pop(member_id, None) is wanted.pop(member_id, None)
        assert list(members.items()) == list(wanted.items())
        assert list(members.values()) == list(wanted.values())
        assert (len(members), bool(members)) == (len(wanted), bool(wanted))
        for each in "abc":
            assert (each in members) is (each in wanted)
            assert members.get(each) is wanted.get(each)


def test_one_member_has_no_table() -> None:
    members = Members()
    members["a"] = member("a")
    assert members._many is None
    members["b"] = member("b")
    assert members._many is not None
    del members["a"]
    assert members._many is None
    assert list(members) == ["b"]
