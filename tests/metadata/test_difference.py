"""The difference of two images: listeners of a node that installed a snapshot see exactly what changed."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.difference import difference
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.protocol import Message
from barnabas.protocol.log_records import metadata as records

NAMES = st.sampled_from(["orders", "returns", "clicks"])
TOPIC = 2  # as a kind of resource


def topic_id(name: str, life: int) -> bytes:
    return f"{name}-{life}".encode().ljust(16, b".")


@st.composite
def images(draw: st.DrawFn) -> MetadataImage:
    """Topics in one of several incarnations, partitions with one of several leaders, configs, brokers,
    features."""
    found: list[Message] = [records.FeatureLevelRecord(name="metadata.version", feature_level=30)]
    for name in draw(st.lists(NAMES, unique=True)):
        topic = topic_id(name, draw(st.integers(0, 1)))
        found.append(records.TopicRecord(name=name, topic_id=topic))
        for number in range(len(name) % 2 + 1):  # partitions are never removed from a topic
            leader = draw(st.integers(1, 3))
            found.append(
                records.PartitionRecord(
                    partition_id=number,
                    topic_id=topic,
                    replicas=[1, 2, 3],
                    isr=[leader],
                    leader=leader,
                    directories=[bytes([7]) * 16] * 3,
                )
            )
        for key in draw(st.lists(st.sampled_from(["retention.ms", "segment.ms"]), unique=True)):
            value = draw(st.sampled_from(["1", "2"]))
            found.append(records.ConfigRecord(resource_type=TOPIC, resource_name=name, name=key, value=value))
    for broker in draw(st.lists(st.integers(1, 3), unique=True)):
        found.append(
            records.RegisterBrokerRecord(
                broker_id=broker, broker_epoch=draw(st.integers(0, 3)), fenced=draw(st.booleans())
            )
        )
    if draw(st.booleans()):
        found.append(records.FeatureLevelRecord(name="group.version", feature_level=1))
    return replayed(EMPTY_IMAGE, found)


def replayed(image: MetadataImage, found: Sequence[Message]) -> MetadataImage:
    delta = MetadataDelta(image)
    delta.replay_all(found)
    return delta.apply()


@settings(max_examples=300, deadline=None)
@given(before=images(), after=images())
def test_the_difference_leads_from_one_image_to_the_other(
    before: MetadataImage, after: MetadataImage
) -> None:
    assert replayed(before, list(difference(before, after))) == after


@settings(max_examples=50, deadline=None)
@given(image=images())
def test_listeners_get_no_topic_that_did_not_change(image: MetadataImage) -> None:
    delta = MetadataDelta(image)
    delta.replay_all(difference(image, image))
    assert delta.topics is None or (not delta.topics.changed and not delta.topics.deleted)
    assert delta.configs is None or not delta.configs.resources
