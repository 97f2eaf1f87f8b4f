"""Proposals of `reassign-partitions` and plans of `drain`: replicas are spread over brokers and racks."""

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.topics.drain import plan_of
from barnabas.cli.topics.reassign_plan import (
    follower_throttles,
    leader_throttles,
    moves_of,
    spread_over,
)
from barnabas.client.admin.topics import Reassignment
from barnabas.client.core.topology import TopicPartition

WHERE = TopicPartition("orders", 0)


@given(st.integers(1, 7), st.integers(1, 40), st.randoms(use_true_random=False), st.data())
def test_candidates_have_each_broker_once_and_leaders_in_turn(
    brokers: int, partitions: int, rng: Random, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, brokers))

    spread = spread_over(dict.fromkeys(range(brokers)), partitions, factor, rng)

    assert all(len(set(replicas)) == len(replicas) == factor for replicas in spread)
    leaders = Counter(replicas[0] for replicas in spread)
    assert max(leaders.values()) - min([*leaders.values(), partitions // brokers]) <= 1


@given(st.integers(2, 4), st.integers(1, 3), st.randoms(use_true_random=False))
def test_candidates_use_every_rack_before_one_is_used_twice(racks: int, size: int, rng: Random) -> None:
    where = {broker: f"rack-{broker % racks}" for broker in range(racks * size)}

    spread = spread_over(where, 12, racks, rng)

    assert all(len({where[broker] for broker in replicas}) == racks for replicas in spread)


def test_throttles_name_the_brokers_that_send_and_those_that_receive() -> None:
    moves = moves_of({}, {WHERE: [2, 3]}, {WHERE: [1, 2]})

    assert leader_throttles(moves) == {"orders": "0:1,0:2"}
    assert follower_throttles(moves) == {"orders": "0:3"}


def test_a_move_that_is_under_way_keeps_its_sources() -> None:
    active = {WHERE: Reassignment((3, 1, 2), (3,), (2,))}

    moves = moves_of(active, {WHERE: [4]}, {WHERE: [3, 1, 2]})

    assert leader_throttles(moves) == {"orders": "0:1,0:2"}
    assert follower_throttles(moves) == {"orders": "0:4"}


def test_drained_replicas_go_to_the_emptiest_broker_of_a_new_rack() -> None:
    assignment = {WHERE: (1, 2), TopicPartition("orders", 1): (3, 4), TopicPartition("orders", 2): (4, 3)}
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}

    plan = plan_of(assignment, 1, racks, fewer=False)

    assert plan == {WHERE: [3, 2]}


def test_a_replica_that_no_broker_can_hold_stays_or_is_removed() -> None:
    racks = dict.fromkeys((1, 2, 3))

    assert plan_of({WHERE: (1, 2, 3)}, 1, racks, fewer=False) == {}
    assert plan_of({WHERE: (1, 2, 3)}, 1, racks, fewer=True) == {WHERE: [2, 3]}
    assert plan_of({WHERE: (1,)}, 1, {1: None}, fewer=True) == {}
