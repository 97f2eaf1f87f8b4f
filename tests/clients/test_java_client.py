"""The Java client: an ordinary program with a producer, a consumer and an Admin, run against the broker."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.testing import apache

from .conftest import Served

PROGRAM = Path(__file__).with_name("JavaClient.java")
STEPS = [
    "topics",
    *(f"produced {compression}" for compression in ("none", "gzip", "snappy", "lz4", "zstd")),
    "consumed",
    "offsets",
    "described",
    "removed",
    "ok",
]


@pytest.mark.java
def test_a_java_program_is_served(java: None, broker: Served, fresh_name: Callable[[], str]) -> None:
    done = apache.java_program(PROGRAM, broker.bootstrap, fresh_name(), timeout=100)

    assert done.stdout.split("\n")[:-1] == STEPS, done.stderr
    assert done.returncode == 0
