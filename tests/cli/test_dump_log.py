"""`dump-log` reports damaged files and continues. (The transcripts test intact files.)"""

import json
import shutil
from pathlib import Path

import pytest

from .conftest import RunTool

SEGMENTS = Path(__file__).parent / "segments"
FIRST = "00000000000000000000"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(SEGMENTS / "dump-0", tmp_path / "dump-0")
    return tmp_path / "dump-0"


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_a_batch_that_fails_its_checksum_is_printed_as_invalid(folder: Path, run_tool: RunTool) -> None:
    flip(folder / f"{FIRST}.log", 100)
    ran = run_tool("kafka-dump-log", "--files", f"{folder}/{FIRST}.log", "--print-data-log")
    validity = [line.rpartition(" ")[2] for line in ran.lines if line.startswith("baseOffset")]
    assert (ran.status, validity) == (0, ["false"] + ["true"] * 6)


def test_the_dump_continues_after_records_that_cannot_be_decompressed(
    folder: Path, run_tool: RunTool
) -> None:
    flip(folder / f"{FIRST}.log", 214 + 61 + 20)  # within the gzip data of the second batch
    ran = run_tool("kafka-dump-log", "--files", f"{folder}/{FIRST}.log", "--print-data-log")
    assert ran.status == 0
    assert sum(line.startswith("baseOffset") for line in ran.lines) == 7
    assert sum("the records of this batch cannot be read" in line for line in ran.lines) == 1


def test_a_torn_tail_is_counted(folder: Path, run_tool: RunTool) -> None:
    log = folder / f"{FIRST}.log"
    log.write_bytes(log.read_bytes()[:900])
    ran = run_tool("kafka-dump-log", "--files", str(log))
    assert ran.lines[-1] == f"Found 10 invalid bytes at the end of {FIRST}.log"


def test_bytes_that_are_no_batch_are_counted(folder: Path, run_tool: RunTool) -> None:
    log = folder / f"{FIRST}.log"
    log.write_bytes(b"\xff" * 100)
    ran = run_tool("kafka-dump-log", "--files", str(log))
    assert ran.lines[-1] == f"Found 100 invalid bytes at the end of {FIRST}.log"


def test_an_empty_segment_is_fine(folder: Path, run_tool: RunTool) -> None:
    (folder / f"{FIRST}.log").write_bytes(b"")
    ran = run_tool("kafka-dump-log", "--files", f"{folder}/{FIRST}.log", "--print-data-log")
    assert (ran.status, ran.lines[-1]) == (0, "Log starting offset: 0")


def test_gaps_between_offsets_are_listed_at_the_end(folder: Path, run_tool: RunTool) -> None:
    log = folder / f"{FIRST}.log"
    data = log.read_bytes()
    log.write_bytes(data[:214] + data[356:])
    ran = run_tool("kafka-dump-log", "--files", str(log), "--deep-iteration")
    assert ran.errors.splitlines() == [f"Non-consecutive offsets in {log}", "  2 is followed by 6"]


def test_a_mismatch_of_index_and_log_is_reported(folder: Path, run_tool: RunTool) -> None:
    flip(folder / f"{FIRST}.index", 3)
    ran = run_tool("kafka-dump-log", "--files", f"{folder}/{FIRST}.index", "--verify-index-only")
    assert ran.errors.splitlines() == [
        f"Mismatches in :{folder}/{FIRST}.index",
        "  Index offset: 4, log offset: 5",
    ]


def test_a_mismatch_of_time_index_and_log_is_reported(folder: Path, run_tool: RunTool) -> None:
    flip(folder / f"{FIRST}.timeindex", 7)
    flip(folder / f"{FIRST}.timeindex", 12 + 11)
    ran = run_tool("kafka-dump-log", "--files", f"{folder}/{FIRST}.timeindex")
    assert ran.errors.splitlines() == [
        f"Found timestamp mismatch in :{folder}/{FIRST}.timeindex",
        "  Index timestamp: 1700000001003, log timestamp: 1700000001002",
        "The following indexed offsets are not found in the log.",
        "Indexed offset: 10, found log offset: 11",
    ]


def test_a_corrupt_index_fails_the_sanity_check(folder: Path, run_tool: RunTool) -> None:
    index = folder / f"{FIRST}.index"
    index.write_bytes(index.read_bytes() + b"\1\2\3")
    ran = run_tool("kafka-dump-log", "--files", str(index), "--index-sanity-check")
    assert ran.status == 1
    assert ran.errors.startswith(f"Corrupt index found, index file ({index}): ")


def test_an_index_without_its_log_is_reported(folder: Path, run_tool: RunTool) -> None:
    (folder / f"{FIRST}.log").unlink()
    ran = run_tool("kafka-dump-log", "--files", f"{folder}/{FIRST}.index")
    assert (ran.status, f"there is no {FIRST}.log beside it" in ran.errors) == (1, True)


def test_reserved_space_in_an_index_is_not_printed(folder: Path, run_tool: RunTool) -> None:
    index = folder / f"{FIRST}.index"
    index.write_bytes(index.read_bytes() + bytes(10 * 1024 * 1024 - 24))
    ran = run_tool("kafka-dump-log", "--files", str(index))
    assert ran.lines[1:] == [
        "offset: 5 position: 214",
        "offset: 11 position: 501",
        "offset: 16 position: 797",
    ]


def test_a_corrupt_producer_snapshot_is_reported(folder: Path, run_tool: RunTool) -> None:
    flip(folder / "00000000000000000025.snapshot", 20)
    ran = run_tool("kafka-dump-log", "--files", f"{folder}/00000000000000000025.snapshot")
    assert (ran.status, "producer snapshot is corrupt" in ran.errors) == (1, True)


def test_checkpoints_are_printed(folder: Path, run_tool: RunTool) -> None:
    offsets = folder / "recovery-point-offset-checkpoint"
    offsets.write_text("0\n2\nb 0 7\na 1 5\n")
    ran = run_tool("kafka-dump-log", "--files", f"{folder}/leader-epoch-checkpoint,{offsets}")
    assert ran.lines == [
        f"Dumping {folder}/leader-epoch-checkpoint",
        "epoch: 0 startOffset: 0",
        f"Dumping {offsets}",
        "topic: a partition: 1 offset: 5",
        "topic: b partition: 0 offset: 7",
    ]


@pytest.mark.parametrize(
    ("files", "problem"),
    [("nope.log", "--files: nope.log does not exist"), (".", "--files: . is a folder: name the files in it")],
)
def test_a_path_that_is_no_file_is_named(files: str, problem: str, run_tool: RunTool) -> None:
    ran = run_tool("kafka-dump-log", "--files", files)
    assert (ran.status, ran.errors) == (1, f"{problem}\n")


def test_the_files_of_our_own_broker_are_read(tmp_path: Path, run_tool: RunTool) -> None:
    from barnabas.testing import Broker

    with Broker(tmp_path / "data") as broker:
        broker.create_topic("mine")
        run_tool(
            "kafka-console-producer",
            "--bootstrap-server",
            broker.bootstrap,
            "--topic",
            "mine",
            input="hello\n",
        )
    records = run_tool("kafka-dump-log", "--files", f"{tmp_path}/data/mine-0/{FIRST}.log", "--print-data-log")
    assert records.lines[-1].endswith(" payload: hello")
    metadata = f"{tmp_path}/data/__cluster_metadata-0/{FIRST}.log"
    ran = run_tool("kafka-dump-log", "--files", metadata, "--cluster-metadata-decoder")
    decoded = [json.loads(line.partition(" payload: ")[2]) for line in ran.lines if " payload: " in line]
    assert [each["data"]["name"] for each in decoded if each["type"] == "TOPIC_RECORD"] == ["mine"]
