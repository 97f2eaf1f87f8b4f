"""`doctor`: verdicts, advice, and the exit status for scripts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.cli.node import host_facts
from barnabas.cli.node.host_checks import Finding, Verdict, examine
from barnabas.cli.node.host_facts import UNLIMITED, HostFacts, mount_of

from .conftest import RunTool

GOOD = HostFacts(
    system="linux",
    open_files=UNLIMITED,
    open_files_hard=UNLIMITED,
    processes=UNLIMITED,
    map_count=262_144,
    swappiness=1,
    swap_used_bytes=0,
    dirty_background_ratio=5,
    dirty_ratio=60,
    receive_buffer_bytes=2**21,
    send_buffer_bytes=2**21,
    tcp_receive_buffer_bytes=2**22,
    tcp_send_buffer_bytes=2**22,
    accept_queue=4096,
    huge_pages="madvise",
    clock_source="tsc",
    clock_synchronised=True,
    folder="data",
    file_system="xfs",
    mount_point="/data",
    mount_options=("rw", "noatime"),
    disk_free_share=0.5,
    inodes_free_share=0.5,
    folder_writable=True,
    sync_ms=1.0,
    partitions=3,
)


def findings(facts: HostFacts) -> dict[str, Finding]:
    return {finding.check: finding for finding in examine(facts)}


def test_a_good_machine_has_nothing_to_change() -> None:
    assert {finding.verdict for finding in examine(GOOD)} == {Verdict.GOOD}


@pytest.mark.parametrize(
    ("change", "check", "verdict", "told"),
    [
        (
            {"spark_python": "/usr/bin/python3", "spark_python_problem": "it does not have the package"},
            "Python of Spark's workers",
            Verdict.ADVICE,
            "export PYSPARK_PYTHON=",
        ),
        ({"open_files": 1_024}, "file descriptors", Verdict.BAD, "ulimit -n 100000"),
        ({"open_files": 65_536}, "file descriptors", Verdict.ADVICE, "LimitNOFILE=100000"),
        ({"open_files": 120_000, "partitions": 20_000}, "file descriptors", Verdict.ADVICE, "200000"),
        ({"map_count": 65_530}, "memory maps", Verdict.ADVICE, "sysctl -w vm.max_map_count=262144"),
        ({"swappiness": 60}, "swappiness", Verdict.ADVICE, "sysctl -w vm.swappiness=1"),
        ({"swap_used_bytes": 2**30}, "swap in use", Verdict.ADVICE, "more memory"),
        ({"dirty_background_ratio": 20}, "write-back starts at", Verdict.ADVICE, "dirty_background_ratio=5"),
        ({"dirty_ratio": 90}, "writers wait at", Verdict.ADVICE, "dirty_ratio=60"),
        ({"huge_pages": "always"}, "transparent huge pages", Verdict.ADVICE, "madvise"),
        ({"send_buffer_bytes": 212_992}, "net.core.wmem_max", Verdict.ADVICE, "net.core.wmem_max=2097152"),
        (
            {"tcp_receive_buffer_bytes": 65_536},
            "net.ipv4.tcp_rmem (max)",
            Verdict.ADVICE,
            "net.ipv4.tcp_rmem='4096 65536 2097152'",
        ),
        ({"accept_queue": 128}, "net.core.somaxconn", Verdict.ADVICE, "net.core.somaxconn=1024"),
        ({"mount_options": ("rw", "relatime")}, "mount options", Verdict.ADVICE, "remount,noatime /data"),
        ({"file_system": "nfs4"}, "file system", Verdict.BAD, "a disk of this machine"),
        ({"file_system": "tmpfs"}, "file system", Verdict.BAD, "a folder on a disk"),
        ({"file_system": "btrfs"}, "file system", Verdict.ADVICE, "xfs"),
        ({"disk_free_share": 0.1}, "space left", Verdict.ADVICE, "retention"),
        ({"disk_free_share": 0.01}, "space left", Verdict.BAD, "retention"),
        ({"folder_writable": False}, "data in data", Verdict.BAD, "chown"),
        ({"sync_ms": 80.0}, "time of an fsync", Verdict.ADVICE, "metadata.log.dir"),
        ({"clock_synchronised": False}, "clock", Verdict.ADVICE, "chrony"),
        ({"clock_source": "hpet"}, "clock source", Verdict.ADVICE, "tsc"),
        (
            {"missing_accelerators": ("uvloop", "crc32c")},
            "compiled packages",
            Verdict.ADVICE,
            "uvloop crc32c",
        ),
    ],
)
def test_a_bad_value_is_reported_with_its_remedy(
    change: dict[str, object], check: str, verdict: Verdict, told: str
) -> None:
    found = findings(replace(GOOD, **change))[check]  # type: ignore[arg-type]
    assert found.verdict is verdict
    assert told in found.change
    assert found.why


def test_an_unknown_fact_is_no_problem() -> None:
    found = examine(HostFacts(system="darwin"))
    assert {finding.verdict for finding in found} == {Verdict.GOOD, Verdict.UNKNOWN}


def test_gathering_facts_leaves_no_files(tmp_path: Path) -> None:
    facts = host_facts.gather(str(tmp_path))
    assert facts.open_files is not None and facts.open_files > 0
    assert facts.folder_writable
    assert facts.sync_ms is not None and facts.sync_ms > 0
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_checked_by_its_parent(tmp_path: Path) -> None:
    facts = host_facts.gather(str(tmp_path / "not" / "yet"))
    assert facts.folder_writable and facts.sync_ms is None and facts.partitions is None


def test_the_mount_of_a_path_is_the_nearest_one(monkeypatch: pytest.MonkeyPatch) -> None:
    table = "/dev/a / ext4 rw,relatime 0 0\n/dev/b /data xfs rw,noatime 0 0\n/dev/c /database ext4 rw 0 0"
    monkeypatch.setattr(host_facts, "read", lambda path: table)
    assert mount_of(Path("/data/kafka")) == ("/data", "xfs", ("rw", "noatime"))
    assert mount_of(Path("/datas")) == ("/", "ext4", ("rw", "relatime"))


def test_a_table_and_advice_are_printed(
    tmp_path: Path, run_tool: RunTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.cli.node.doctor.gather", lambda folder: replace(GOOD, swappiness=60))
    ran = run_tool("barnabas", "doctor", "--data", str(tmp_path))
    assert ran.status == 0
    assert "│ swappiness" in ran.output
    assert "Better for a busy broker:\n  swappiness: sysctl -w vm.swappiness=1\n    because " in ran.output


@pytest.mark.parametrize(
    ("change", "flags", "status"),
    [({}, (), 0), ({"swappiness": 60}, ("--strict",), 1), ({"open_files": 256}, (), 1)],
)
def test_the_exit_status_depends_on_the_verdicts(
    change: dict[str, object],
    flags: tuple[str, ...],
    status: int,
    run_tool: RunTool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("barnabas.cli.node.doctor.gather", lambda folder: replace(GOOD, **change))  # type: ignore[arg-type]
    assert run_tool("barnabas", "doctor", *flags).status == status


def test_json_has_a_line_for_each_check(run_tool: RunTool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("barnabas.cli.node.doctor.gather", lambda folder: replace(GOOD, swappiness=60))
    rows = [json.loads(line) for line in run_tool("barnabas", "doctor", "--json").lines]
    [bad] = [row for row in rows if row["verdict"] != "ok"]
    assert (bad["check"], bad["found"], bad["wanted"]) == ("swappiness", "60", "<= 1")
