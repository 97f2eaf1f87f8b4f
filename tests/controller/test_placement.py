import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.controller.placement import UsableBroker, place
from barnabas.protocol import ErrorCode, KafkaError

BROKERS = st.lists(
    st.tuples(st.sampled_from([None, "a", "b", "c"]), st.booleans()), min_size=1, max_size=9
).map(lambda each: [UsableBroker(number, rack, fenced) for number, (rack, fenced) in enumerate(each)])


@given(BROKERS, st.integers(1, 9), st.integers(1, 40), st.integers())
def test_replicas_are_distinct_and_the_leader_is_not_fenced(
    brokers: list[UsableBroker], factor: int, count: int, seed: int
) -> None:
    if factor > len(brokers) or all(broker.fenced for broker in brokers):
        with pytest.raises(KafkaError) as refused:
            place(count, factor, brokers, random.Random(seed))
        assert refused.value.code == ErrorCode.INVALID_REPLICATION_FACTOR
        return
    fenced = {broker.id for broker in brokers if broker.fenced}
    placed = place(count, factor, brokers, random.Random(seed))
    assert len(placed) == count
    for replicas in placed:
        assert len(set(replicas)) == len(replicas) == factor
        assert replicas[0] not in fenced


@given(st.integers(1, 3), st.integers())
def test_replicas_of_a_partition_lie_in_different_racks(factor: int, seed: int) -> None:
    racks = {number: "abc"[number % 3] for number in range(9)}
    brokers = [UsableBroker(number, rack, False) for number, rack in racks.items()]
    for replicas in place(30, factor, brokers, random.Random(seed)):
        assert len({racks[replica] for replica in replicas}) == factor


def test_leaders_are_spread_evenly() -> None:
    brokers = [UsableBroker(number, None, False) for number in range(4)]
    leaders = Counter(replicas[0] for replicas in place(40, 2, brokers, random.Random(1)))
    assert set(leaders.values()) == {10}


def test_fenced_brokers_come_last() -> None:
    brokers = [UsableBroker(1, None, False), UsableBroker(2, None, True), UsableBroker(3, None, False)]
    for replicas in place(20, 2, brokers, random.Random(1)):
        assert 2 not in replicas
