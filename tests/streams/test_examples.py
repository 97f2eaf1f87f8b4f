"""The examples of docs/streams.md run: in the test driver, and on Spark with the same last values."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "streams.md"
SECTIONS = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)[1:]
EXAMPLES = {
    section.splitlines()[0]: found[1]
    for section in SECTIONS
    if (found := re.search(r"```python\n(.*?)```", section, re.DOTALL))
}
NAMES = [
    "Word count",
    "Favourite colours",
    "Bank balances",
    "User enrichment with a global table",
    "Page views per region",
    "Error counts per minute",
    "Possible fraud",
    "Processors",
]


def test_the_page_has_the_examples() -> None:
    assert list(EXAMPLES) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_example_gives_the_results_of_the_page(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_example(name, monkeypatch).builder.build().nodes


def run_example(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = types.ModuleType("example")
    monkeypatch.setitem(sys.modules, "example", module)  # dataclasses look their module up
    code = compile(EXAMPLES[name], f"{PAGE.name}: {name}", "exec", dont_inherit=True)
    exec(code, module.__dict__)
    return module
