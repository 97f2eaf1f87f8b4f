"""The eight levels at which a client may be limited."""

from __future__ import annotations

from barnabas.quotas import Levels, Limit

KIND = "producer_byte_rate"
# From the most specific on: who is named, and who shares the limit.
ORDER = [
    ((("client-id", "c"), ("user", "u")), ("u", "c")),
    ((("client-id", None), ("user", "u")), ("u", "c")),
    ((("user", "u"),), ("u", "")),
    ((("client-id", "c"), ("user", None)), ("u", "c")),
    ((("client-id", None), ("user", None)), ("u", "c")),
    ((("user", None),), ("u", "")),
    ((("client-id", "c"),), ("", "c")),
    ((("client-id", None),), ("", "c")),
]


def test_the_most_specific_limit_wins() -> None:
    for first in range(len(ORDER)):
        bounds = {entity: {KIND: float(rank)} for rank, (entity, _) in enumerate(ORDER) if rank >= first}
        levels = Levels.of(bounds, KIND)
        assert levels is not None
        assert levels.limit("u", "c") == Limit(ORDER[first][1], float(first))


def test_a_limit_of_one_entity_does_not_apply_to_others() -> None:
    levels = Levels.of({(("user", "u"),): {KIND: 5.0}, (("client-id", "c"),): {KIND: 6.0}}, KIND)
    assert levels is not None
    assert levels.limit("v", "d") is None
    assert levels.limit("v", "c") == Limit(("", "c"), 6.0)


def test_limits_of_another_kind_are_none() -> None:
    assert Levels.of({(("user", "u"),): {"consumer_byte_rate": 5.0}}, KIND) is None


def test_an_address_has_its_own_limit_or_the_default() -> None:
    kind = "connection_creation_rate"
    levels = Levels.of({(("ip", "10.0.0.1"),): {kind: 5.0}, (("ip", None),): {kind: 7.0}}, kind)
    assert levels is not None
    assert (levels.address("10.0.0.1"), levels.address("10.0.0.2")) == (5.0, 7.0)
    assert levels.hosts() == ["10.0.0.1"]
