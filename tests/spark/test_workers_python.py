"""Which Python Spark's workers run is found before Spark says that there is no data source."""

from __future__ import annotations

import os
import shutil
import subprocess
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


def run(program: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """A driver in an environment that is not activated: the `python3` of its PATH lacks our package."""
    folder = tmp_path / "bin"
    folder.mkdir()
    java = Path(os.environ.get("JAVA_HOME", "/nowhere")) / "bin" / "java"
    for name, command in (("java", shutil.which("java") or str(java)), ("python3", "/usr/bin/python3")):
        (folder / name).symlink_to(os.path.realpath(command))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PY")}
    path = os.pathsep.join([str(folder), "/bin", "/usr/bin"])
    # The package is known to this interpreter only: a variable would be inherited by workers.
    found = f"import sys; sys.path[:0] = {[each for each in sys.path if each]!r}\n"
    return subprocess.run(
        [sys.executable, "-c", found + program],
        env={**kept, "PATH": path},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.parametrize(
    "statement", ["import pyspark_barnabas", "from barnabas.spark import use_this_python; use_this_python()"]
)
def test_a_driver_in_an_environment_that_is_not_activated_chooses_its_own_interpreter(
    statement: str, tmp_path: Path
) -> None:
    done = run(f"{statement}; import os; print(os.environ['PYSPARK_PYTHON'])", tmp_path)
    assert done.stdout.split() == [sys.executable], done.stderr


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_imported", [False, True])
def test_spark_finds_the_source_if_the_driver_imports_it_before_the_session(
    is_imported: bool, tmp_path: Path
) -> None:
    program = (
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        "read = spark.read.format('barnabas').option('kafka.bootstrap.servers', 'localhost:1')\n"
        "print(read.option('subscribe', 'orders').load().columns)\n"
    )
    done = run(("import pyspark_barnabas\n" if is_imported else "") + program, tmp_path)
    if is_imported:
        assert "'partition', 'offset'" in done.stdout, done.stderr
    else:
        assert done.returncode and "DATA_SOURCE_NOT_FOUND" in done.stderr


def test_an_interpreter_without_the_package_is_named(tmp_path: Path) -> None:
    assert lacks_package(sys.executable) == ""
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho False\n")
    python.chmod(0o755)
    assert lacks_package(str(python)) == f"{python} does not have the package barnabas"
    assert "cannot be run" in lacks_package("/no/such/python")
