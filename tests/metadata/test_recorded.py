"""What Apache Kafka 4.3.1 wrote: a node with static voters, and one with dynamic voters; both killed."""

from pathlib import Path

import pytest

from barnabas.metadata import serde
from barnabas.metadata.configs import ConfigResource, ResourceType
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.metadata.security import ScramUser
from barnabas.metadata.snapshot import image_records
from barnabas.metadata.transactions import TransactionFilter
from barnabas.protocol import Message
from barnabas.records.batch import headers
from barnabas.records.record import iter_records

DATA = Path(__file__).with_name("data")
LEVEL = 30
LOG = "00000000000000000000.log"


def values(path: Path) -> list[bytes]:
    data = path.read_bytes()
    return [
        bytes(record.value or b"")
        for position, header in headers(data)
        if not header.is_control
        for record in iter_records(data, position=position)
    ]


def records(path: Path) -> list[Message]:
    return [serde.decode(value) for value in values(path)]


def image_of(path: Path) -> MetadataImage:
    delta = MetadataDelta(EMPTY_IMAGE)
    delta.replay_all(TransactionFilter().pass_on(records(path)))
    return delta.apply()


FILES = ["static/" + LOG, "dynamic/" + LOG, "dynamic/00000000000000000094-0000000001.checkpoint"]


@pytest.mark.parametrize("name", [*FILES, "bootstrap.checkpoint"])
def test_every_record_is_written_again_byte_for_byte(name: str) -> None:
    for value in values(DATA / name):
        assert serde.encode(serde.decode(value), LEVEL) == value


@pytest.mark.parametrize("name", FILES)
def test_the_image_shows_what_was_done(name: str) -> None:
    image = image_of(DATA / name)
    assert image.features.metadata_level == LEVEL
    assert image.features.elr_enabled
    assert list(image.topics.by_name) == ["orders"]
    orders = image.topics.by_name["orders"]
    assert image.topics.by_id[orders.id] is orders
    assert sorted(orders.partitions) == [0, 1, 2, 3, 4]
    assert {(each.leader, each.isr) for each in orders.partitions.values()} == {(1, (1,))}
    assert image.configs.topic("orders") == {"cleanup.policy": "compact", "segment.bytes": "2000000"}
    assert image.configs.cluster_default == {"min.insync.replicas": "1"}
    assert image.quotas.by_entity == {(("user", "bob"),): {"producer_byte_rate": 1000.0}}
    assert image.security.scram[ScramUser("alice", 1)].iterations == 4096
    assert image.next_producer_id == 1000
    assert not image.cluster.brokers[1].fenced
    assert list(image.cluster.controllers) == [1]


def test_a_snapshot_and_the_log_it_was_made_of_agree() -> None:
    whole = image_of(DATA / "dynamic" / LOG)
    assert image_of(DATA / FILES[2]) == whole


@pytest.mark.parametrize("name", FILES)
def test_an_image_written_as_records_is_the_same_image(name: str) -> None:
    image = image_of(DATA / name)
    delta = MetadataDelta(EMPTY_IMAGE)
    delta.replay_all(serde.decode(serde.encode(record, LEVEL)) for record in image_records(image))
    assert delta.apply() == image


def test_a_deleted_topic_leaves_nothing_behind() -> None:
    image = image_of(DATA / "static" / LOG)
    assert "gone" not in image.topics.by_name
    assert ConfigResource(ResourceType.TOPIC, "gone") not in image.configs.by_resource
