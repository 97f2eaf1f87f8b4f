"""The archive for executors: made once for each content, importable, and refused where it cannot run."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="needs the extra `spark`")

from barnabas.engine.shipping import archive as archives
from barnabas.engine.shipping.archive import SHIPPED, archive, contents, package_folder, write
from barnabas.engine.shipping.distributions import (
    NEEDED,
    PROVIDED_DISTRIBUTIONS,
    closure,
    digest,
    files_of,
)
from barnabas.engine.shipping.executors import ExecutorFacts, PackageError, check, explained, probe_functions

SMALL = ("cramjam", "crc32c")
FACTS = ExecutorFacts("far", "3.11", "/usr/bin/python3.11", "linux-x86_64", (), "")


def test_libraries_of_executors_are_closed_without_what_pyspark_brings() -> None:
    names = {str(each.metadata["Name"]).lower() for each in closure(NEEDED, PROVIDED_DISTRIBUTIONS)}
    assert {"cramjam", "crc32c", "numba", "llvmlite", "fastavro", "cffi"} <= names
    assert not names & {"pyspark", "pyarrow", "pandas", "numpy", "duckdb", "uvloop"}


def test_an_archive_is_made_once_for_each_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.setattr(archives, "NEEDED", SMALL)
    monkeypatch.setattr(archives, "package_folder", lambda: package)
    first = archive(folder=tmp_path)
    made = first.stat().st_ino
    assert archive(folder=tmp_path).stat().st_ino == made
    (package / "__init__.py").write_text("changed = True")
    assert archive(folder=tmp_path) != first


def test_old_archives_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "NEEDED", ())
    package = tmp_path / "changed"
    package.mkdir()
    monkeypatch.setattr(archives, "package_folder", lambda: package)
    for number in range(archives.KEPT + 3):
        (package / "__init__.py").write_text(str(number))
        newest = archive(folder=tmp_path / "cache")
    found = list((tmp_path / "cache").iterdir())
    assert len(found) == archives.KEPT and newest in found


def test_the_unpacked_archive_is_imported_with_its_libraries(tmp_path: Path) -> None:
    """As Spark does it: the folder `barnabas` lies in a folder that is on the path."""
    libraries = closure(SMALL, PROVIDED_DISTRIBUTIONS)
    path = tmp_path / "archive.zip"
    files = [each.under(SHIPPED) for found in libraries for each in files_of(found)]
    write(str(path), contents(package_folder(), files))
    with zipfile.ZipFile(path) as packed:
        packed.extractall(tmp_path / "work" / "barnabas")
    program = (
        "import sys, json; sys.path.insert(0, sys.argv[1]); import barnabas.records.compression, cramjam;"
        " print(json.dumps([barnabas.__file__, cramjam.__file__]))"
    )
    # -S: without the libraries of this environment.
    command = [sys.executable, "-I", "-S", "-c", program, str(tmp_path / "work")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in json.loads(done.stdout):
        assert name.startswith(str(tmp_path / "work" / "barnabas"))


def test_libraries_that_executors_lack_are_found_by_workers_that_looked_before(tmp_path: Path) -> None:
    program = """
import importlib.util, sys
from barnabas.engine.shipping.executors import probe_functions
LateModuleFinder = probe_functions()["LateModuleFinder"]
folder = sys.argv[1] + "/barnabas/_lacking"
sys.path.append(folder)
assert importlib.util.find_spec("only_there") is None
sys.meta_path.append(LateModuleFinder())
import os
os.makedirs(folder)
open(folder + "/only_there.py", "w").write("found = True")
import only_there
assert only_there.found
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_digest_changes_with_every_byte_of_the_package(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("1")
    before = digest(tmp_path, [])
    (tmp_path / "a.py").write_text("2")
    assert digest(tmp_path, []) != before


def test_the_probe_knows_the_package_that_is_here() -> None:
    functions = probe_functions()
    found = json.loads(functions["probe"](0))
    assert found["content"] == functions["content"]() != ""
    assert found["python"] == f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert found["missing"] == []


def test_libraries_are_not_shipped_to_another_kind_of_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.system", lambda: "Linux")
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    check([FACTS])
    with pytest.raises(PackageError, match=r"executor far is linux-aarch64.*spark\.barnabas\.package"):
        check([FACTS, replace(FACTS, platform="linux-aarch64")])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11",
            "executors run Python 3.9, this process runs Python 3",
        ),
        ('java.io.IOException: Cannot run program "python3.11": error=2', "executors cannot run python3.11"),
        ("/usr/bin/python3: No module named pyspark", "has no pyspark"),
        ("something else", "executors do not run Python functions: something else"),
    ],
)
def test_an_executor_that_cannot_run_our_functions_is_explained(text: str, words: str) -> None:
    assert words in str(explained(RuntimeError(text)))
