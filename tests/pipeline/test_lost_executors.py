"""Executors and Python workers that are killed while a batch is written leave every row once in each zone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra `pipeline`")

SCRIPT = Path(__file__).parent / "losing_executors.py"
ROWS = 6_000


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("victim", ["executor", "worker"])
def test_rows_are_written_once_whatever_executor_is_lost(tmp_path: Path, victim: str) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), victim],
        capture_output=True, text=True, timeout=1700, env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["killed"] >= 3
    broken = [number for number in range(ROWS) if number % 100 == 7]
    first: dict[str, int] = {}
    # Batches are read in the order of partitions; the first copy of a key that is read counts.
    assert found["raw"] == sorted(f"{number % 2}-{number // 2}" for number in range(ROWS))
    for number in range(ROWS):
        if number % 100 != 7:
            first.setdefault(f"k{number % 5000}", number)
    assert found["staging"] == sorted(first)
    assert len(found["trusted"]) == len(set(found["trusted"]))
    assert len(found["quarantine"]) == len(set(found["quarantine"]))
    assert len(found["trusted"]) + len(found["quarantine"]) == len(first) + len(broken)
