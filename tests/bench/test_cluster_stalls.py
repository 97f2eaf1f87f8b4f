"""A tiny round of the phases of a cluster with many partitions; no assertion depends on times."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.rows import STALL_MS_MAX

from bench import cluster_page, cluster_stalls


def phase(wait_ms: float, cpu_ms: float) -> cluster_stalls.Phase:
    return cluster_stalls.Phase("p", 1.0, wait_ms, 0.1, wait_ms, wait_ms, cpu_ms, 0, 50.0)


def test_a_phase_fails_if_a_loop_worked_too_long_not_if_the_machine_was_busy() -> None:
    short, long = STALL_MS_MAX - 1, STALL_MS_MAX + 1
    assert [phase(*values).verdict for values in ((short, short), (long, short), (long, long))] == [
        "pass",
        "late",
        "FAIL",
    ]
    assert len(phase(short, short).cells()) == len(cluster_stalls.HEADS)


def test_a_run_keeps_the_parts_of_the_page_that_it_did_not_measure() -> None:
    first = cluster_page.first([("row", "1", "2", "0.5", "≤ 1", "pass")], 3, 96.0)
    many = cluster_page.section([phase(1, 1)], 100_000, 10_000, 50_000, 1.5)
    notes = cluster_page.NOTES + "\nkept\n"
    assert cluster_page.merged(f"old{notes}", first=first, many="") == first + notes
    assert cluster_page.merged(first + notes, first="", many=many) == first + many + notes
    assert cluster_page.merged(first + many + notes, first="", many="") == first + many + notes
    again = cluster_page.section([phase(2, 2)], 100_000, 10_000, 50_000, 1.5)
    assert cluster_page.merged(first + many + notes, first="new", many=again) == "new" + again + notes


@pytest.mark.long  # the rows of one node stay in the short lane
def test_every_phase_is_measured(tmp_path: Path) -> None:
    watched = cluster_stalls.Watched(tmp_path, 20, 20)
    watched.settle_s = 0.2
    said: list[str] = []
    try:
        cluster_stalls.measure(watched, said.append, kill=False, groups=20, rest_s=0.2)
    finally:
        watched.cluster.__exit__(None, None, None)
    names = [phase.name.split(",")[0] for phase in watched.phases]
    assert names == [
        "at rest",
        "create",
        "at rest",
        "metadata of all",
        "20 groups commit",
        "they are listed",
        "stop of a node",
        "the node catches up",
        "delete",
    ]
    assert all(phase.took_s > 0 and phase.wait_ms > 0 for phase in watched.phases)
    assert not list(tmp_path.glob("barnabas-cluster-*"))
