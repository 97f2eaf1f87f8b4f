"""Work is shared evenly, moves as little as possible, and waits for workers that restart."""

from __future__ import annotations

from random import Random

import pytest

from barnabas.connect.herder.distributed.assignor import FIRST, Plan, assign, eager
from barnabas.connect.herder.distributed.protocol import (
    Assignment,
    Subscription,
    Work,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from barnabas.connect.herder.states import TaskId

WORK: Work = frozenset(TaskId(name, number) for name in "abc" for number in range(-1, 3))


def settled(members: list[str], last: Plan, now_ms: int = 0, delay_ms: int = 0, wanted: Work = WORK) -> Plan:
    """Rounds until nothing moves any more."""
    held = {member: frozenset(last.held.get(member, ())) for member in members}
    for _ in range(10):
        plan = assign(held, wanted, last, now_ms, delay_ms)
        for member in members:
            assert not plan.added[member] & held[member]
        held = {
            member: frozenset((held[member] - plan.revoked[member]) | plan.added[member])
            for member in members
        }
        assert sum(map(len, held.values())) == len({each for work in held.values() for each in work})
        last = plan
        if not any(plan.added.values()) and not any(plan.revoked.values()):
            return plan
    raise AssertionError("the assignment does not settle")


def sizes(plan: Plan) -> list[int]:
    return sorted(len(work) for work in plan.held.values())


def test_work_is_even_after_workers_come_and_go() -> None:
    one = settled(["w1"], FIRST)
    assert sizes(one) == [12]
    three = settled(["w1", "w2", "w3"], one)
    assert sizes(three) == [4, 4, 4]
    two = settled(["w1", "w3"], three)
    assert sizes(two) == [6, 6]
    assert three.held["w1"] <= two.held["w1"]


def test_work_of_a_worker_that_left_waits_for_the_delay() -> None:
    three = settled(["w1", "w2", "w3"], FIRST)
    waiting = settled(["w1", "w2"], three, now_ms=1000, delay_ms=300)
    assert waiting.lost == three.held["w3"]
    assert waiting.delay_ms == 300
    assert sizes(settled(["w1", "w2"], waiting, now_ms=1300, delay_ms=300)) == [6, 6]


def test_removed_connectors_are_revoked_and_claims_of_two_workers_too() -> None:
    plan = assign({"w1": WORK, "w2": WORK}, WORK, FIRST, 0, 0)
    assert plan.revoked == {"w1": set(WORK), "w2": set(WORK)}
    gone = assign({"w1": WORK}, frozenset(), FIRST, 0, 0)
    assert gone.revoked == {"w1": set(WORK)}
    assert sizes(eager({"w1": WORK, "w2": frozenset()}, WORK)) == [6, 6]


@pytest.mark.parametrize("seed", range(20))
def test_random_histories_lose_and_double_nothing(seed: int) -> None:
    rng = Random(seed)
    plan = FIRST
    for _ in range(12):
        members = [f"w{each}" for each in range(rng.randint(1, 5))]
        wanted = frozenset(rng.sample(sorted(WORK), rng.randint(0, len(WORK))))
        plan = settled(members, plan, wanted=wanted)
        assert {each for work in plan.held.values() for each in work} == wanted


def test_messages_are_those_of_the_worker_protocol() -> None:
    held = frozenset({TaskId("a", -1), TaskId("a", 0)})
    data = encode_subscription(1, Subscription("http://h:1/", 5, held))
    assert data[:15] == b"\x00\x01\x00\x0bhttp://h:1/"
    assert decode_subscription(data) == Subscription("http://h:1/", 5, held)
    assert decode_subscription(encode_subscription(0, Subscription("u", 5))) == Subscription("u", 5)
    assignment = Assignment(0, "m", "u", 7, held, frozenset({TaskId("b", 2)}), 300)
    assert decode_assignment(encode_assignment(2, assignment)) == assignment
    for end in range(len(data)):
        with pytest.raises(ValueError):
            decode_subscription(data[:end])
