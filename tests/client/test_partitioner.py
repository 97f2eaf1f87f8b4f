"""Keys go where Kafka's own clients put them."""

from random import Random

import pytest

from barnabas.client.partitioner import StickyChoice, murmur2, partition_for_key


@pytest.mark.parametrize(
    ("key", "hashed"),
    [  # what org.apache.kafka.common.utils.Utils.murmur2 answers
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
        (b"", 275646681),
    ],
)
def test_the_hash_is_javas(key: bytes, hashed: int) -> None:
    assert murmur2(key) == hashed & 0xFFFFFFFF


def test_a_key_has_one_partition_and_it_is_a_valid_one() -> None:
    for number in range(1000):
        key = str(number).encode()
        assert 0 <= partition_for_key(key, 7) < 7
        assert partition_for_key(key, 7) == partition_for_key(key, 7)


def test_records_without_a_key_stay_on_one_partition_for_a_batch() -> None:
    choice = StickyChoice(Random(1), batch_size_bytes=100)
    first = [choice.choose([0, 1, 2], 25) for _ in range(4)]
    after = choice.choose([0, 1, 2], 25)
    assert len(set(first)) == 1
    assert after != first[0]


def test_a_partition_that_lost_its_leader_is_left() -> None:
    choice = StickyChoice(Random(1), batch_size_bytes=100)
    first = choice.choose([0, 1], 1)
    assert choice.choose([1 - first], 1) == 1 - first


def test_a_single_partition_is_chosen_again() -> None:
    choice = StickyChoice(Random(1), batch_size_bytes=10)
    assert [choice.choose([0], 10) for _ in range(3)] == [0, 0, 0]
