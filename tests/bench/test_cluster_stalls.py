"""A tiny round of the phases of a cluster with many partitions; no assertion depends on times."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import cluster_stalls


@pytest.mark.long  # the rows of one node stay in the short lane
def test_every_phase_is_measured(tmp_path: Path) -> None:
    watched = cluster_stalls.Watched(tmp_path, 20, 20)
    watched.settle_s = 0.2
    said: list[str] = []
    try:
        cluster_stalls.measure(watched, said.append, kill=False, rest_s=0.2)
    finally:
        watched.cluster.__exit__(None, None, None)
    names = [phase.name.split(",")[0] for phase in watched.phases]
    assert names == [
        "at rest",
        "create",
        "at rest",
        "metadata of all",
        "stop of a node",
        "the node catches up",
        "delete",
    ]
    assert all(phase.took_s > 0 and phase.wait_ms > 0 for phase in watched.phases)
    assert not list(tmp_path.glob("barnabas-cluster-*"))
