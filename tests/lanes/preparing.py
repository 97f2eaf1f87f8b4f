"""What tests fetch or build once, before workers ask for it all at the same time.

In: nothing. Out: jars in the cache folder, the archive of Apache Kafka's classes, and the byte code of test
modules with pytest's asserts, which each worker would otherwise make for itself (20 seconds of a processor).
What cannot be fetched is left to the tests, which skip with the reason. It takes a second when everything is
there.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from barnabas.spark import jars
from barnabas.testing import apache, maven, spark_connector

TESTS = Path(__file__).parents[1]


def prepare() -> None:
    with ThreadPoolExecutor() as pool:
        for part in parts(without_byte_code(TESTS), os.cpu_count() or 1):
            pool.submit(read_tests, part)
        for step in (prepare_apache, prepare_streams, prepare_connector, *map(prepare_jars, jars.SETS)):
            pool.submit(step)


def prepare_apache() -> None:
    if apache.available() is None:
        apache.share_classes()


def prepare_streams() -> None:
    if apache.available() is None:
        with contextlib.suppress(maven.MavenError):
            apache.streams_jars()


def prepare_connector() -> None:
    spark_connector.available()


def prepare_jars(name: str) -> Callable[[], None]:
    def prepare_set() -> None:
        with contextlib.suppress(jars.JarError):
            jars.jars(name, say=lambda line: None)

    return prepare_set


def without_byte_code(tests: Path) -> list[Path]:
    """Test modules that pytest has not read since they changed."""

    def is_read(path: Path) -> bool:
        kept = path.parent.glob(f"__pycache__/{path.stem}.{sys.implementation.cache_tag}-pytest-*.pyc")
        return any(each.stat().st_mtime >= path.stat().st_mtime for each in kept)

    return sorted(path for path in tests.rglob("test_*.py") if not is_read(path))


def parts(paths: list[Path], count: int) -> list[list[Path]]:
    """As many as there are processors, each with every n-th file."""
    return [part for first in range(count) if (part := paths[first::count])]


def read_tests(paths: list[Path]) -> None:
    """pytest keeps what it makes of a module. A module that cannot be read is reported when tests run."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "pytest", "-qq", "-n0", "--collect-only", *map(str, paths)]
    subprocess.run(command, env=environment, cwd=TESTS.parent, capture_output=True, check=False)
