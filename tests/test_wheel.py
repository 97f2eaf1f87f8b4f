"""The wheel has all that the package needs: the README's line that installs it gives a broker that starts."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
# It reads a file of each kind that is no Python module, and starts a broker.
PROGRAM = """
import sys
import barnabas
assert barnabas.__file__.startswith(sys.argv[1]), barnabas.__file__
from barnabas.sql.syntax.parsing import parse_statement
print(parse_statement("CREATE STREAM s (id INT KEY) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');"))
from importlib import resources
for name in ("sql/functions/table.json", "engine/delta/java/log-store.jar"):
    assert resources.files("barnabas").joinpath(name).read_bytes()
from barnabas.testing import Broker
with Broker() as broker:
    broker.create_topic("orders", partitions=3)
print("started")
"""


def test_package_data_names_every_file_that_is_no_module() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["barnabas"]
    package = SOURCES / "barnabas"
    named = {path for pattern in patterns for path in package.glob(pattern)}
    others = {
        path
        for path in package.rglob("*")
        if path.is_file() and path.suffix != ".py" and "__pycache__" not in path.parts
    }
    assert others and others == named


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_wheel_that_was_just_built_starts_a_broker(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(tmp_path)]
    subprocess.run([*build, str(ROOT)], check=True)
    [wheel] = tmp_path.glob("barnabas-*.whl")
    place = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place)]
    subprocess.run([*install, str(wheel)], check=True)
    environment = dict(os.environ, PYTHONPATH=str(place))
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(place)],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert found.stdout.splitlines()[-1] == "started"
    assert (place / "bin" / "kafka-topics.sh").exists()
