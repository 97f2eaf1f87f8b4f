"""Which Python Spark's workers run is found before Spark says that there is no data source."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from barnabas.spark.workers_python import lacks_package, workers_python


def test_spark_takes_the_interpreter_of_the_environment_or_of_the_path(tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("")
    python.chmod(0o755)
    assert workers_python({"PATH": str(tmp_path)}) == str(python)
    assert workers_python({"PATH": str(tmp_path), "PYSPARK_PYTHON": sys.executable}) == sys.executable
    assert workers_python({"PYSPARK_DRIVER_PYTHON": "/a", "PYSPARK_PYTHON": "/b"}) == "/a"


def test_an_interpreter_without_the_package_is_named(tmp_path: Path) -> None:
    assert lacks_package(sys.executable) == ""
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho False\n")
    python.chmod(0o755)
    assert lacks_package(str(python)) == f"{python} does not have the package barnabas"
    assert "cannot be run" in lacks_package("/no/such/python")
