"""Cached encoded topics: the bytes equal those of the codec, and every change shows."""

from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from barnabas.broker.api import authorized
from barnabas.broker.quorum.topology import INTERNAL_TOPICS
from barnabas.broker.topics.encoded_topics import (
    PARTITIONS_A_STEP,
    EncodedTopics,
    Form,
    Topic,
    encoder,
    partition_of,
)
from barnabas.metadata.cluster import BrokerRegistration, ClusterImage
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partitions import PartitionRegistration
from barnabas.metadata.steps import at_once
from barnabas.metadata.topics import TopicImage, TopicsImage
from barnabas.protocol import ErrorCode
from barnabas.protocol.codec import codec
from barnabas.protocol.messages.metadata import MetadataResponse

VERSIONS = range(14)
DIRECTORY = bytes(15) + b"\xff"


def brokers(*fenced: int) -> ClusterImage:
    return ClusterImage(
        {
            number: BrokerRegistration(
                number, 1, bytes(16), {}, {}, fenced=number in fenced, log_dirs=(DIRECTORY,)
            )
            for number in range(3)
        }
    )


def topic(name: str, size: int, leader: int = 0, epoch: int = 0) -> TopicImage:
    replicas, directories = (0, 1, 2), (DIRECTORY,) * 3
    partitions = {
        index: PartitionRegistration(replicas, directories, replicas[: 1 + index % 3], leader, epoch)
        for index in range(size)
    }
    return TopicImage(name, name.encode().ljust(16, b"\0"), partitions)


def image_of(topics: Mapping[str, TopicImage], cluster: ClusterImage) -> MetadataImage:
    return MetadataImage(
        topics=TopicsImage({each.id: each for each in topics.values()}, dict(topics)), cluster=cluster
    )


def plain(image: MetadataImage, form: Form, errors: list[Topic]) -> bytes:
    """The response as its codec encodes it, without the cache."""
    topics = [
        Topic(
            name=found.name,
            topic_id=found.id,
            is_internal=found.name in INTERNAL_TOPICS,
            partitions=[partition_of(index, each, image) for index, each in found.partitions.items()],
            topic_authorized_operations=authorized.ON_TOPIC
            if form.wants_operations
            else authorized.NOT_ASKED,
        )
        for found in image.topics.by_name.values()
    ]
    parts: list[bytes] = []
    codec(MetadataResponse, form.version).encode(response(topics=[*topics, *errors]), parts.append)
    return b"".join(parts)


def response(topics: list[Topic]) -> MetadataResponse:
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="host", port=9092)
    return MetadataResponse(brokers=[broker], cluster_id="cluster", controller_id=1, topics=topics)


def packed(cache: EncodedTopics, image: MetadataImage, form: Form, errors: list[Topic]) -> bytes:
    topics = at_once(cache.pack([*image.topics.by_name.values(), *errors], form, image))
    parts: list[bytes] = []
    encoder(form.version)(response(topics), parts.append)
    return b"".join(parts)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("sizes", [[], [0], [3], [1, 200, 7], [1] * 200], ids=len)
def test_the_response_has_the_same_bytes(version: int, sizes: list[int]) -> None:
    topics = {f"topic-{number}": topic(f"topic-{number}", size) for number, size in enumerate(sizes)}
    topics["__consumer_offsets"] = topic("__consumer_offsets", 2, leader=-1)
    image, form = image_of(topics, brokers(2)), Form(version, version >= 8)
    errors = [Topic(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name="missing")]
    assert packed(EncodedTopics(), image, form, errors) == plain(image, form, errors)


def test_every_change_shows_in_the_next_response() -> None:
    """Topics are created, deleted and changed, brokers are fenced; responses in several versions between."""
    rng, cache = random.Random(1), EncodedTopics()
    topics: dict[str, TopicImage] = {}
    cluster = brokers()
    for step in range(400):
        name = f"topic-{rng.randrange(8)}"
        what = rng.random()
        if what < 0.2:
            topics.pop(name, None)
        elif what < 0.8:
            topics[name] = topic(name, rng.randrange(40), rng.randrange(3), step)
        else:
            cluster = brokers(*rng.sample(range(3), rng.randrange(3)))
        image = image_of(dict(rng.sample(sorted(topics.items()), len(topics))), cluster)
        form = Form(rng.choice((0, 5, 7, 9, 12, 13)), False)
        assert packed(cache, image, form, []) == plain(image, form, [])
        whole = cache.all_packed(form, image) or at_once(cache.pack_all(form, image))
        assert whole.topic_count == len(topics)


def test_only_what_changed_is_encoded_again() -> None:
    cache, form = EncodedTopics(), Form(12, False)
    topics = {name: topic(name, 50) for name in ("a", "b", "c")}
    cluster = brokers()
    before = image_of(topics, cluster)
    assert cache.missing(topics.values(), form, before) == 150
    at_once(cache.pack_all(form, before))
    assert cache.missing(topics.values(), form, before) == 0
    assert cache.all_packed(form, before) is not None
    topics["b"] = topic("b", 60, epoch=1)
    after = image_of(topics, cluster)
    assert cache.all_packed(form, after) is None
    assert cache.missing(topics.values(), form, after) == 60


def test_encoding_pauses_every_few_partitions() -> None:
    image = image_of({"large": topic("large", 1000)}, brokers())
    steps = EncodedTopics().pack_all(Form(12, False), image)
    assert sum(1 for _ in steps) >= 1000 // PARTITIONS_A_STEP


def test_the_cache_of_encoded_topics_is_bounded() -> None:
    cache, cluster = EncodedTopics(), brokers()
    for number in range(1000):
        name = f"topic-{number}"
        image = image_of({name: topic(name, 1)}, cluster)
        for version in VERSIONS:
            at_once(cache.pack_all(Form(version, False), image))
    assert sum(len(known) for known in cache._forms.values()) < 1000
