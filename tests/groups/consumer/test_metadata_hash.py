"""The hash of a group's topics equals Apache Kafka's, for inputs of any size."""

from __future__ import annotations

import pytest

from barnabas.groups.basics.metadata_hash import MetadataHashes
from barnabas.groups.basics.xxh3 import xxh3_64

from ..host import image_of

# The values of hash4j 0.22.0, which Apache Kafka uses, for `bytes((i * 7 + n) & 255 for i in range(n))`.
VECTORS = [
    (0, 3244421341483603138),
    (1, -2220562881957146901),
    (3, -6266602912829716452),
    (4, 6297312323375345790),
    (8, -5693888875394197238),
    (9, -8445836227155624914),
    (16, 3159599325006435930),
    (17, 7070371635116224842),
    (32, -8569976950676894311),
    (33, -5271264198224304052),
    (64, 1953419934939160347),
    (65, -1151936845768811324),
    (96, -3480686520655352023),
    (97, -2215387666941578022),
    (128, -1633510367785085978),
    (129, -5383259723849235271),
    (200, 7350251351420641343),
    (240, 4473034316189165092),
    (241, -4792628563661132438),
    (256, -46693030393586759),
    (397, -761500425413885603),
    (1076, -3848666750692565255),
    (2046, -773951405524439896),
]


@pytest.mark.parametrize(("size", "expected"), VECTORS)
def test_xxh3_gives_the_numbers_that_java_gives(size: int, expected: int) -> None:
    assert xxh3_64(bytes((index * 7 + size) & 255 for index in range(size))) == expected


def test_a_group_without_topics_that_exist_has_hash_zero() -> None:
    assert MetadataHashes().of_group(["gone"], image_of({"t": 1})) == 0


def test_the_hash_depends_on_the_topics_and_not_on_their_order() -> None:
    image = image_of({"a": 1, "b": 2})
    hashes = MetadataHashes()

    assert hashes.of_group(["b", "a"], image) == hashes.of_group(["a", "b"], image)
    assert hashes.of_group(["a"], image) != hashes.of_group(["b"], image)


def test_more_partitions_are_another_hash() -> None:
    hashes = MetadataHashes()

    assert hashes.of_group(["a"], image_of({"a": 1})) != hashes.of_group(["a"], image_of({"a": 2}))
