"""The topics that expressions match equal those of a full search; they are found in turns and kept up to
date.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.expressions.matching import matcher
from barnabas.groups.consumer import topic_matches
from barnabas.groups.consumer.topic_matches import TopicMatches
from barnabas.metadata.image import MetadataImage

from ..host import changes_between, image_of

PATTERNS = ("a.*", "[ab]1?", ".*2", "none", "(")


@pytest.fixture(autouse=True)
def small_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_matches, "NAMES_PER_TURN", 3)


def searched(pattern: str, image: MetadataImage) -> frozenset[str]:
    if pattern == "(":
        return frozenset()
    found = matcher(pattern)
    return frozenset(name for name in image.topics.by_name if found.matches(name))


@given(st.integers(0, 2**32))
def test_the_result_equals_a_full_search(seed: int) -> None:
    rng = random.Random(seed)
    matches = TopicMatches()
    image = image_of({})
    for _ in range(30):
        if rng.random() < 0.5:
            names = [first + second for first in "abc" for second in ("", "1", "2")]
            after = image_of({name: 1 for name in names if rng.random() < 0.5})
            matches.update(changes_between(image, after))
            image = after
        pattern = rng.choice(PATTERNS)
        for _ in range(rng.randrange(4)):
            found = matches.find(pattern, image)
            assert found is None or found == searched(pattern, image)


def test_a_search_takes_turns_and_its_repetition_none(monkeypatch: pytest.MonkeyPatch) -> None:
    image = image_of({f"t{number}": 1 for number in range(10)})
    matches = TopicMatches()
    turns = 1
    while matches.find("t.*", image) is None:
        turns += 1
    assert turns == 4
    looks: list[str] = []
    look_at = topic_matches.Search._look_at
    monkeypatch.setattr(
        topic_matches.Search, "_look_at", lambda search, name: (looks.append(name), look_at(search, name))
    )
    after = image_of({f"t{number}": 1 for number in range(1, 12)})
    matches.update(changes_between(image, after))
    assert matches.find("t.*", after) == set(after.topics.by_name)
    assert sorted(looks) == ["t10", "t11"]


def test_unused_expressions_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_matches, "PATTERNS_MAX", 2)
    matches = TopicMatches()
    for pattern in ("a", "b", "a", "c"):
        matches.find(pattern, image_of({"a": 1}))
    assert list(matches._searches) == ["a", "c"]


def test_an_expression_that_takes_too_much_effort_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_matches, "EFFORT_MAX", 1)
    assert TopicMatches().find("(x+x+)+.{3}t9", image_of({"t9": 1, "t8": 1})) == frozenset()
