"""A bug is planted for each rule of the core: one of the quick tests must notice it. `make mutate` tries
every mutant of these modules."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mutations.mutants import changes, mutants
from mutations.rules import RULES, Rule
from mutations.targets import TARGETS, Target, source_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def noticed() -> dict[str, bool]:
    """By what each bug does. One process plants them all: it forks for each, which is safe in it alone."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent), "--rules"], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, bool] = json.loads(done.stdout)
    return found


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.broken)
def test_a_bug_is_noticed(noticed: dict[str, bool], rule: Rule) -> None:
    rule.tree()  # says so where the text is not in the module any more
    assert noticed[rule.broken], f"{rule.text!r} becomes {rule.bug!r} in {rule.module}"


def test_nothing_is_noticed_where_there_is_no_bug(noticed: dict[str, bool]) -> None:
    assert not noticed["nothing"]


def test_a_mutant_differs_in_one_place() -> None:
    source = "def f(a, b):\n  'text'\n  log.info('x')\n  if a < b and a:\n    self.c = 1\n  return a\n"

    assert [mutant.change for mutant in mutants(source)] == [
        "a < b and a: and and or change places",
        "a < b: Lt becomes LtE",
        "self.c = 1: left out",
    ]


def test_the_second_of_two_comparisons_has_a_name_of_its_own() -> None:
    source = "def f(a, b, c):\n  return a < b < c\n"

    assert list(changes(source)) == [
        "a < b < c: Lt becomes LtE",
        "a < b < c: Lt becomes LtE (2)",
    ]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.module)
def test_a_change_that_no_test_can_tell_is_still_in_the_module(target: Target) -> None:
    assert target.same.keys() <= set(changes(source_of(target.module).read_text()))
