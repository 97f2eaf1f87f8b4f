"""`python tests/mutations` tries every mutant of the core's modules; arguments choose modules by a part of
their name. Mutants that no test notices are printed, and make the exit status 1.
"""

from __future__ import annotations

import ast
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutations.mutants import mutants
from mutations.targets import TARGETS, Target, source_of
from mutations.trying import is_noticed


def main(wanted: list[str]) -> int:
    targets = [each for each in TARGETS if not wanted or any(part in each.module for part in wanted)]
    survivors = sum(try_all(target) for target in targets)
    return 1 if survivors else 0


def try_all(target: Target) -> int:
    """The number of mutants that survive without a reason."""
    started, tried, survivors = time.monotonic(), 0, 0
    source = source_of(target.module).read_text()
    if is_noticed(target.module, ast.parse(source), target.tests):
        print(f"{target.module}: its tests fail without a bug")
        return 1
    for mutant in mutants(source):
        tried += 1
        if not is_noticed(target.module, mutant.tree, target.tests):
            reason = target.reason_for(mutant)
            survivors += reason is None
            print(f"{target.module}, {mutant}{f' ({reason})' if reason else ''}", flush=True)
    took = time.monotonic() - started
    print(f"{target.module}: {tried} mutants, {survivors} survive; {took:.0f} s", flush=True)
    return survivors


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
