"""Documents name what is there: modules by their path, decisions in the index, files behind links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "barnabas"
# Decisions and the changelog speak of their day.
OF_TODAY = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")} - {ROOT / "CHANGELOG.md"})
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("0*.md"))


@pytest.mark.parametrize("document", OF_TODAY, ids=lambda path: path.name)
def test_modules_are_where_documents_say(document: Path) -> None:
    named = set(re.findall(r"(?<![\w/])((?:\w+/)+\w+\.py)\b", document.read_text()))
    places = (PACKAGE, ROOT, ROOT / "src")
    assert not [name for name in sorted(named) if not any((place / name).is_file() for place in places)]


@pytest.mark.parametrize("document", [*OF_TODAY, *DECISIONS], ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", document.read_text())
    assert not [link for link in links if not (document.parent / link).exists()]


def test_the_index_has_every_decision_in_order() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    numbers = [int(path.name[:4]) for path in DECISIONS]
    assert numbers == sorted(set(numbers)), "two decisions have one number"
    assert re.findall(r"^\| \[\d{4}\]\((\S+)\)", index, re.MULTILINE) == [path.name for path in DECISIONS]
