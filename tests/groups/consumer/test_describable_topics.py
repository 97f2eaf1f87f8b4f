"""The topics of an expression that a member may describe are asked for in turns, however many there are."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.groups.basics.settings import GroupSettings
from barnabas.groups.consumer import describable_topics, regexes
from barnabas.groups.consumer.describable_topics import DescribableTopics
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.consumer.member import ConsumerMember
from barnabas.groups.consumer.state import ConsumerState
from barnabas.groups.consumer.topic_matches import TopicMatches
from barnabas.metadata.image import MetadataImage

from ..host import changes_between, image_of

TURN = 3


@pytest.fixture(autouse=True)
def small_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(describable_topics, "NAMES_PER_TURN", TURN)


class Rights:
    """The topics with an even number may be described. Counts how often it was asked in a turn."""

    def __init__(self) -> None:
        self.asked = 0

    def may_describe(self, name: str) -> bool:
        self.asked += 1
        return int(name[1:]) % 2 == 0


def numbered(numbers: range) -> MetadataImage:
    return image_of({f"t{number}": 1 for number in numbers})


def even(image: MetadataImage) -> frozenset[str]:
    return frozenset(name for name in image.topics.by_name if int(name[1:]) % 2 == 0)


def test_rights_are_asked_for_in_turns() -> None:
    image, rights, matches, topics = numbered(range(10)), Rights(), TopicMatches(), DescribableTopics()
    turns = 0
    while True:
        turns, rights.asked = turns + 1, 0
        found = topics.find(matches, "g", "t.*", image, rights.may_describe)
        assert rights.asked <= TURN
        if found is not None:
            break
    assert (turns, found) == (4, even(image))


@given(st.integers(0, 2**32))
def test_topics_that_come_and_go_between_turns_count(seed: int) -> None:
    rng, rights, matches, topics = random.Random(seed), Rights(), TopicMatches(), DescribableTopics()
    image = numbered(range(20))
    while True:
        found = topics.find(matches, "g", "t.*", image, rights.may_describe)
        if found is not None:
            break
        if rng.random() < 0.5:
            first = rng.randrange(20)
            after = numbered(range(first, first + rng.randrange(20)))
            matches.update(changes_between(image, after))
            image = after
    assert found == even(image)
    assert rights.asked <= 40, "a topic is asked for once"


def test_a_group_resolves_its_expressions_in_turns() -> None:
    state = ConsumerState(GroupSettings(), random.Random(1))
    group = state.groups["g"] = ConsumerGroup("g", state.subscribers)
    for number, pattern in enumerate(("t.*", "t1.*")):
        group.set_member(ConsumerMember(f"m{number}", topics=frozenset(), regex=pattern))
    image, rights = numbered(range(20)), Rights()
    state.viewers["g"] = rights.may_describe
    turns = 0
    while True:
        turns, rights.asked = turns + 1, 0
        records = regexes.resolve(state, group, image, 1_000)
        assert rights.asked < 2 * TURN  # the end of one expression, and the first turn of the next
        if records is not None:
            break
    assert turns >= (20 + 11) // TURN
    found = {record.key.regular_expression: record.value.topics for record in records[:2]}
    assert found == {
        "t.*": sorted(even(image)),
        "t1.*": ["t10", "t12", "t14", "t16", "t18"],
    }
    assert not state.describable._filters, "nothing of a search stays"
