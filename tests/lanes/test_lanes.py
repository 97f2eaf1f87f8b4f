"""Groups, flaky tests and durations of `make test`, tried on tests made for it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lanes.groups import SPARK, group_of, in_order
from lanes.kept import Kept
from lanes.preparing import parts, without_byte_code

MAIN = Path(__file__).parent
ROOT = MAIN.parent
SESSION = "def spark("
BARE = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # starts in half the time

# Fails the first time it runs, in whatever process: the second time its mark is there.
FLAKY = """
from pathlib import Path

def test_that_passes_when_repeated():
    mark = Path(__file__).with_suffix(".mark")
    was_there = mark.exists()
    mark.touch()
    assert was_there

def test_good():
    pass
"""
RED = "def test_that_never_passes():\n    assert False\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = -p xdist\n")
    (tmp_path / "conftest.py").write_text(
        f"import sys\nsys.path.insert(0, {str(MAIN.parent)!r})\npytest_plugins = ['lanes.plugin']\n"
    )
    return tmp_path


def run(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(MAIN), "run", f"--keep-in={project}/kept", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=project, env=BARE)


def test_a_test_that_passes_when_repeated_is_named_at_the_end_and_listed(project: Path) -> None:
    (project / "test_flaky.py").write_text(FLAKY)

    ran = run(project, "-n0")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == "FLAKY: test_flaky.py::test_that_passes_when_repeated"
    assert "1 failed, 1 passed" in ran.stdout
    assert (project / "kept/flaky.txt").read_text() == "test_flaky.py::test_that_passes_when_repeated\n"


def test_a_test_that_fails_again_makes_the_run_red(project: Path) -> None:
    (project / "test_flaky.py").write_text(FLAKY)
    (project / "test_red.py").write_text(RED)

    ran = run(project, "-n2")

    assert ran.returncode == 1
    assert sorted(ran.stdout.splitlines()[-2:]) == [
        "FAILED: test_red.py::test_that_never_passes",
        "FLAKY: test_flaky.py::test_that_passes_when_repeated",
    ]


def test_a_failed_test_is_repeated_after_the_tests_that_it_builds_on(project: Path) -> None:
    builds_on_another = "THERE = []\n\ndef test_first():\n    THERE.append(1)\n" + FLAKY.replace(
        "assert was_there", "assert was_there and THERE"
    )
    (project / "test_flaky.py").write_text(builds_on_another)

    ran = run(project, "-n0")

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-1] == "FLAKY: test_flaky.py::test_that_passes_when_repeated"


@pytest.mark.parametrize(
    "text", ["import nothing_of_that_name\n", "import os\ndef test_it():\n    os._exit(0)\n"]
)
def test_tests_that_cannot_be_read_or_end_their_process_make_the_run_red(project: Path, text: str) -> None:
    (project / "test_bad.py").write_text(text)

    assert run(project, "-n1").returncode != 0


def test_durations_are_kept_for_every_test_that_ever_ran(project: Path) -> None:
    (project / "test_one.py").write_text("import time\ndef test_one():\n    time.sleep(0.05)\n")
    assert run(project, "-n0").returncode == 0
    (project / "test_one.py").unlink()
    (project / "test_two.py").write_text("def test_two():\n    pass\n")
    assert run(project, "-n0").returncode == 0

    kept = Kept(project / "kept")
    assert kept.seconds()["test_one.py::test_one"] >= 0.05
    assert kept.last_run()[1] == ["test_two.py::test_two"]


def test_processor_seconds_of_a_file_include_the_processes_that_it_starts(project: Path) -> None:
    (project / "test_busy.py").write_text(
        "import subprocess, sys\nBUSY = 'import time\\nwhile time.process_time() < 0.3: pass'\n"
        "def test_busy():\n    subprocess.run([sys.executable, '-c', BUSY])\n"
    )
    (project / "test_idle.py").write_text("def test_idle():\n    pass\n")

    assert run(project, "-n2").returncode == 0

    used = Kept(project / "kept").processor()
    assert used["test_busy.py"] >= 0.29 > used["test_idle.py"]


def test_modules_are_read_again_when_they_changed(tmp_path: Path) -> None:
    new, read, changed = (tmp_path / f"test_{name}.py" for name in ("new", "read", "changed"))
    (tmp_path / "__pycache__").mkdir()
    for path in (new, read, changed):
        path.touch()
        if path != new:
            kept = f"{path.stem}.{sys.implementation.cache_tag}-pytest-9.0.0.pyc"
            (tmp_path / "__pycache__" / kept).touch()
    os.utime(changed, (time.time() + 60,) * 2)

    assert without_byte_code(tmp_path) == [changed, new]
    assert parts([new, read, changed], 2) == [[new, changed], [read]]


def test_a_file_is_a_group_where_no_rule_says_otherwise() -> None:
    assert group_of("tests/new/test_a.py::test_x[1-2]") == "tests/new/test_a.py"
    assert group_of("tests/spark/test_sink.py::test_x") == group_of("tests/spark/test_batch.py::test_y")


def test_all_tests_with_a_session_of_spark_share_a_java_machine() -> None:
    files = (
        *("connect/jobs/test_sink_jobs", "engine/test_running_queries", "spark/test_batch"),
        "pipeline/test_zones_flow",
    )
    assert {group_of(f"tests/{file}.py::test_x") for file in files} == {SPARK}
    assert group_of("tests/spark/test_options.py::test_x") == "tests/spark/test_options.py"


def test_groups_stay_whole_and_the_longest_comes_first() -> None:
    tests = ["a.py::one", "b.py::one", "a.py::two", "b.py::two"]

    assert in_order(tests, {"b.py::two": 1.0}) == ["b.py::one", "b.py::two", "a.py::one", "a.py::two"]


def test_folders_of_a_group_follow_one_another() -> None:
    """Each time a worker comes to another folder, it begins another session of Spark."""
    pipeline = [f"tests/pipeline/{name}::x" for name in ("test_zones_flow.py", "test_judging.py")]
    spark = [f"tests/spark/{name}::x" for name in ("test_batch.py", "test_sink.py")]

    assert in_order([pipeline[0], spark[0], pipeline[1], spark[1]], {}) == pipeline + spark


@pytest.mark.parametrize(
    "conftest", [path for path in ROOT.rglob("conftest.py") if SESSION in path.read_text()]
)
def test_a_session_of_spark_ends_with_its_folder(conftest: Path) -> None:
    """All sessions share one context. A session that outlives its folder is dead when the next one ends."""
    before = conftest.read_text().partition(SESSION)[0]

    assert before.endswith('@pytest.fixture(scope="package")\n')


def test_a_group_is_run_by_one_worker(project: Path) -> None:
    for name in "abc":
        (project / f"test_{name}.py").write_text(
            "import os, pathlib, pytest\n"
            "@pytest.mark.parametrize('number', range(9))\n"
            "def test_it(number):\n"
            "    pathlib.Path(__file__).with_suffix(f'.{os.getpid()}').touch()\n"
        )

    assert run(project, "-n2").returncode == 0
    workers = [path.suffix for path in project.glob("test_*.[0-9]*")]
    assert len(workers) == 3 and len(set(workers)) == 2
