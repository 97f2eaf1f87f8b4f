"""`python tests/lanes run [pytest's arguments]` runs the tests; `python tests/lanes slowest` shows where the
time of the last run went; `python tests/lanes prepare` fetches what tests need.

A run has two steps. All tests run in workers side by side. The files of tests that failed there run once
more, alone, one after the other: a test that fails in both steps makes the run red; one that passes now is
flaky, and is named at the very end and in `build/tests/flaky.txt`. Whole files are repeated because the tests
of a file may build on each other.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from lanes.kept import FOLDER, Kept

WORKERS_PER_CORE = 2  # about half of the tests' time is waiting
WORKERS_FOR_SPARK = 1  # waits for a Java machine most of its time
AGAIN_MAX = 30  # more failed tests than this are no flakes
SLOWEST = 40
TESTS_FAILED = 1  # pytest's exit status


def run(arguments: list[str]) -> int:
    folder = next((each.partition("=")[2] for each in arguments if each.startswith("--keep-in=")), FOLDER)
    kept = Kept(Path(folder))
    kept.forget_failures()
    started = time.monotonic()
    status = pytest("--keep=all", *workers(arguments), *arguments)
    say(f"The tests took {minutes(time.monotonic() - started)}; load average {os.getloadavg()[0]:.1f}.")
    failed = kept.failed()
    if status != TESTS_FAILED or not 0 < len(failed) <= AGAIN_MAX:
        return status
    say(f"{len(failed)} failed. Once more, alone:")
    started = time.monotonic()
    again = pytest("--keep=failed", "-n0", *options(arguments), *files_of(failed))
    say(f"That took {minutes(time.monotonic() - started)}.")
    red = set(failed).intersection(kept.failed()) if again in (0, TESTS_FAILED) else set(failed)
    kept.save_flaky(test for test in failed if test not in red)
    for test in failed:
        say(f"{'FAILED' if test in red else 'FLAKY'}: {test}")
    return status if red else 0


def pytest(*arguments: str) -> int:
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # workers and brokers would compile everything anew
    return subprocess.run([sys.executable, "-m", "pytest", "-q", *arguments], check=False).returncode


def workers(arguments: list[str]) -> list[str]:
    """As many as fit the machine, unless the caller says how many."""
    if any(each.startswith(("-n", "--numprocesses")) for each in arguments):
        return []
    return ["-n", str(WORKERS_PER_CORE * (os.cpu_count() or 1) + WORKERS_FOR_SPARK)]


def options(arguments: list[str]) -> list[str]:
    """Those of the arguments that are options. Paths are left out, and so are options that choose tests."""
    return [each for each in arguments if each.startswith("--") and not each.startswith("--num")]


def files_of(tests: list[str]) -> list[str]:
    """The files of these tests, each once, in the order of the tests."""
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))


def say(line: str) -> None:
    print(line, flush=True)


def minutes(seconds: float) -> str:
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


def slowest() -> int:
    kept = Kept()
    wall_s, last = kept.last_run()
    if not last:
        say("No run was kept yet: `make test` keeps one.")
        return 1
    seconds, processor = kept.seconds(), kept.processor()
    folders: dict[str, list[float]] = defaultdict(list)
    used: dict[str, float] = defaultdict(float)
    for test in last:
        folders[folder_of(test)].append(seconds[test])
    for file, used_s in processor.items():
        used[folder_of(file)] += used_s
    in_tests_s = sum(map(sum, folders.values()))
    say(f"The last run: {len(last)} tests in {minutes(wall_s)}; all tests together {minutes(in_tests_s)},")
    say(f"{sum(used.values()):.0f} s of processors apart from the reading of tests.\n\nBy folder:")
    for folder in sorted(folders, key=lambda name: -sum(folders[name])):
        tests = folders[folder]
        say(f"{sum(tests):8.1f} s {used[folder]:8.1f} s of processors {len(tests):6} tests  {folder}")
    say("\nFiles with most processor time:")
    for file in sorted(processor, key=lambda name: -processor[name])[:SLOWEST]:
        say(f"{processor[file]:8.1f} s  {file}")
    say("\nSlowest tests:")
    for test in sorted(last, key=lambda name: -seconds[name])[:SLOWEST]:
        say(f"{seconds[test]:8.1f} s  {test}")
    return 0


def folder_of(test: str) -> str:
    return "/".join(test.partition("::")[0].split("/")[:2])


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", *arguments]:
            sys.exit(run(arguments))
        case ["slowest"]:
            sys.exit(slowest())
        case ["prepare"]:
            from lanes.preparing import prepare

            prepare()
        case _:
            sys.exit(str(__doc__))
