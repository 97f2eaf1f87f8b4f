"""mypy follows the types of keys and values through topologies, and refuses programs that mistake them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from mypy import api

HERE = Path(__file__).parent
SOURCES = HERE.parents[2] / "src"


@pytest.fixture(scope="module")
def errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[int, str]]:
    """The errors that mypy finds in both files, by file and line."""
    before = os.environ.get("MYPYPATH")
    os.environ["MYPYPATH"] = str(SOURCES)
    cache = tmp_path_factory.mktemp("mypy")
    try:
        names = [str(HERE / "followed.py"), str(HERE / "refused.py")]
        said, failed, _ = api.run(["--strict", "--no-pretty", "--cache-dir", str(cache), *names])
    finally:
        del os.environ["MYPYPATH"]
        if before is not None:
            os.environ["MYPYPATH"] = before
    assert failed == "", failed
    found: dict[str, dict[int, str]] = {"followed.py": {}, "refused.py": {}}
    for name, line, text in re.findall(r"(\w+\.py):(\d+): error: (.*)", said):
        found[name].setdefault(int(line), text)
    return found


def test_mypy_infers_the_keys_and_values_of_each_operator(errors: dict[str, dict[int, str]]) -> None:
    assert errors["followed.py"] == {}


def test_mypy_refuses_each_wrong_program_and_no_other_line(errors: dict[str, dict[int, str]]) -> None:
    lines = (HERE / "refused.py").read_text().splitlines()
    wrong = {at for at, line in enumerate(lines, 1) if line.endswith("# refused")}
    assert len(wrong) >= 40
    assert set(errors["refused.py"]) == wrong, errors["refused.py"]


def test_the_typed_topology_can_be_built() -> None:
    """The operators of `followed` accept at run time what their signatures accept."""
    from tests.streams.types import followed

    assert len(followed.builder.build().nodes) > 60
