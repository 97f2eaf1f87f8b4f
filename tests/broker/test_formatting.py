"""Formatting folders, as `kafka-storage format` does."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker.partitions.metadata_partition import load_bootstrap
from barnabas.broker.setup.formatting import FormatError, FormatRequest, format_directories
from barnabas.broker.setup.scram_arguments import scram_record
from barnabas.protocol.log_records.metadata import FeatureLevelRecord, UserScramCredentialRecord
from barnabas.quorum import snapshot_files
from barnabas.raft.voters import Membership
from barnabas.runtime.disk import REAL_DISK
from barnabas.settings.broker import BrokerSettings
from barnabas.storage.files import meta_properties

CLUSTER = "AAAAAAAAAAAAAAAAAAAAAQ"


def settings_for(*folders: Path, dynamic: bool = False, **more: str) -> BrokerSettings:
    quorum = {"controller.quorum.voters": "1@127.0.0.1:9093"}
    if dynamic:
        quorum = {"controller.quorum.bootstrap.servers": "127.0.0.1:9093"}
    return BrokerSettings.load(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": ",".join(map(str, folders)),
            **quorum,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
    )


def formatted(settings: BrokerSettings, cluster_id: str = CLUSTER, **request: Any) -> list[str]:
    return format_directories(
        settings, cluster_id, FormatRequest(**request), now_ms=1_700_000_000_000, random_bytes=os.urandom
    )


def levels(folder: Path) -> dict[str, int]:
    found = load_bootstrap(REAL_DISK, str(folder))
    return {record.name: record.feature_level for record in found if isinstance(record, FeatureLevelRecord)}


def test_every_log_dir_gets_an_identity_and_the_first_records(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    lines = formatted(settings_for(first, second))
    assert lines == [
        f"Formatting data directory {second} with metadata.version 4.3-IV0.",
        f"Formatting metadata directory {first} with metadata.version 4.3-IV0.",
    ]
    ids = set()
    for folder in (first, second):
        found = meta_properties.load(REAL_DISK, str(folder))
        assert found is not None
        assert (found.cluster_id, found.node_id) == (CLUSTER, 1)
        ids.add(found.directory_id)
        assert levels(folder)["metadata.version"] == 30
    assert len(ids) == 2
    assert not (first / "__cluster_metadata-0").exists()


def test_a_formatted_folder_is_not_formatted_again(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    settings = settings_for(folder)
    formatted(settings)
    before = (folder / "meta.properties").read_bytes()
    with pytest.raises(FormatError) as refused:
        formatted(settings)
    assert str(refused.value) == (
        f"Log directory {folder} is already formatted. Use --ignore-formatted to ignore this directory and "
        "format the others."
    )
    done = formatted(settings, ignore_formatted=True)
    assert done == ["All of the log directories are already formatted."]
    assert (folder / "meta.properties").read_bytes() == before


def test_a_new_dir_beside_a_formatted_one_is_formatted(tmp_path: Path) -> None:
    formatted(settings_for(tmp_path / "one"))
    [line] = formatted(settings_for(tmp_path / "one", tmp_path / "two"), ignore_formatted=True)
    assert line.startswith(f"Formatting data directory {tmp_path / 'two'}")


def test_a_folder_of_another_cluster_or_node_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    formatted(settings_for(folder))
    with pytest.raises(FormatError) as refused:
        formatted(settings_for(folder), "BAAAAAAAAAAAAAAAAAAAAQ", ignore_formatted=True)
    assert str(refused.value) == (
        f"Invalid cluster.id in: {folder}/meta.properties. "
        f"Expected BAAAAAAAAAAAAAAAAAAAAQ, but read {CLUSTER}"
    )
    with pytest.raises(FormatError, match=r"Invalid node\.id"):
        formatted(
            settings_for(folder, node_id="2", controller_quorum_voters="2@127.0.0.1:9093"),
            ignore_formatted=True,
        )


def test_a_standalone_controller_is_its_own_first_voter(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    [line] = formatted(settings_for(folder, dynamic=True), standalone=True)
    assert line == f"Formatting dynamic metadata voter directory {folder} with metadata.version 4.3-IV0."
    path = folder / "__cluster_metadata-0" / "00000000000000000000-0000000000.checkpoint"
    membership = snapshot_files.load(REAL_DISK, str(path), Membership()).membership
    [voter] = membership.voters.voters.values()
    found = meta_properties.load(REAL_DISK, str(folder))
    assert found is not None
    assert (voter.id, voter.directory_id) == (1, found.directory_id)
    assert [(each.name, each.host, each.port) for each in voter.endpoints] == [
        ("CONTROLLER", "127.0.0.1", 9093)
    ]
    assert membership.kraft_version == 1


def test_static_and_dynamic_voters_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"You cannot specify controller\.quorum\.voters and"):
        formatted(settings_for(tmp_path / "data"), standalone=True)
    with pytest.raises(FormatError, match=r"Because controller\.quorum\.voters is not set"):
        formatted(settings_for(tmp_path / "data", dynamic=True))
    with pytest.raises(FormatError, match=r"Cannot set kraft\.version to 1 unless"):
        formatted(settings_for(tmp_path / "data"), features={"kraft.version": 1})
    assert not (tmp_path / "data").exists()


def test_formatting_accepts_an_older_release(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    [line] = formatted(settings_for(folder), release_version="4.0", features={"group.version": 0})
    assert line.endswith("with metadata.version 4.0-IV3.")
    assert levels(folder) == {"metadata.version": 25, "transaction.version": 2}


def test_wrong_features_are_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="Unsupported feature: nope"):
        formatted(settings_for(tmp_path / "data"), features={"nope": 1})
    with pytest.raises(FormatError, match="SCRAM is only supported in"):
        formatted(settings_for(tmp_path / "data"), release_version="3.4", add_scram=["x"])
    assert not (tmp_path / "data").exists()


def test_a_scram_user_is_in_the_bootstrap_records(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    formatted(settings_for(folder), add_scram=["SCRAM-SHA-256=[name=alice,password=alice-secret]"])
    user = load_bootstrap(REAL_DISK, str(folder))[-1]
    assert isinstance(user, UserScramCredentialRecord)
    assert (user.name, user.mechanism, user.iterations) == ("alice", 1, 4096)


def test_a_scram_credential_proves_the_password() -> None:
    record = scram_record(
        'SCRAM-SHA-512=[name="bob",iterations=8192,salt="c2FsdA==",password=secret]', os.urandom
    )
    salted = hashlib.pbkdf2_hmac("sha512", b"secret", b"salt", 8192)
    client_key = hmac.digest(salted, b"Client Key", "sha512")
    assert (record.name, record.mechanism, record.salt) == ("bob", 2, b"salt")
    assert record.stored_key == hashlib.sha512(client_key).digest()
    assert record.server_key == hmac.digest(salted, b"Server Key", "sha512")
    given = base64.b64encode(salted).decode()
    again = scram_record(
        f"SCRAM-SHA-512=[name=bob,iterations=8192,salt=c2FsdA==,saltedpassword={given}]", os.urandom
    )
    assert again == record


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("SCRAM-SHA-256", "Failed to find equals sign in SCRAM argument 'SCRAM-SHA-256'"),
        ("SCRAM-MD5=[name=a]", "The add-scram mechanism SCRAM-MD5 is not supported."),
        ("SCRAM-SHA-256=name=a", "Expected configuration string to start with ["),
        ("SCRAM-SHA-256=[name=a", "Expected configuration string to end with ]"),
        ("SCRAM-SHA-256=[name]", "No equals sign found in SCRAM component: name"),
        ("SCRAM-SHA-256=[password=a]", "You must supply 'name' to add-scram"),
        ("SCRAM-SHA-256=[name=a]", "You must supply one of 'password' or 'saltedpassword' to add-scram"),
        (
            "SCRAM-SHA-256=[name=a,saltedpassword=eA==]",
            "You must supply 'salt' with 'saltedpassword' to add-scram",
        ),
        (
            "SCRAM-SHA-256=[name=a,password=b,iterations=1]",
            "The 'iterations' value must be >= 4096 for add-scram using SCRAM-SHA-256",
        ),
        ("SCRAM-SHA-256=[name=a,password=b,color=c]", "Unknown SCRAM configurations: color"),
    ],
)
def test_an_invalid_scram_argument_has_kafkas_error(argument: str, reason: str) -> None:
    with pytest.raises(ValueError) as refused:
        scram_record(argument, os.urandom)
    assert str(refused.value) == reason
