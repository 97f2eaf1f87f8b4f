"""A node opens its metadata, or says in one line why it cannot."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.partitions.metadata_partition import open_metadata_log
from barnabas.broker.setup.formatting import FormatRequest, format_directories
from barnabas.metadata.versions import LATEST_LEVEL
from barnabas.protocol.log_records.metadata import FeatureLevelRecord
from barnabas.quorum import snapshot_files
from barnabas.quorum.metadata_log import MetadataLog
from barnabas.raft.snapshot_ids import SnapshotId
from barnabas.raft.voters import Membership
from barnabas.runtime.clock import SystemClock
from barnabas.runtime.disk import REAL_DISK
from barnabas.settings.broker import BrokerSettings
from barnabas.storage.files import meta_properties
from barnabas.storage.files.errors import StorageError
from barnabas.storage.logs.context import LogContext


def settings_for(folder: Path, **more: str) -> BrokerSettings:
    values = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": "1@127.0.0.1:9093",
        "log.dirs": str(folder),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    return BrokerSettings.load({name: value for name, value in values.items() if value})


DYNAMIC = {"controller_quorum_voters": "", "controller_quorum_bootstrap_servers": "127.0.0.1:9093"}


def formatted(settings: BrokerSettings, **request: Any) -> Path:
    format_directories(settings, "c", FormatRequest(**request), now_ms=1, random_bytes=os.urandom)
    return Path(settings.metadata_log_dir) / "__cluster_metadata-0"


def opened(settings: BrokerSettings) -> MetadataLog:
    found = meta_properties.load(REAL_DISK, settings.metadata_log_dir)
    assert found is not None
    assert found.directory_id is not None
    return open_metadata_log(settings, found.directory_id, LogContext(), SystemClock())


def reason(settings: BrokerSettings) -> str:
    with pytest.raises(StorageError) as refused:
        opened(settings)
    text = str(refused.value)
    assert "\n" not in text
    return text.partition("__cluster_metadata-0")[2]


def test_a_formatted_folder_opens_empty(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "data")
    folder = formatted(settings)
    assert opened(settings).image.is_empty
    assert (folder / "partition.metadata").read_text() == "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"


def test_a_controller_that_knows_no_voters_asks_the_quorum(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "data", **DYNAMIC)
    formatted(settings, no_initial_controllers=True)
    assert opened(settings).membership.voters.ids == ()


def test_a_voter_among_others_regards_nothing_as_committed(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "data", controller_quorum_voters="1@a:1,2@b:2")
    formatted(settings)
    found = opened(settings)
    assert found.membership.voters.ids == (1, 2)
    assert found.high_watermark == -1


def test_a_voter_in_another_directory_is_not_this_one(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "data", **DYNAMIC)
    formatted(settings, standalone=True)
    properties = meta_properties.MetaProperties("c", 1, b"\x41" * 16)
    meta_properties.store(REAL_DISK, settings.metadata_log_dir, properties)
    assert reason(settings).endswith("not QUFBQUFBQUFBQUFBQUFBQQ")


def test_a_cluster_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "data")
    folder = formatted(settings)
    folder.mkdir()
    records = [FeatureLevelRecord(name="metadata.version", feature_level=LATEST_LEVEL + 1)]
    data = snapshot_files.encode(records, LATEST_LEVEL, 1, Membership(), 1, 1)
    snapshot_files.store(REAL_DISK, str(folder), SnapshotId(5, 1), data)
    assert reason(settings).startswith(": the cluster runs with metadata.version 31; this version supports")


def test_a_damaged_quorum_state_is_reported(tmp_path: Path) -> None:
    settings = settings_for(tmp_path / "data")
    folder = formatted(settings)
    opened(settings)
    (folder / "quorum-state").write_text("{")
    assert reason(settings).startswith(" cannot be read: quorum-state cannot be read")
