"""`python tests/mutations` tries every mutant of the core's modules; arguments choose modules by a part of
their name. Mutants that no test notices are printed, and make the exit status 1. `--rules` plants the bugs
of `rules` instead, and prints as JSON which were noticed.
"""

from __future__ import annotations

import ast
import contextlib
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutations.mutants import mutants
from mutations.rules import RULES
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


def try_rules() -> int:
    """Print which of the planted bugs were noticed, and whether nothing was where nothing was planted."""
    noticed = {}
    for rule in RULES:
        with contextlib.suppress(LookupError):  # the rule's own test says so
            noticed[rule.broken] = is_noticed(rule.module, rule.tree(), [rule.tests])
    modules = {rule.module for rule in RULES}
    noticed["nothing"] = any(
        is_noticed(module, ast.parse(source_of(module).read_text()), tests_of(module)) for module in modules
    )
    print(json.dumps(noticed))
    return 0


def tests_of(module: str) -> list[str]:
    return sorted({rule.tests for rule in RULES if rule.module == module})


if __name__ == "__main__":
    sys.exit(try_rules() if sys.argv[1:] == ["--rules"] else main(sys.argv[1:]))
