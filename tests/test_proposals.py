"""Commands and options that documents and messages propose exist: each is read by the tool that it names."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from barnabas.cli.frame.parsing import ToolParser, UsageError
from barnabas.cli.old_names import REPLACEMENTS, tool_named

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "barnabas"
DOCUMENTS = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")} - {ROOT / "CHANGELOG.md"})
# A block is indented or fenced; a comment, a pipe or another command ends what a tool is given.
IN_BLOCK = re.compile(r"^ *(?:\$ )?(barnabas [a-z][^#\n]*)", re.MULTILINE)
IN_TEXT = re.compile(r"`(barnabas [a-z][^`]*)`|<code>(barnabas [a-z][^<]*)</code>|: (barnabas [a-z].*)$")
ENDS = re.compile(r" && | \| | &$|;| > |──| # ")
OPTION_WITH_PLACEHOLDER = re.compile(r"(--[a-z-]+ )(?:…|\.\.\.)")
IN_ANGLES = re.compile(r"<[^<>\n|]+>")  # as in <broker>: a number, or a name
PLACEHOLDERS = re.compile(r"…|\.\.\.")
UNREAD = "\N{MIDDLE DOT}"  # stands for a value that is known at run time


def parts(text: str) -> Iterator[str]:
    yield from (part.strip() for part in ENDS.split(text.strip()) if part.strip().startswith("barnabas "))


def in_documents() -> Iterator[tuple[str, str, bool]]:
    for document in DOCUMENTS:
        text = document.read_text().replace("\\\n", " ")  # a command may go on in the next line
        pieces = text.split("```")  # every second one is in a fence
        fenced = "\n".join(pieces[1::2])
        indented = "\n".join(re.findall(r"^    .*$", "\n".join(pieces[::2]), re.MULTILINE))
        for match in IN_BLOCK.finditer(f"{fenced}\n{indented}"):
            yield from ((document.name, part, True) for part in parts(match[1]))
        for line in text.splitlines():
            for match in re.finditer(r"`(barnabas [a-z][^`]*)`", line):
                yield from ((document.name, part, False) for part in parts(match[1]))


def in_messages() -> Iterator[tuple[str, str, bool]]:
    """From the strings of the source, also those with values in between; docstrings are no messages."""
    for module in sorted(PACKAGE.rglob("*.py")):
        text = module.read_text()
        if "barnabas " not in text:
            continue
        tree = ast.parse(text)
        inner = {
            id(each) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for each in node.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                found = "".join(
                    str(each.value) if isinstance(each, ast.Constant) else UNREAD for each in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inner:
                found = node.value
            else:
                continue
            for line in found.splitlines():
                for match in IN_TEXT.finditer(line):
                    proposed = next(filter(None, match.groups()))
                    yield from ((str(module.relative_to(PACKAGE)), part, False) for part in parts(proposed))


def problem_of(command: str, *, whole: bool) -> str:
    """Why the tool would refuse these options; empty if it would not. `whole`: nothing may be missing."""
    command = IN_ANGLES.sub("1", command)
    command = PLACEHOLDERS.sub("", OPTION_WITH_PLACEHOLDER.sub(r"\1x", command))
    words = shlex.split(command.replace(UNREAD, "x"))[1:]
    words = ["1" if word == "N" else word for word in words]
    tool = tool_named(words[0])
    if tool is None:
        return "" if words[0] in REPLACEMENTS else f"there is no tool {words[0]}"
    module = import_module(f"barnabas.cli.{tool.module}")
    parser = ToolParser(prog=tool.name)
    module.add_arguments(parser)
    try:
        parser.read(words[1:])
    except UsageError as error:
        return "" if not whole and "required" in str(error) else str(error)
    return ""


PROPOSALS = sorted({*in_documents(), *in_messages()})


def test_proposals_are_found() -> None:
    assert len(PROPOSALS) > 60
    found = {command for _, command, _ in PROPOSALS}
    assert f"barnabas pipeline replay {UNREAD} --rebuild" in found
    assert "barnabas pipeline query fraud_alerts --order -alerts --limit 3" in found


@pytest.mark.parametrize(("place", "command", "whole"), PROPOSALS)
def test_a_tool_takes_what_is_proposed(place: str, command: str, whole: bool) -> None:
    assert problem_of(command, whole=whole) == "", place


def test_a_command_that_does_not_exist_is_noticed() -> None:
    assert problem_of("barnabas pipeline replay orders --staging", whole=False)
    assert problem_of("barnabas pipelines run", whole=False)
    assert problem_of("barnabas pipeline replay", whole=True)


# Commands that need neither Spark nor a broker: they are run, in a folder with the file that `init` writes.
RUN_HERE = {"init", "validate", "schema", "plan", "status", "lineage", "report", "key"}
ENDLESS = ("--watch",)


def to_run() -> list[str]:
    found = {command for _, command, _ in PROPOSALS if command.startswith("barnabas pipeline ")}
    commands = {each for each in found if (each.split()[2:] or [""])[0] in RUN_HERE}
    return sorted(
        each for each in commands if not any(word in each for word in ENDLESS) and UNREAD not in each
    )


def test_cheap_proposals_are_among_those_that_are_run() -> None:
    assert {each.split()[2] for each in to_run()} >= {"init", "plan", "schema", "report", "key"}


@pytest.mark.parametrize("command", to_run())
def test_a_proposed_command_does_what_it_says(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pydantic", reason="needs the extra `pipeline`")
    from barnabas.cli.main import main

    monkeypatch.chdir(tmp_path)
    words = shlex.split(PLACEHOLDERS.sub("", command))[1:]
    if words[1] != "init":
        assert main(["pipeline", "init"], "barnabas") == 0
    assert main(words, "barnabas") == 0, capsys.readouterr().err
