import pytest

from barnabas.metadata import serde
from barnabas.metadata.bootstrap import bootstrap_level, bootstrap_records
from barnabas.metadata.partitions import PartitionRegistration
from barnabas.metadata.versions import LATEST_LEVEL, RELEASES, record_version, release_level, release_name
from barnabas.protocol import KafkaError, ProtocolError
from barnabas.protocol.log_records import metadata as records


@pytest.mark.parametrize(
    ("release", "broker", "partition"),
    [
        ("3.3-IV3", 1, 0),
        ("3.4-IV0", 2, 0),
        ("3.7-IV1", 2, 0),
        ("3.7-IV2", 3, 1),
        ("4.0-IV0", 3, 1),
        ("4.0-IV1", 3, 2),
        ("4.2-IV1", 3, 2),
        ("4.3-IV0", 4, 2),
    ],
)
def test_record_versions_follow_the_metadata_version(release: str, broker: int, partition: int) -> None:
    level = RELEASES[release]
    assert record_version(records.RegisterBrokerRecord(), level) == broker
    assert record_version(records.PartitionRecord(), level) == partition
    assert record_version(records.PartitionChangeRecord(), level) == partition
    assert record_version(records.TopicRecord(), level) == 0


@pytest.mark.parametrize("level", sorted(RELEASES.values()))
def test_a_partition_can_be_written_at_every_level(level: int) -> None:
    partition = PartitionRegistration((1, 2), (b"x" * 16, b"y" * 16), (1,), 1, elr=(2,), last_known_elr=(2,))
    assert serde.decode(serde.encode(partition.to_record(b"t" * 16, 0, level), level))


@pytest.mark.parametrize(
    ("fields", "version"),
    [
        ({"fenced": 1}, 0),
        ({"in_controlled_shutdown": 1}, 1),
        ({"log_dirs": [b"x" * 16]}, 2),
        ({"cordoned_log_dirs": []}, 3),
    ],
)
def test_a_registration_change_uses_the_lowest_version_that_can_hold_it(
    fields: dict[str, object], version: int
) -> None:
    record = records.BrokerRegistrationChangeRecord(**fields)
    assert record_version(record, LATEST_LEVEL) == version


def test_a_release_means_its_last_level() -> None:
    assert release_level("4.0") == RELEASES["4.0-IV3"]
    assert release_level("4.0-IV1") == RELEASES["4.0-IV1"]
    assert release_level("9.9") is None
    assert release_name(LATEST_LEVEL) == "4.3-IV0"


def levels(release: str | None, **features: int) -> dict[str, int]:
    wanted = {name.replace("_", "."): level for name, level in features.items()}
    level = bootstrap_level(release, wanted)
    return {record.name: record.feature_level for record in bootstrap_records(level, wanted)}


def test_a_new_cluster_starts_with_the_newest_levels() -> None:
    assert levels(None) == {
        "metadata.version": 30,
        "eligible.leader.replicas.version": 1,
        "group.version": 1,
        "share.version": 1,
        "streams.version": 1,
        "transaction.version": 2,
    }


def test_an_older_release_has_fewer_features() -> None:
    assert levels("3.6") == {"metadata.version": 14}
    assert levels("4.0", group_version=0) == {"metadata.version": 25, "transaction.version": 2}
    assert levels("3.9", transaction_version=2) == {"metadata.version": 21, "transaction.version": 2}


@pytest.mark.parametrize(
    ("release", "features", "reason"),
    [
        ("9.9", {}, "Unknown metadata.version '9.9'. Supported metadata.version are: 3.3-IV3, "),
        (None, {"nope": 1}, "Unsupported feature: nope. Supported features are: eligible.leader"),
        (None, {"group.version": 7}, "No feature:group.version with feature level 7"),
        ("4.0", {"metadata.version": 20}, "Use --release-version instead of --feature metadata.version=X"),
        (None, {"metadata.version": 3}, "No metadata.version with feature level 3"),
    ],
)
def test_wrong_levels_are_refused_with_a_reason(
    release: str | None, features: dict[str, int], reason: str
) -> None:
    with pytest.raises(ValueError) as refused:
        bootstrap_records(bootstrap_level(release, features), features)
    assert str(refused.value).startswith(reason)


@pytest.mark.parametrize(
    "value", [b"", b"\x01\x02", b"\x02\x14\x00\x00", b"\x01\x63\x00\x00", b"\x01\x14\x09"]
)
def test_bytes_that_are_no_metadata_record_are_refused(value: bytes) -> None:
    with pytest.raises((ProtocolError, KafkaError)):
        serde.decode(value)
