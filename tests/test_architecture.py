"""The table of folders in docs/ARCHITECTURE.md is true of the code, and so are a few rules of the house."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "barnabas"
IMPURE = {"asyncio", "socket", "os", "time", "random", "threading"}
EVERYTHING = "everything"


class Folder(NamedTuple):
    name: str
    is_pure: bool
    may_import: set[str]


def table() -> dict[str, Folder]:
    rows = {}
    for line in (ROOT / "docs" / "ARCHITECTURE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and (name := re.fullmatch(r"`(\w+)`", cells[0])):
            rows[name[1]] = Folder(
                name[1], cells[1] == "yes", {word for word in re.split(r",\s*", cells[3]) if word}
            )
    return rows


FOLDERS = table()


def imports(path: Path) -> Iterator[str]:
    """Modules that a file imports, `if TYPE_CHECKING` blocks and function bodies included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def files(folder: str) -> list[Path]:
    return sorted((PACKAGE / folder).rglob("*.py"))


def test_every_folder_is_in_the_table() -> None:
    real = {path.name for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert real == set(FOLDERS)


@pytest.mark.parametrize("folder", FOLDERS)
def test_imports_point_down(folder: str) -> None:
    allowed = FOLDERS[folder].may_import | {folder}
    if EVERYTHING in allowed:
        return
    wrong = {
        f"{path.relative_to(PACKAGE)} imports {module}"
        for path in files(folder)
        for module in imports(path)
        if module.startswith("barnabas.") and module.split(".")[1] not in allowed
    }
    assert not wrong


@pytest.mark.parametrize("folder", [folder.name for folder in FOLDERS.values() if folder.is_pure])
def test_pure_folders_do_not_reach_outside(folder: str) -> None:
    wrong = {
        f"{path.relative_to(PACKAGE)} imports {module}"
        for path in files(folder)
        for module in imports(path)
        if module.split(".")[0] in IMPURE
    }
    assert not wrong


def test_packages_hold_no_logic() -> None:
    allowed = (ast.Import, ast.ImportFrom, ast.Expr, ast.Assign, ast.AnnAssign)
    for path in PACKAGE.rglob("__init__.py"):
        wrong = [node for node in ast.parse(path.read_text()).body if not isinstance(node, allowed)]
        assert not wrong, f"{path.relative_to(PACKAGE)} has logic in line {wrong[0].lineno}"


def test_modules_have_a_docstring_and_a_size_that_can_be_read() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        assert ast.get_docstring(ast.parse(text)), f"{path.relative_to(PACKAGE)} has no docstring"
        assert text.count("\n") <= 500, f"{path.relative_to(PACKAGE)} is longer than 500 lines"


def test_no_drawers() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
    assert not [path for path in PACKAGE.rglob("*") if path.stem in drawers]


def test_every_handler_says_what_the_caller_needs() -> None:
    from barnabas.broker import routes

    routes.load_handlers()
    endpoints = {*routes.endpoints("broker"), *routes.endpoints("controller")}
    assert endpoints
    assert all(endpoint.needs.operation for endpoint in endpoints)


def test_versions_served_are_those_of_the_reference() -> None:
    from barnabas.broker import routes
    from barnabas.protocol import apis

    routes.load_handlers()
    for endpoint in routes.endpoints("broker"):
        known = apis.APIS[endpoint.key].versions
        assert endpoint.version_min in known and endpoint.version_max in known, endpoint.key.name
        assert endpoint.version_max + 1 not in known, f"{endpoint.key.name} misses versions"


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = (
        "import sys, barnabas.protocol;"
        "print([m for m in sys.modules if m.startswith('barnabas.protocol.messages.')])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
