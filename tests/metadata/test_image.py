"""Any history of records gives the same image, in one delta or in many, from the log or from a snapshot."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.metadata import serde
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage
from barnabas.metadata.snapshot import image_records
from barnabas.metadata.versions import LATEST_LEVEL
from barnabas.protocol import Message
from barnabas.protocol.log_records import metadata as records

TOPICS = {name: bytes([index + 1]) * 16 for index, name in enumerate(["a", "b", "c"])}
BROKERS = (1, 2, 3)
names = st.sampled_from(sorted(TOPICS))
brokers = st.lists(st.sampled_from(BROKERS), unique=True, max_size=3)
uuids = st.binary(min_size=16, max_size=16)


class History:
    """Draws records that fit the earlier ones, as a controller would write them."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.partitions: dict[str, int] = {}
        self.registered: dict[int, int] = {}
        self.written: list[Message] = [
            records.FeatureLevelRecord(name="metadata.version", feature_level=LATEST_LEVEL)
        ]

    def step(self) -> None:
        kinds = [kind for kind in dir(self) if kind.startswith("write_")]
        getattr(self, self.draw(st.sampled_from(kinds)))()

    def write_topic(self) -> None:
        name = self.draw(names)
        if name not in self.partitions:
            self.partitions[name] = 0
            self.written.append(records.TopicRecord(name=name, topic_id=TOPICS[name]))

    def write_partition(self) -> None:
        if self.partitions:
            name = self.draw(st.sampled_from(sorted(self.partitions)))
            replicas = self.draw(brokers.filter(bool))
            self.written.append(
                records.PartitionRecord(
                    partition_id=self.partitions[name],
                    topic_id=TOPICS[name],
                    replicas=replicas,
                    isr=replicas[:1],
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=[self.draw(uuids) for _ in replicas],
                    eligible_leader_replicas=self.draw(st.none() | brokers.filter(bool)),
                )
            )
            self.partitions[name] += 1

    def write_partition_change(self) -> None:
        grown = sorted(name for name, count in self.partitions.items() if count)
        if grown:
            name = self.draw(st.sampled_from(grown))
            self.written.append(
                records.PartitionChangeRecord(
                    partition_id=self.draw(st.integers(0, self.partitions[name] - 1)),
                    topic_id=TOPICS[name],
                    isr=self.draw(st.none() | brokers),
                    leader=self.draw(st.sampled_from([-2, -1, *BROKERS])),
                    leader_recovery_state=self.draw(st.sampled_from([-1, 0, 1])),
                    last_known_elr=self.draw(st.none() | brokers),
                )
            )

    def write_remove_topic(self) -> None:
        if self.partitions:
            name = self.draw(st.sampled_from(sorted(self.partitions)))
            del self.partitions[name]
            self.written.append(records.RemoveTopicRecord(topic_id=TOPICS[name]))

    def write_config(self) -> None:
        self.written.append(
            records.ConfigRecord(
                resource_type=4,
                resource_name=self.draw(st.sampled_from(["", "1"])),
                name=self.draw(st.sampled_from(["x", "y"])),
                value=self.draw(st.none() | st.text(max_size=3)),
            )
        )

    def write_topic_config(self) -> None:
        if self.partitions:
            name = self.draw(st.sampled_from(sorted(self.partitions)))
            self.written.append(
                records.ConfigRecord(
                    resource_type=2,
                    resource_name=name,
                    name="retention.ms",
                    value=self.draw(st.none() | st.just("1")),
                )
            )

    def write_broker(self) -> None:
        number = self.draw(st.sampled_from(BROKERS))
        self.registered[number] = epoch = len(self.written)
        self.written.append(
            records.RegisterBrokerRecord(
                broker_id=number,
                incarnation_id=self.draw(uuids),
                broker_epoch=epoch,
                end_points=[records.RegisterBrokerRecord.BrokerEndpoint(name="P", host="h", port=9092)],
                features=[
                    records.RegisterBrokerRecord.BrokerFeature(
                        name="metadata.version", min_supported_version=7, max_supported_version=30
                    )
                ],
                rack=self.draw(st.none() | st.just("r")),
                log_dirs=self.draw(st.lists(uuids, max_size=2)),
                cordoned_log_dirs=self.draw(st.none() | st.lists(uuids, max_size=1)),
            )
        )

    def write_broker_change(self) -> None:
        if self.registered:
            number = self.draw(st.sampled_from(sorted(self.registered)))
            self.written.append(
                records.BrokerRegistrationChangeRecord(
                    broker_id=number,
                    broker_epoch=self.registered[number],
                    fenced=self.draw(st.sampled_from([-1, 0, 1])),
                    in_controlled_shutdown=self.draw(st.sampled_from([0, 1])),
                )
            )

    def write_unregister(self) -> None:
        if self.registered:
            number = self.draw(st.sampled_from(sorted(self.registered)))
            epoch = self.registered.pop(number)
            self.written.append(records.UnregisterBrokerRecord(broker_id=number, broker_epoch=epoch))

    def write_controller(self) -> None:
        self.written.append(
            records.RegisterControllerRecord(controller_id=9, incarnation_id=self.draw(uuids))
        )

    def write_feature(self) -> None:
        level = self.draw(st.integers(0, 2))
        self.written.append(records.FeatureLevelRecord(name="transaction.version", feature_level=level))

    def write_quota(self) -> None:
        entity = records.ClientQuotaRecord.EntityData
        parts = [entity(entity_type="user", entity_name=self.draw(st.sampled_from([None, "u"])))]
        if self.draw(st.booleans()):
            parts.append(entity(entity_type="client-id", entity_name="c"))
        self.written.append(
            records.ClientQuotaRecord(
                entity=parts, key="producer_byte_rate", value=1.5, remove=self.draw(st.booleans())
            )
        )

    def write_acl(self) -> None:
        acl_id = self.draw(st.sampled_from(sorted(TOPICS.values())))
        if self.draw(st.booleans()):
            self.written.append(records.AccessControlEntryRecord(id=acl_id, resource_name="t", host="*"))
        else:
            self.written.append(records.RemoveAccessControlEntryRecord(id=acl_id))

    def write_scram(self) -> None:
        if self.draw(st.booleans()):
            self.written.append(
                records.UserScramCredentialRecord(name="u", mechanism=1, salt=b"s", iterations=4096)
            )
        else:
            self.written.append(records.RemoveUserScramCredentialRecord(name="u", mechanism=1))

    def write_token(self) -> None:
        if self.draw(st.booleans()):
            self.written.append(records.DelegationTokenRecord(owner="o", renewers=["r"], token_id="t"))
        else:
            self.written.append(records.RemoveDelegationTokenRecord(token_id="t"))

    def write_producer_ids(self) -> None:
        self.written.append(records.ProducerIdsRecord(next_producer_id=self.draw(st.integers(1, 10**6))))

    def write_clear_elr(self) -> None:
        self.written.append(records.ClearElrRecord(topic_name=self.draw(st.sampled_from(["", "a"]))))


@st.composite
def histories(draw: Any) -> list[Message]:
    history = History(draw)
    for _ in range(draw(st.integers(0, 30))):
        history.step()
    return history.written


def replayed(written: list[Message], image: MetadataImage = EMPTY_IMAGE) -> MetadataImage:
    delta = MetadataDelta(image)
    delta.replay_all(written)
    return delta.apply()


@settings(max_examples=150)
@given(histories())
def test_an_image_written_as_records_and_read_again_is_equal(written: list[Message]) -> None:
    image = replayed(written)
    snapshot = [serde.decode(serde.encode(record, LATEST_LEVEL)) for record in image_records(image)]
    assert replayed(snapshot) == image


@settings(max_examples=150)
@given(histories(), st.integers(1, 7))
def test_one_delta_and_many_deltas_give_the_same_image(written: list[Message], step: int) -> None:
    image = EMPTY_IMAGE
    for start in range(0, len(written), step):
        image = replayed(written[start : start + step], image)
    assert image == replayed(written)


@settings(max_examples=50)
@given(histories(), histories())
def test_a_delta_leaves_the_image_before_it_alone(first: list[Message], second: list[Message]) -> None:
    before = replayed(first)
    again = replayed(first)
    try:
        replayed(second, before)
    except ValueError:
        pass  # the second history does not know the brokers of the first
    assert before == again


def test_parts_that_did_not_change_are_shared() -> None:
    before = replayed([records.TopicRecord(name="a", topic_id=TOPICS["a"])])
    after = replayed([records.ProducerIdsRecord(next_producer_id=1000)], before)
    assert after.topics is before.topics
    assert after.cluster is before.cluster


def test_a_delta_says_what_changed() -> None:
    before = replayed(
        [
            records.TopicRecord(name="a", topic_id=TOPICS["a"]),
            records.PartitionRecord(partition_id=0, topic_id=TOPICS["a"], replicas=[1], isr=[1], leader=1),
            records.TopicRecord(name="b", topic_id=TOPICS["b"]),
        ]
    )
    delta = MetadataDelta(before)
    delta.replay_all(
        [
            records.RemoveTopicRecord(topic_id=TOPICS["b"]),
            records.PartitionChangeRecord(partition_id=0, topic_id=TOPICS["a"], leader=2),
            records.TopicRecord(name="c", topic_id=TOPICS["c"]),
        ]
    )
    assert delta.topics is not None
    assert [topic.name for topic in delta.topics.deleted.values()] == ["b"]
    assert [topic.name for topic in delta.topics.created] == ["c"]
    assert delta.topics.changed[TOPICS["a"]].changed[0].leader == 2
    assert delta.cluster is None


def test_a_topic_deleted_and_created_again_in_one_delta_is_the_new_one() -> None:
    before = replayed([records.TopicRecord(name="a", topic_id=TOPICS["a"])])
    after = replayed(
        [
            records.RemoveTopicRecord(topic_id=TOPICS["a"]),
            records.TopicRecord(name="a", topic_id=TOPICS["b"]),
        ],
        before,
    )
    assert after.topics.by_name["a"].id == TOPICS["b"]
    assert list(after.topics.by_id) == [TOPICS["b"]]


@pytest.mark.parametrize(
    "record",
    [
        records.PartitionRecord(partition_id=0, topic_id=TOPICS["a"]),
        records.RemoveTopicRecord(topic_id=TOPICS["a"]),
        records.BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=3, fenced=1),
    ],
)
def test_a_record_about_something_unknown_shows_that_the_log_is_damaged(record: Message) -> None:
    with pytest.raises(ValueError, match="no "):
        replayed([record])
