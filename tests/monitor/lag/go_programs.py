"""Lag monitors written in Go, built once into a cache, and run beside ours.

`program(BURROW)` is the path of the binary. Tests are skipped with a reason where Go is missing, or the
module cannot be fetched: the proxy does not have every module at all times. A binary that was built from the
tag of the module's repository (`go build`) and put into the cache under its name is used as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

BUILD_TIMEOUT_S = 900.0
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "barnabas" / "go"


class Module(NamedTuple):
    path: str
    version: str
    name: str


BURROW = Module("github.com/linkedin/Burrow", "v1.9.5", "Burrow")
KAFKA_EXPORTER = Module("github.com/danielqsj/kafka_exporter", "v1.9.0", "kafka_exporter")
KMINION = Module("github.com/cloudhut/kminion/v2", "v2.3.5", "kminion")


def program(module: Module) -> Path:
    found = CACHE / f"{module.name}-{module.version}"
    if found.exists():
        return found
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    folder = CACHE / f"building-{os.getpid()}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        command = ["go", "install", f"{module.path}@{module.version}"]
        environ = {**os.environ, "GOBIN": str(folder)}
        try:
            built = subprocess.run(
                command, env=environ, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"{' '.join(command)} takes more than {BUILD_TIMEOUT_S:g} s")
        if built.returncode:
            reason = (built.stderr.strip().splitlines() or [f"exit status {built.returncode}"])[-1]
            pytest.skip(f"{' '.join(command)}: {reason}; or build it from its repository, as {found}")
        (folder / module.name).rename(found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return found


@contextmanager
def running(command: Sequence[str], folder: Path, environ: Mapping[str, str] | None = None) -> Iterator[Path]:
    """A program as a child; what it prints is in a file, whose path is given."""
    output = folder / f"{Path(command[0]).name}.txt"
    with output.open("wb") as file:
        child = subprocess.Popen(
            list(command), cwd=folder, env={**os.environ, **(environ or {})}, stdout=file, stderr=file
        )
    try:
        yield output
    finally:
        child.terminate()
        try:
            child.wait(10)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
