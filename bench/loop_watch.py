"""Runs a broker and records long turns of its loop: `loop_watch.py OUT [--stacks] -m barnabas ...`.

In: the broker's command line. Out: a line of OUT for each turn above a millisecond or two, with four numbers:
the end of the turn (monotonic time), its milliseconds by the clock, those in which the loop's thread waited
for a processor (0 if the system does not report it), and its milliseconds of processor time. The second
number less the third is the delay that the broker itself caused: its work, the disk, its threads. With
`--stacks` a thread writes the stack of the loop's thread while a turn takes too long, which costs some speed.
"""

from __future__ import annotations

import asyncio
import gc
import os
import runpy
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from barnabas.broker import process

TURN_S = 0.001
NOTED_MS = 2.5
STACK_AFTER_S = 0.015
STACK_EVERY_S = 0.004
DEPTH = 14


@dataclass(frozen=True, slots=True)
class Turn:
    at_s: float
    wall_ms: float
    delayed_ms: float
    cpu_ms: float

    @property
    def own_ms(self) -> float:
        """The milliseconds by the clock without those of waiting for a processor."""
        return self.wall_ms - self.delayed_ms


def read_turns(path: Path) -> list[Turn]:
    lines = (line.split() for line in path.read_text().splitlines() if line and line[0].isdigit())
    return [Turn(*map(float, values)) for values in lines if len(values) == 4]


class LoopWatch:
    """A timer of a millisecond. The processor time between two of its calls is at least that of the longest
    turn between them, and at most a millisecond more."""

    def __init__(self, loop: asyncio.AbstractEventLoop, out: TextIO) -> None:
        self._loop = loop
        self._out = out
        self._thread_id = threading.get_ident()
        self._schedstat = open_schedstat()
        self._wall_s, self._cpu_s = time.monotonic(), time.thread_time()
        self._delayed_ms = self._waited_ms()
        self._collecting_s = 0.0
        gc.callbacks.append(self.note_collection)
        loop.call_later(TURN_S, self._on_time)

    def note_collection(self, phase: str, info: dict[str, int]) -> None:
        """Record collections of cyclic garbage, which stop all threads."""
        if phase == "start":
            self._collecting_s = time.thread_time()
            return
        cpu_ms = (time.thread_time() - self._collecting_s) * 1000
        if cpu_ms >= NOTED_MS:
            self._out.write(f"# garbage, generation {info['generation']}: {cpu_ms:.1f} ms\n")

    def _on_time(self) -> None:
        wall_s, cpu_s = time.monotonic(), time.thread_time()
        wall_ms, cpu_ms = (wall_s - self._wall_s) * 1000, (cpu_s - self._cpu_s) * 1000
        waited_ms = self._waited_ms()
        delayed_ms = waited_ms - self._delayed_ms
        self._wall_s, self._cpu_s, self._delayed_ms = wall_s, cpu_s, waited_ms
        if wall_ms >= NOTED_MS:
            self._out.write(f"{wall_s:.6f} {wall_ms:.2f} {delayed_ms:.2f} {cpu_ms:.2f}\n")
            self._out.flush()
        self._loop.call_later(TURN_S, self._on_time)

    def _waited_ms(self) -> float:
        """The total time that this thread has waited for a processor."""
        if self._schedstat is None:
            return 0.0
        return int(os.pread(self._schedstat, 100, 0).split()[1]) / 1e6

    def write_stacks(self) -> None:
        while True:
            time.sleep(STACK_EVERY_S)
            late_s = time.monotonic() - self._wall_s
            frame = sys._current_frames().get(self._thread_id)
            if late_s < STACK_AFTER_S or frame is None:
                continue
            shown = [
                f"{Path(each.filename).stem}.{each.name}:{each.lineno}"
                for each in traceback.extract_stack(frame)[-DEPTH:]
            ]
            self._out.write(f"# {late_s * 1000:.0f} ms: {' > '.join(shown)}\n")


def open_schedstat() -> int | None:
    """The nanoseconds that this thread ran, and that it waited for a processor (Linux)."""
    try:
        return os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)
    except OSError:
        return None


def watched(
    serve: Callable[..., Coroutine[Any, Any, None]], out: TextIO, *, stacks: bool
) -> Callable[..., Coroutine[Any, Any, None]]:
    async def serve_watched(*arguments: Any) -> None:
        watch = LoopWatch(asyncio.get_running_loop(), out)
        if stacks:
            threading.Thread(target=watch.write_stacks, daemon=True).start()
        await serve(*arguments)

    return serve_watched


def main() -> None:
    path, *arguments = sys.argv[1:]
    stacks = arguments[0] == "--stacks"
    module, *rest = arguments[2 if stacks else 1 :]
    sys.argv = [module, *rest]
    with Path(path).open("w") as out:
        process.serve = watched(process.serve, out, stacks=stacks)
        runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    main()
