"""`python -m bench`: compares Barnabas with Apache Kafka, prints a table, writes `docs/benchmarks.md`.

`python -m bench profile ROW` shows where our broker spends its time under that row's load.
"""

from __future__ import annotations

import argparse
import compileall
import sys
from pathlib import Path

from rich.console import Console

import barnabas
from barnabas.testing import apache
from bench import loads, machine, report
from bench.rounds import Comparison
from bench.rows import ROWS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
KEPT = ROOT / "build" / "bench.json"


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(
        prog="python -m bench",
        description="Compare Barnabas with Apache Kafka, row by row, alternating between them.",
        epilog="rows: " + ", ".join(ROWS) + ". Also: python -m bench profile ROW",
    )
    found.add_argument(
        "rows", nargs="*", metavar="ROW", help="only these rows (default: all, and write the page)"
    )
    found.add_argument("--quick", action="store_true", help="short rounds with little data; a rough picture")
    found.add_argument("--rounds", type=int, help="rounds a row and broker (default 5, with --quick 2)")
    found.add_argument("--alone", choices=["barnabas", "apache"], help="measure only one of the two")
    found.add_argument("--write", action="store_true", help="write docs/benchmarks.md whatever was run")
    found.add_argument(
        "--continue",
        action="store_true",
        dest="goes_on",
        help=f"measure only rows that {KEPT.relative_to(ROOT)} lacks: a run that was interrupted goes on",
    )
    return found


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["profile"]:
        from bench.profile import main as profile

        return profile(arguments[1:])
    options = parser().parse_args(arguments)
    unknown = [name for name in options.rows if name not in ROWS]
    if unknown:
        print(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}", file=sys.stderr)
        return 2
    if options.alone != "barnabas" and (missing := apache.available()):
        print(f"cannot compare with Apache Kafka: {missing}", file=sys.stderr)
        return 2
    compileall.compile_dir(barnabas.__path__[0], quiet=2)  # as after an installation
    console = Console() if sys.stdout.isatty() else Console(width=150)
    scale = loads.QUICK if options.quick else loads.Scale()
    rounds = options.rounds or (2 if options.quick else 5)
    with console.status("starting") as status:
        comparison = Comparison(
            scale, rounds, status.update, alone=options.alone, kept_in=KEPT, goes_on=options.goes_on
        )
        results = comparison.run(options.rows)
    report.table(results, console)
    if options.write or not (options.rows or options.quick or options.alone):
        report.plot(results, DOCS / report.PLOT)
        page = DOCS / "benchmarks.md"
        notes = _notes(page)
        page.write_text(report.markdown(results, machine.description(), notes))
        console.print(f"written to {page}")
    for name, reason in comparison.failures.items():
        console.print(f"{name} was not measured: {reason}")
    is_good = all(result.holds for result in results if result.is_judged) and not comparison.failures
    return 0 if is_good else 1


def _notes(page: Path) -> str:
    """The section "Notes" of the page, which a new run keeps."""
    text = page.read_text() if page.exists() else ""
    _, mark, notes = text.partition("\n## Notes\n")
    return mark + notes


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
