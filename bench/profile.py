"""Shows where our broker spends its time under the load of one row: `python -m bench profile ROW`.

In: the name of a row, a profiler. Out: a table of functions on the terminal, and the processor time of a
request. py-spy samples from another process (with `--native` also C code) and disturbs least. cProfile needs
only Python and counts calls, but makes calls look more expensive than they are. perf shows the kernel's
share. Does not know: Apache Kafka.
"""

from __future__ import annotations

import argparse
import collections
import pstats
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import groups, loads, tls, transactions
from bench.brokers import Barnabas, cpu_seconds
from bench.loads import Scale, Trial
from bench.pages import touch

PROFILERS = ("py-spy", "cprofile", "perf", "none")
SAMPLES_PER_SECOND = 500
LINES = 40
BYTES_MAX = 3_000_000_000
TRIALS = (*loads.TRIALS, *tls.TRIALS, *groups.TRIALS, *transactions.TRIALS)
# A thread of the pool that waits for work, with C frames and without.
IDLE = "SimpleQueue_get", ";_worker (concurrent/futures/thread.py"


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m bench profile", description="Profile our broker under one row's load."
    )
    names = [row for trial in TRIALS for row in trial.rows]
    found.add_argument("row", choices=names, metavar="ROW", help=", ".join(names))
    found.add_argument(
        "--with", dest="profiler", choices=PROFILERS, help="default: py-spy if it is installed, else cprofile"
    )
    found.add_argument("--seconds", type=float, default=5.0, help="of load while profiling")
    found.add_argument("--native", action="store_true", help="py-spy: C frames too")
    found.add_argument("--lines", action="store_true", help="py-spy: by line instead of by function")
    found.add_argument("--sort", default="tottime", help="cprofile: tottime or cumulative")
    return found


def main(arguments: list[str]) -> int:
    options = parser().parse_args(arguments)
    profiler = options.profiler or ("py-spy" if _py_spy() else "cprofile")
    trial = next(trial for trial in TRIALS if options.row in trial.rows)
    scale = Scale(seconds=options.seconds, bytes_max=BYTES_MAX, warm_pages=False)
    console = Console() if sys.stdout.isatty() else Console(width=150)
    with tempfile.TemporaryDirectory() as folder, tls.stores() as stores:
        out = Path(folder) / "profile"
        prefix = [sys.executable]
        if profiler == "cprofile":
            # -P: Python must not search this folder, or it would import this file as the standard `profile`.
            prefix += ["-P", str(Path(__file__).with_name("under_cprofile.py")), str(out)]
        broker = Barnabas(prefix=prefix)
        if trial in tls.TRIALS:
            broker.secure(stores)
        try:
            broker.start()
            if trial.prepare is not None:
                trial.prepare(broker, scale)
            trial.measure(broker, Scale(seconds=1.0, warm_pages=False))
            touch(BYTES_MAX)  # before the profiler looks
            _measured(trial, broker, scale, profiler, options, out, console)
            broker.stop()
            if profiler == "cprofile":
                pstats.Stats(str(out)).strip_dirs().sort_stats(options.sort).print_stats(LINES)
        finally:
            broker.close()
    return 0


def _measured(
    trial: Trial,
    broker: Barnabas,
    scale: Scale,
    profiler: str,
    options: argparse.Namespace,
    out: Path,
    console: Console,
) -> None:
    watcher = None
    if profiler == "py-spy":
        flags = ["--native"] if options.native else []
        flags += [] if options.lines else ["--function"]
        flags += ["--rate", str(SAMPLES_PER_SECOND), "--duration", str(max(1, int(scale.seconds)))]
        watcher = subprocess.Popen(
            [*_py_spy(), "record", "--pid", str(broker.pid), "-o", str(out), "--format", "raw", *flags],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        time.sleep(0.3)
    elif profiler == "perf":
        watcher = subprocess.Popen(
            ["perf", "record", "-q", "-g", "-p", str(broker.pid), "-o", str(out)], stderr=subprocess.PIPE
        )
        time.sleep(0.3)
    used, began = cpu_seconds(broker.pid), time.perf_counter()
    values = trial.measure(broker, scale)
    used, seconds = cpu_seconds(broker.pid) - used, time.perf_counter() - began
    for name, value in values.items():
        console.print(
            f"{name}: {value:,.1f}; the broker used {used / seconds:.0%} of a core in {seconds:.1f} s"
        )
    if watcher is None:
        return
    if profiler == "perf":
        watcher.terminate()
    _, errors = watcher.communicate(timeout=60)
    if profiler == "perf":
        command = [
            "perf",
            "report",
            "-i",
            str(out),
            "--no-children",
            "--stdio",
            "-g",
            "none",
            "--percent-limit",
            "0.7",
        ]
        print(subprocess.run(command, capture_output=True, text=True, check=False).stdout)
    elif not out.exists():
        console.print(f"py-spy found nothing: {errors.decode()}")
    else:
        samples(out.read_text(), console)


def samples(text: str, console: Console) -> None:
    """From folded stacks with counts: the share of each function, alone and with the functions it calls."""
    own: collections.Counter[str] = collections.Counter()
    with_callees: collections.Counter[str] = collections.Counter()
    total = 0
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if IDLE[0] in stack or IDLE[1] in stack[stack.rfind(";") :]:
            continue
        names = stack.split(";")
        total += int(count)
        own[names[-1]] += int(count)
        for name in set(names):
            with_callees[name] += int(count)
    table = Table(title=f"{total} samples")
    for head in ("own", "with callees", "function"):
        table.add_column(head, justify="left" if head == "function" else "right", no_wrap=True)
    shown = {name for name, _ in own.most_common(LINES)} | {
        name for name, _ in with_callees.most_common(LINES // 2)
    }
    for name in sorted(shown, key=lambda each: -own[each]):
        table.add_row(f"{own[name] / total:.1%}", f"{with_callees[name] / total:.1%}", name)
    console.print(table)


def _py_spy() -> list[str]:
    beside = Path(sys.executable).with_name("py-spy")
    if beside.exists():
        return [str(beside)]
    found = shutil.which("py-spy")
    return [found] if found else []
