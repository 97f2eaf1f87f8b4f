"""What the pages and the notebook show runs as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spark_sessions import JAVA_OPTIONS

pytest.importorskip("pyspark", reason="needs the extra `spark`")

ROOT = Path(__file__).parents[2]


def blocks(page: str) -> list[str]:
    """Python blocks of a page that use Spark."""
    found = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    return [each for each in found if "SparkSession" in each]


def run(code: str, folder: Path) -> str:
    path = folder / "example.py"
    path.write_text(code)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_SUBMIT_OPTS": JAVA_OPTIONS}
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, timeout=300, env=environment, cwd=folder
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.timeout(400)
def test_the_example_of_the_pages_runs(tmp_path: Path) -> None:
    """Both pages show the same one: a start of Spark takes many seconds."""
    [code] = {block for page in ("README.md", "docs/spark.md") for block in blocks(page)}
    assert "|143|" in run(code, tmp_path).replace(" ", "")


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_notebook_runs(tmp_path: Path) -> None:
    notebook = json.loads((ROOT / "examples" / "spark_topics.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    cells[-2] = cells[-2].replace("spark.read.format", "print(spark.read.format", 1) + ")"
    assert run("\n".join(cells), tmp_path).strip().endswith("99")
