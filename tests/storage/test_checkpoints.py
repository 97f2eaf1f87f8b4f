"""The small files: checkpoints, meta.properties, partition.metadata, the clean-shutdown mark."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol import uuid
from barnabas.replication.leader_epochs import EpochEntry
from barnabas.runtime.disk import REAL_DISK
from barnabas.storage import Log, LogSettings, StorageError, TopicPartition
from barnabas.storage.files import checkpoints, clean_shutdown, meta_properties, names, partition_metadata
from barnabas.storage.files.checkpoints import CorruptCheckpoint
from barnabas.storage.files.meta_properties import MetaProperties

from .building import fill

TOPIC_ID = bytes(range(16))


def test_offsets_are_written_as_kafka_writes_them() -> None:
    offsets = {TopicPartition("a", 0): 15000, TopicPartition("some.topic", 12): 0}
    assert checkpoints.encode_offsets(offsets) == b"0\n2\na 0 15000\nsome.topic 12 0\n"


@given(st.dictionaries(st.builds(TopicPartition, st.just("t"), st.integers(0, 9)), st.integers(0, 2**63 - 1)))
def test_offsets_come_back(offsets: dict[TopicPartition, int]) -> None:
    assert checkpoints.decode_offsets(checkpoints.encode_offsets(offsets)) == offsets


def test_an_empty_checkpoint_holds_nothing() -> None:
    assert checkpoints.decode_offsets(b"") == {}
    assert checkpoints.decode_epochs(b"") == []


@pytest.mark.parametrize(
    "data", [b"1\n0\n", b"0\n2\na 0 1\n", b"0\n1\na 0\n", b"0\n1\na x 1\n", b"0\n", b"\x00\xff", b"0\nx\n"]
)
def test_a_damaged_checkpoint_is_recognised(data: bytes) -> None:
    with pytest.raises(CorruptCheckpoint):
        checkpoints.decode_offsets(data)


def test_leader_epochs_come_back() -> None:
    entries = [EpochEntry(0, 0), EpochEntry(3, 77)]
    assert checkpoints.encode_epochs(entries) == b"0\n2\n0 0\n3 77\n"
    assert checkpoints.decode_epochs(checkpoints.encode_epochs(entries)) == entries


def test_damaged_leader_epochs_are_read_from_the_log(log: Log, reopen: Callable[..., Log]) -> None:
    fill(log, 10, epoch=1)
    fill(log, 10, epoch=2)
    log.close()
    Path(log.directory, "leader-epoch-checkpoint").write_bytes(b"nonsense")

    assert reopen(clean=True, recovery_point=20).epochs.entries == [(1, 0), (2, 10)]


def test_partition_metadata_is_written_as_kafka_writes_it() -> None:
    assert partition_metadata.encode(TOPIC_ID) == b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw"
    assert partition_metadata.decode(partition_metadata.encode(TOPIC_ID)) == TOPIC_ID


def test_the_topic_id_is_read_when_asked_for(tmp_path: Path) -> None:
    from .building import NOW_MS, SMALL

    Log.create(f"{tmp_path}/t-0", SMALL, topic_id=TOPIC_ID, now_ms=NOW_MS)
    assert Log.open(f"{tmp_path}/t-0", SMALL, now_ms=NOW_MS).topic_id == TOPIC_ID


def test_the_mark_of_a_clean_shutdown_is_taken_once(tmp_path: Path) -> None:
    clean_shutdown.store(REAL_DISK, str(tmp_path), 11)
    assert (tmp_path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":11}'

    assert clean_shutdown.broker_epoch(REAL_DISK, str(tmp_path)) == 11
    assert clean_shutdown.remove(REAL_DISK, str(tmp_path))
    assert not clean_shutdown.remove(REAL_DISK, str(tmp_path))
    assert clean_shutdown.broker_epoch(REAL_DISK, str(tmp_path)) == clean_shutdown.UNKNOWN_EPOCH


@pytest.mark.parametrize("content", [b"", b"{}", b"nonsense", b"[]"])
def test_a_mark_without_an_epoch_is_a_mark(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_bytes(content)
    assert clean_shutdown.broker_epoch(REAL_DISK, str(tmp_path)) == clean_shutdown.UNKNOWN_EPOCH
    assert clean_shutdown.remove(REAL_DISK, str(tmp_path))


def test_meta_properties_of_kafka_are_read() -> None:
    text = (
        b"#\n#Sun Nov 15 11:13:04 UTC 2026\nnode.id=1\ndirectory.id=to6FFAqlTg9HsRb1dm5Hqg\nversion=1\n"
        b"cluster.id=AAAAAAAAAAAAAAAAAAAAAQ\n"
    )
    found = meta_properties.decode(text, "meta.properties")
    assert found == MetaProperties("AAAAAAAAAAAAAAAAAAAAAQ", 1, uuid.from_text("to6FFAqlTg9HsRb1dm5Hqg"))


def test_meta_properties_come_back() -> None:
    properties = MetaProperties("AAAAAAAAAAAAAAAAAAAAAQ", 7, TOPIC_ID)
    assert meta_properties.decode(meta_properties.encode(properties), "") == properties


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"version=2\nnode.id=1\ncluster.id=x", "version 2"),
        (b"version=1\ncluster.id=x", "broker.id"),
        (b"version=1\nnode.id=1", "cluster.id"),
        (b"version=1\nnode.id=one\ncluster.id=x", "damaged"),
        (b"version=1\nnode.id=1\ncluster.id=x\ndirectory.id=zz", "damaged"),
    ],
)
def test_errors_of_meta_properties_name_the_problem(text: bytes, message: str) -> None:
    with pytest.raises(StorageError, match=message):
        meta_properties.decode(text, "/data/meta.properties")


@given(st.binary(min_size=16, max_size=16))
def test_a_new_directory_id_is_legal(random_bytes: bytes) -> None:
    directory_id = meta_properties.random_directory_id(random_bytes)
    assert int.from_bytes(directory_id) >= 100
    assert not uuid.to_text(directory_id).startswith("-")


@pytest.mark.parametrize(
    ("name", "parsed"),
    [
        ("topic-0", (TopicPartition("topic", 0), "")),
        ("a-b.c-12", (TopicPartition("a-b.c", 12), "")),
        ("t-3.0123456789abcdef0123456789abcdef-delete", (TopicPartition("t", 3), "-delete")),
        ("t-3.0123456789abcdef0123456789abcdef-stray", (TopicPartition("t", 3), "-stray")),
        ("t-3.0123456789abcdef0123456789abcdef-future", (TopicPartition("t", 3), "-future")),
        ("lost+found", None),
        ("topic-x", None),
        ("-1", None),
        ("t-delete", None),
    ],
)
def test_folder_names_are_taken_apart(name: str, parsed: tuple[TopicPartition, str] | None) -> None:
    assert names.parse_folder_name(name) == parsed


def test_a_long_topic_name_is_cut_where_its_folder_is_set_aside() -> None:
    name = names.marked_folder_name(TopicPartition("x" * 249, 1), names.DELETE_FOLDER, "0" * 32)
    assert len(name) == 255
    found = names.parse_folder_name(name)
    assert found is not None
    assert found.mark == names.DELETE_FOLDER


@pytest.mark.parametrize(("leader_epoch", "content"), [(-1, b""), (0, b"0\n1\n0 7\n"), (3, b"0\n1\n3 7\n")])
def test_a_new_log_has_its_leader_epochs_at_once(tmp_path: Path, leader_epoch: int, content: bytes) -> None:
    """Those of followers are empty: so Apache Kafka makes them."""
    directory = str(tmp_path / "topic-0")
    log = Log.create(directory, LogSettings(), start_offset=7, leader_epoch=leader_epoch, now_ms=0)
    stored = Path(directory, names.LEADER_EPOCH_CHECKPOINT)

    assert stored.read_bytes() == content
    log.assign_epoch(leader_epoch, 7)
    assert not log.epochs_dirty, "what is stored is not stored again"


@pytest.mark.parametrize("clean", [False, True])
def test_a_log_without_leader_epochs_gets_the_file_when_it_is_opened(tmp_path: Path, clean: bool) -> None:
    directory = str(tmp_path / "topic-0")
    Log.create(directory, LogSettings(), now_ms=0)
    stored = Path(directory, names.LEADER_EPOCH_CHECKPOINT)
    stored.unlink()
    Log.open(directory, LogSettings(), clean=clean, now_ms=0)

    assert stored.read_bytes() == b""
