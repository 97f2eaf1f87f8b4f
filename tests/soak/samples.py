"""Memory and descriptors of processes over time, and whether they stayed flat.

In: process ids. Out: samples, a table of them, and complaints. The first third of the time is for warming up:
caches fill, pools grow to the load. The last third is held against the middle one.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
EVERY_S_MIN = 1.0
# The allocator keeps what a burst needed, in arenas of 1 MiB (Python) and 64 MiB reserved (glibc): a process
# that leaks nothing moves by a few MiB. A leak of 100 bytes for each of 270,000 connections is 26 MiB.
GROWTH_SHARE_MAX = 0.04
GROWTH_BYTES_MAX = 4 * MIB
DESCRIPTORS_MORE_MAX = 10  # segments that roll, a log that is being deleted


@dataclass(frozen=True, slots=True)
class Sample:
    at_s: float
    resident_bytes: int
    proportional_bytes: int
    descriptors: int
    threads: int


def sample(pid: int, started: float) -> Sample:
    fields = {}
    for name in ("smaps_rollup", "status"):
        for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            key, _, value = line.partition(":")
            fields[key] = value.split()
    return Sample(
        time.monotonic() - started,
        int(fields["Rss"][0]) * 1024,
        int(fields["Pss"][0]) * 1024,
        descriptors(pid),
        int(fields["Threads"][0]),
    )


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


class Watch(threading.Thread):
    """Takes a sample of each process every few seconds."""

    def __init__(self, pids: Sequence[int], seconds: float) -> None:
        super().__init__(name="watch")
        self.samples: dict[int, list[Sample]] = {pid: [] for pid in pids}
        self._every_s = max(EVERY_S_MIN, seconds / 300)
        self._stopping = threading.Event()

    def run(self) -> None:
        started = time.monotonic()
        while not self._stopping.wait(self._every_s):
            for pid, samples in self.samples.items():
                try:
                    samples.append(sample(pid, started))
                except OSError:  # it is gone: whoever asked it for something will say so
                    return

    def finish(self) -> None:
        self._stopping.set()
        self.join(60)


def complaints(samples: Sequence[Sample]) -> list[str]:
    """What grew from the middle third to the last."""
    third = len(samples) // 3
    if third < 3:
        return [f"only {len(samples)} samples were taken"]
    middle, last = samples[third : 2 * third], samples[2 * third :]
    found = []
    for what in ("resident_bytes", "proportional_bytes"):
        before, after = (statistics.median(getattr(each, what) for each in part) for part in (middle, last))
        allowed = max(GROWTH_BYTES_MAX, GROWTH_SHARE_MAX * before)
        if after - before > allowed:
            found.append(f"{what} grew from {before / MIB:.1f} to {after / MIB:.1f} MiB")
    # The highest ones: connections that come and go make single samples say little.
    before, after = (
        statistics.quantiles((each.descriptors for each in part), n=10)[-1] for part in (middle, last)
    )
    if after - before > DESCRIPTORS_MORE_MAX:
        found.append(f"descriptors grew from {before:.0f} to {after:.0f}")
    before, after = (max(each.threads for each in part) for part in (middle, last))
    if after > before:
        found.append(f"threads grew from {before} to {after}")
    return found


def table(samples: Sequence[Sample], rows: int = 30) -> str:
    step = max(1, len(samples) // rows)
    lines = ["      s    RSS MiB    PSS MiB   fds  threads"]
    lines += [
        f"{each.at_s:7.0f} {each.resident_bytes / MIB:10.1f} {each.proportional_bytes / MIB:10.1f}"
        f" {each.descriptors:5} {each.threads:8}"
        for each in samples[::step]
    ]
    return "\n".join(lines)
