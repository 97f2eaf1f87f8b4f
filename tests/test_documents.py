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


@pytest.mark.parametrize("document", OF_TODAY, ids=lambda path: path.name)
def test_sentences_do_not_begin_with_a_relative_clause(document: Path) -> None:
    text = re.sub(r"^```.*?^```|^    .*?$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(
        r"(?:^|[.:|] |^- )((?:Who|Whoever|What|Whatever|Whose|Whichever) [^.?]*\.)", text, re.MULTILINE
    )
    assert not found


def test_decisions_are_numbered_from_one_without_holes() -> None:
    numbers = [int(path.name[:4]) for path in DECISIONS]
    assert numbers == [*range(1, len(numbers) + 1)], "give a new decision the next free number"
    assert not [path.name for path in DECISIONS if not path.read_text().startswith(f"# {path.name[:4]} ")]


def test_the_index_has_every_decision_in_order() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    assert re.findall(r"^\| \[\d{4}\]\((\S+)\)", index, re.MULTILINE) == [path.name for path in DECISIONS]


@pytest.mark.parametrize("document", [*OF_TODAY, *DECISIONS], ids=lambda path: path.name)
def test_links_to_decisions_show_the_number_of_the_page(document: Path) -> None:
    links = re.findall(r"\[(?:decision )?(\d{4})\]\((?:\S*/)?(\d{4})-[^)]+\.md", document.read_text())
    assert not [link for link in links if link[0] != link[1]]


def test_code_names_decisions_that_exist() -> None:
    named = {
        (number, path.name)
        for folder in ("src", "tests", "bench")
        for path in (ROOT / folder).rglob("*.py")
        for number in re.findall(r"\bdecisions?[ /](0\d{3})\b", path.read_text())
    }
    assert named
    assert not [each for each in sorted(named) if int(each[0]) not in range(1, len(DECISIONS) + 1)]


def test_the_index_of_documents_has_every_page() -> None:
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    listed = re.findall(r"\]\((\w[\w-]*\.md)\)", (ROOT / "docs" / "README.md").read_text())
    assert pages == {*listed}
    assert len(listed) == len({*listed}), "a page is listed twice"
