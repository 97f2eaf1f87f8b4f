"""The table of folders in docs/ARCHITECTURE.md is true of the code, and so are a few rules of the house."""

from __future__ import annotations

import ast
import functools
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
MODULES_MAX = 25  # in a folder, `__init__.py` not counted: more means that a room is missing

# Folders with more modules. `protocol/messages` and `broker/handlers` have one module for each API.
CROWDED = {
    "broker/handlers",
    "protocol/messages",
}
# Folders whose own modules import each other in circles. Tests fail when an entry is not needed any more.
TANGLED = {"protocol", "spark/formats"}


class Folder(NamedTuple):
    """A row of the table. `may_import` names folders that have the same parent, and the parent itself."""

    name: str
    is_pure: bool
    may_import: set[str]


def table() -> dict[str, Folder]:
    rows = {}
    for line in (ROOT / "docs" / "ARCHITECTURE.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and (name := re.fullmatch(r"`(\w+(?:/\w+)*)`", cells[0])):
            rows[name[1]] = Folder(
                name[1], cells[1] == "yes", {word for word in re.split(r",\s*", cells[3]) if word}
            )
    return rows


FOLDERS = table()
# A relative clause as the subject: the reader learns last what the sentence is about. Or a pronoun: there is
# nothing before a docstring that it could stand for.
RIDDLE = re.compile(
    r'\s*("""|# )(Who|Whoever|Whose|What|Whatever|Where|Wherever|Which|Whichever)\b'
    r'|\s*"""(That|Those|They|Them|It|Both)\b'
)


def folders() -> list[str]:
    """Every folder that holds modules, rooms of rooms included; the package itself is not among them."""
    found = {str(path.parent.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py")}
    return sorted(found - {"."})


class Facts(NamedTuple):
    """Of a module: what it imports, also apart from `if TYPE_CHECKING` blocks, its docstring and lines."""

    imports: list[str]
    imports_at_run_time: list[str]
    docstring: str | None
    lines: int


@functools.cache
def facts(path: Path) -> Facts:
    """A file is parsed once for all tests."""
    text = path.read_text()
    tree = ast.parse(text)
    both = (list(found_imports(tree, only_at_run_time)) for only_at_run_time in (False, True))
    return Facts(*both, ast.get_docstring(tree), text.count("\n"))


def imports(path: Path, *, only_at_run_time: bool = False) -> list[str]:
    """Modules that a file imports, function bodies included; `if TYPE_CHECKING` blocks too, unless told."""
    return facts(path).imports_at_run_time if only_at_run_time else facts(path).imports


def found_imports(tree: ast.AST, only_at_run_time: bool) -> Iterator[str]:
    for node in statements_of(tree):
        if only_at_run_time and isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield from found_imports(node, only_at_run_time)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if folder_of(inner) and is_module(inner) else node.module


def statements_of(node: ast.AST) -> Iterator[ast.AST]:
    """Those directly below: expressions hold no import, and are most of a tree."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        below = getattr(node, name, None)
        yield from below if isinstance(below, list) else ()


@functools.cache
def is_module(name: str) -> bool:
    place = PACKAGE.parent / name.replace(".", "/")
    return place.with_suffix(".py").is_file() or (place / "__init__.py").is_file()


@functools.cache
def folder_of(module: str) -> str | None:
    """The folder that a module of ours lies in: `groups/classic`. None for the modules of others, and for the
    package itself."""
    parts = module.split(".")
    if parts[0] != PACKAGE.name:
        return None
    if not (PACKAGE.parent.joinpath(*parts) / "__init__.py").is_file():
        parts = parts[:-1]
    return "/".join(parts[1:]) or None


def files(folder: str) -> list[Path]:
    return sorted((PACKAGE / folder).rglob("*.py"))


def own_files(folder: str) -> list[Path]:
    return sorted((PACKAGE / folder).glob("*.py"))


def needed_permission(importing: str, imported: str) -> tuple[str, str] | None:
    """Which row of the table has to name what: ("groups/consumer", "classic"). None where it is the same
    folder, or a room inside of it."""
    mine, other = importing.split("/"), imported.split("/")
    depth = next(
        (index for index, (one, two) in enumerate(zip(mine, other, strict=False)) if one != two), None
    )
    if depth is None:  # one lies inside of the other
        if len(mine) <= len(other):
            return None
        return "/".join(mine[: len(other) + 1]), other[-1]
    return "/".join(mine[: depth + 1]), other[depth]


def circles(graph: dict[str, set[str]]) -> set[tuple[str, ...]]:
    """Groups of nodes that reach each other."""

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        waiting = [start]
        while waiting:
            for node in graph.get(waiting.pop(), set()) - found:
                found.add(node)
                waiting.append(node)
        return found

    reach = {node: reached(node) for node in graph}
    return {
        tuple(sorted(other for other in reach[node] if node in reach.get(other, set())))
        for node in graph
        if node in reach[node]
    }


def test_circles_are_found_however_long_they_are() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == set()
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {("a", "b", "c")}
    assert circles({"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": {"c", "a"}}) == {("a", "b"), ("c", "d")}


def test_the_row_of_the_outer_folder_speaks_for_its_rooms() -> None:
    assert needed_permission("groups/consumer", "protocol/messages") == ("groups", "protocol")
    assert needed_permission("groups/consumer", "groups/classic") == ("groups/consumer", "classic")
    assert needed_permission("groups/consumer", "groups") == ("groups/consumer", "groups")
    assert needed_permission("groups", "groups/consumer") is None
    assert needed_permission("a/b/c", "a/d/e") == ("a/b", "d")


def test_every_folder_is_in_the_table() -> None:
    assert set(folders()) == set(FOLDERS)


@pytest.mark.parametrize("folder", folders())
def test_imports_point_down(folder: str) -> None:
    wrong = set()
    for path in own_files(folder):
        at_run_time = imports(path, only_at_run_time=True)
        for module in imports(path):
            imported = folder_of(module)
            needed = needed_permission(folder, imported) if imported is not None else None
            if needed is None or ("/" in needed[0] and module not in at_run_time):
                continue
            row, name = needed
            if not {name, EVERYTHING} & FOLDERS[row].may_import:
                wrong.add(f"{path.relative_to(PACKAGE)} imports {module}: the row of {row} lacks {name}")
    assert not wrong


def test_folders_do_not_import_each_other_in_circles() -> None:
    graph = {
        folder: {
            imported
            for path in own_files(folder)
            for module in imports(path, only_at_run_time=True)
            if (imported := folder_of(module)) is not None and imported != folder
        }
        for folder in folders()
    }
    assert circles(graph) == set()


def test_modules_of_a_folder_do_not_import_each_other_in_circles() -> None:
    tangled = set()
    for folder in folders():
        names = {path: f"{PACKAGE.name}.{folder.replace('/', '.')}.{path.stem}" for path in own_files(folder)}
        graph = {
            name: set(imports(path, only_at_run_time=True)) & {*names.values()} - {name}
            for path, name in names.items()
        }
        if circles(graph):
            tangled.add(folder)
    assert tangled - TANGLED == set()
    assert tangled == TANGLED, "a folder has no circle now: take it off the list"


def test_folders_are_small_enough_to_know() -> None:
    crowded = {
        folder
        for folder in folders()
        if sum(path.name != "__init__.py" for path in own_files(folder)) > MODULES_MAX
    }
    assert crowded - CROWDED == set()
    assert crowded == CROWDED, "a folder is small now: take it off the list"


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
        assert facts(path).docstring, f"{path.relative_to(PACKAGE)} has no docstring"
        assert facts(path).lines <= 500, f"{path.relative_to(PACKAGE)} is longer than 500 lines"


@pytest.mark.parametrize("folder", ["bench", "examples", "tests"])
def test_modules_beside_the_package_have_a_size_that_can_be_read(folder: str) -> None:
    long = [path for path in (ROOT / folder).rglob("*.py") if path.read_text().count("\n") > 500]
    assert not long


def test_docstrings_and_comments_name_their_subject_first() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in PACKAGE.rglob("*.py")
        for line in path.read_text().splitlines()
        if RIDDLE.match(line)
    ]
    assert not wrong


def test_there_is_one_client() -> None:
    """Requests are framed in `client/core`. Beside it, only brokers know headers: they receive requests, wrap
    them for the controller (KIP-590), and fetch from a leader with templates (decision 0021)."""
    framing = re.compile(r"protocol\.headers|core\.frames|\b(?:request|response)_header_version\b")
    found = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if framing.search(path.read_text()) and not path.is_relative_to(PACKAGE / "protocol")
    }
    assert {path for path in found if not path.startswith("client/core/")} == {
        "broker/api/request_header.py",
        "broker/api/routes.py",
        "broker/handlers/envelope.py",
        "broker/quorum/controller_channel.py",
        "broker/replicas/leader_link.py",
    }


def test_no_drawers() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}
    assert not [path for path in PACKAGE.rglob("*") if path.stem in drawers]


def test_every_handler_says_what_the_caller_needs() -> None:
    from barnabas.broker.api import routes
    from barnabas.broker.handlers.loading import load_handlers

    load_handlers()
    endpoints = {*routes.endpoints("broker"), *routes.endpoints("controller")}
    assert endpoints
    assert all(isinstance(endpoint.needs, tuple) for endpoint in endpoints)


def test_versions_served_are_those_of_the_reference() -> None:
    from barnabas.broker.api import routes
    from barnabas.broker.handlers.loading import load_handlers
    from barnabas.protocol import apis

    load_handlers()
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
