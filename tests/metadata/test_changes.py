"""Changes to a large map are kept beside it, and the result equals a changed copy."""

from __future__ import annotations

import random

import pytest

from barnabas.metadata import changes
from barnabas.metadata.changes import MapChanges, OverlaidMap


@pytest.mark.parametrize("seed", range(20))
def test_a_map_with_changes_beside_it_equals_a_changed_copy(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "COPIED_MAX", 5)
    rng = random.Random(seed)
    plain: dict[int, str] = dict.fromkeys(range(rng.randrange(3, 400)), "first")
    laid: object = dict(plain)
    for step in range(60):
        delta: MapChanges[int, str] = MapChanges(laid)  # type: ignore[arg-type]
        for _ in range(rng.choice((1, 2, 5, 40))):
            key = rng.randrange(450)
            if rng.random() < 0.5:
                delta.remove(key)
            else:
                delta.set(key, f"{step}-{key}")
        for key, value in delta.changed.items():
            if value is None:
                plain.pop(key, None)
            else:
                plain[key] = value
        after = delta.apply()
        assert list(after.items()) == list(plain.items())
        assert (list(after), list(after.values()), len(after)) == (
            list(plain),
            list(plain.values()),
            len(plain),
        )
        assert after == plain
        for key in range(450):
            assert after.get(key) == plain.get(key)
            assert (key in after) == (key in plain)
        laid = after


def test_a_few_changes_to_a_large_map_copy_nothing_of_it() -> None:
    base = dict.fromkeys(range(100_000), "first")
    first: MapChanges[int, str] = MapChanges(base)
    first.set(5, "second")
    after = first.apply()
    assert isinstance(after, OverlaidMap)
    assert after._base is base
    again: MapChanges[int, str] = MapChanges(after)
    again.remove(6)
    later = again.apply()
    assert isinstance(later, OverlaidMap)
    assert later._base is base
    assert (after[6], later.get(6), later[5], base[5]) == ("first", None, "second", "first")
    with pytest.raises(KeyError):
        later[6]


def test_many_changes_make_a_plain_map_again() -> None:
    laid: object = dict.fromkeys(range(10_000), 0)
    kinds = []
    for number in range(150):
        delta: MapChanges[int, int] = MapChanges(laid)  # type: ignore[arg-type]
        delta.set(number, number)
        laid = delta.apply()
        kinds.append(type(laid))
    assert 0 < kinds.count(dict) < 5


def test_no_change_is_the_same_object() -> None:
    base = {1: 2}
    assert MapChanges(base).apply() is base
