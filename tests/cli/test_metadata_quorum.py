"""Controllers that join and leave the quorum: their description from files, and errors in these files."""

from pathlib import Path

import pytest

from barnabas.cli.cluster.new_controller import new_controller
from barnabas.cli.frame.parsing import ToolError
from barnabas.client.admin.voters import VoterAddress
from barnabas.protocol import uuid
from barnabas.runtime.disk import REAL_DISK
from barnabas.storage.files import meta_properties

from .conftest import RunTool

DIRECTORY = "AAAAAAAAAAAAAAAAAAAAZQ"
CLUSTER_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    meta = meta_properties.MetaProperties(CLUSTER_ID, 7, uuid.from_text(DIRECTORY))
    meta_properties.store(REAL_DISK, str(tmp_path), meta)
    return {
        "node.id": "7",
        "process.roles": "controller",
        "log.dirs": f"{tmp_path},/other",
        "listeners": "CONTROLLER://:9093,ADMIN://[::1]:9094",
        "controller.listener.names": "controller",
    }


def write(folder: Path, properties: dict[str, str]) -> str:
    file = folder / "controller.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    return str(file)


def test_a_controller_is_described_by_its_own_files(properties: dict[str, str]) -> None:
    found = new_controller(properties)
    assert (found.id, uuid.to_text(found.directory_id)) == (7, DIRECTORY)
    assert found.addresses == (VoterAddress("CONTROLLER", "localhost", 9093),)


def test_the_metadata_log_dir_comes_first_and_advertised_addresses_win(
    properties: dict[str, str], tmp_path: Path
) -> None:
    properties |= {
        "metadata.log.dir": str(tmp_path),
        "log.dirs": "/other",
        "advertised.listeners": "CONTROLLER://c7.example:19093",
        "controller.listener.names": "CONTROLLER,ADMIN",
    }
    assert list(map(str, new_controller(properties).addresses)) == [
        "CONTROLLER://c7.example:19093",
        "ADMIN://[::1]:9094",
    ]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"node.id": None}, "node.id not found in configuration file."),
        ({"node.id": "-1"}, "node.id was negative in configuration file."),
        ({"node.id": "x"}, "node.id=x is not a number."),
        ({"process.roles": "broker"}, "process.roles did not contain 'controller' in configuration file."),
        ({"log.dirs": None}, "Neither metadata.log.dir nor log.dirs were found."),
        ({"log.dirs": "/no/such"}, "Unable to read meta.properties from /no/such"),
        ({"controller.listener.names": None}, "controller.listener.names was not found."),
        (
            {"controller.listener.names": "OTHER"},
            "Cannot find information about controller listener name: OTHER",
        ),
        ({"listeners": "nonsense"}, "Error creating broker listeners"),
    ],
)
def test_missing_properties_are_reported(
    change: dict[str, str | None], problem: str, properties: dict[str, str]
) -> None:
    changed = {name: value for name, value in {**properties, **change}.items() if value is not None}
    with pytest.raises(ToolError) as raised:
        new_controller(changed)
    assert str(raised.value).startswith(problem)


def test_a_dry_run_says_what_would_be_added(
    broker: str, properties: dict[str, str], tmp_path: Path, run_tool: RunTool
) -> None:
    ran = run_tool(
        "kafka-metadata-quorum",
        *("--bootstrap-server", broker, "--command-config", write(tmp_path, properties)),
        *("add-controller", "--dry-run"),
    )
    assert ran.output == (
        f"DRY RUN of adding controller 7 with directory id {DIRECTORY} and endpoints: "
        "CONTROLLER://localhost:9093\n"
    )


@pytest.mark.parametrize(
    ("arguments", "printed", "problem"),
    [
        (
            ("remove-controller", "-i", "7", "-d", DIRECTORY, "--dry-run"),
            f"DRY RUN of removing  KRaft controller 7 with directory id {DIRECTORY}\n",
            "",
        ),
        (("remove-controller", "-i", "-7", "-d", DIRECTORY), "", "Invalid negative --controller-id: -7"),
        (("remove-controller", "-i", "7", "-d", "x"), "", "Failed to parse --controller-directory-id: "),
        (("remove-controller", "-i", "7"), "", "the following arguments are required: -d"),
        (("add-controller",), "", "You must supply the configuration file of the controller"),
        ((), "", "too few arguments"),
        (("describe", "--status", "--human-readable"), "", "The option --human-readable is only supported"),
    ],
)
def test_removing_a_controller_and_its_errors(
    arguments: tuple[str, ...], printed: str, problem: str, broker: str, run_tool: RunTool
) -> None:
    ran = run_tool("kafka-metadata-quorum", "--bootstrap-server", broker, *arguments)
    assert (ran.output, ran.errors[: len(problem)], ran.status) == (printed, problem, int(bool(problem)))


def test_status_and_replication_have_kafkas_columns(broker: str, run_tool: RunTool) -> None:
    server = ("kafka-metadata-quorum", "--bootstrap-server", broker, "describe")
    status = run_tool(*server, "--status").lines
    assert [line.split(":")[0] for line in status] == [
        *("ClusterId", "LeaderId", "LeaderEpoch", "HighWatermark", "MaxFollowerLag", "MaxFollowerLagTimeMs"),
        *("CurrentVoters", "CurrentObservers"),
    ]
    header, leader = run_tool(*server, "--replication", "--human-readable").lines
    assert header.split() == [
        *(
            "NodeId",
            "DirectoryId",
            "LogEndOffset",
            "Lag",
            "LastFetchTimestamp",
            "LastCaughtUpTimestamp",
            "Status",
        )
    ]
    assert leader.split("\t")[0].strip() == "1"
    assert leader.split("\t")[-2].strip() == "Leader"
