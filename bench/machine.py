"""Describes the machine of a run: processor, memory, kernel, versions."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from barnabas.testing.apache import VERSION as APACHE_VERSION
from bench import generator

# Measured at import. The load average of an undisturbed run ends at about 2; more means other programs ran.
LOAD_BEFORE = os.getloadavg()[0]
FILES_OF, FILES_EACH = 500, 5  # new partitions


def description() -> list[tuple[str, str]]:
    return [
        (
            "processor",
            f"{_from_file('/proc/cpuinfo', 'model name') or platform.processor()}, {os.cpu_count()} cores",
        ),
        ("memory", f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"),
        ("system", f"{platform.system()} {platform.release()}"),
        (
            "Barnabas",
            f"{version('barnabas')} on Python {platform.python_version()}, uvloop {version('uvloop')}",
        ),
        ("Apache Kafka", f"{APACHE_VERSION} on {_java()}, 1 GiB heap, G1"),
        ("client", f"confluent-kafka {version('confluent-kafka')}"),
        ("load generator", generator.name()),
        ("load average", f"{LOAD_BEFORE:.1f} before the run, {os.getloadavg()[0]:.1f} at its end"),
        ("command", " ".join(["python -m bench", *sys.argv[1:]])),
    ]


def partition_files_us(folder: Path) -> float:
    """The mean time, in microseconds, that the file system takes for the folder and the five files of a new
    partition. On ext4 it is tenths of a millisecond, and several milliseconds if thousands of files were
    deleted
    in the last minutes, because ext4 avoids inodes that were in use recently."""
    took: list[float] = []
    with tempfile.TemporaryDirectory(dir=folder) as name:
        for number in range(FILES_OF):
            partition = Path(name) / f"many-{number}"
            began = time.perf_counter()
            partition.mkdir()
            for file in range(FILES_EACH):
                (partition / str(file)).touch()
            took.append((time.perf_counter() - began) * 1e6)
    return statistics.mean(took)


def _from_file(path: str, field: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(field)), "")


def _java() -> str:
    try:
        printed = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    except OSError:
        return "no Java"
    return printed.splitlines()[0].replace('"', "") if printed else "Java"
