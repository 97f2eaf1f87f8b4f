"""Go's text templates, as Burrow's notifiers use them, become trees.

In: the text of a template. Out: nodes. TemplateError names the line. Actions: values, pipelines, variables,
`if`, `range` and `with` with `else`, comments, trimmed blanks. `define`, `template`, `block`, `break` and
`continue` are refused. Does not know: values, functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NoReturn

BYTES_MAX = 1024 * 1024
DEPTH_MAX = 50
REFUSED = ("define", "template", "block", "break", "continue")
ACTION = re.compile(r"\{\{(-\s)?(/\*.*?\*/|(?:\"(?:\\.|[^\"\\\n])*\"|`[^`]*`|[^\"`])*?)(\s-)?\}\}", re.DOTALL)
TOKEN = re.compile(
    r"""\s*(?:(?P<text>"(?:\\.|[^"\\\n])*"|`[^`]*`)|(?P<number>[-+]?\d+(?:\.\d+)?)|(?P<set>:=|=)|(?P<sign>[|(),])"""
    r"""|(?P<path>(?:\$\w*)?(?:\.\w+)+|\$\w*|\.)|(?P<name>[A-Za-z_]\w*)(?P<after>(?:\.\w+)*))"""
)
ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class TemplateError(ValueError):
    """A template that cannot be read, or cannot be filled in."""


@dataclass(frozen=True, slots=True)
class Literal:
    value: object


@dataclass(frozen=True, slots=True)
class Path:
    """Fields of a variable. `variable` is "." for the present value, and "" for a pipeline in parentheses."""

    variable: str
    names: tuple[str, ...]
    of: Pipeline | None = None


@dataclass(frozen=True, slots=True)
class Function:
    name: str


Operand = Literal | Path | Function


@dataclass(frozen=True, slots=True)
class Pipeline:
    commands: tuple[tuple[Operand, ...], ...]
    variables: tuple[str, ...] = ()
    is_declared: bool = True


@dataclass(slots=True)
class Block:
    """`kind` is if, range or with."""

    kind: str
    pipeline: Pipeline
    body: list[Node] = field(default_factory=list)
    otherwise: list[Node] = field(default_factory=list)


Node = str | Pipeline | Block


def parse(text: str) -> list[Node]:
    if len(text) > BYTES_MAX:
        raise TemplateError(f"the template has more than {BYTES_MAX} characters")
    parts = iter(list(pieces(text)))
    nodes, ended = block(parts, depth=0)
    if ended:
        raise TemplateError(f"line {ended[1]}: {ended[0]} without a block")
    return nodes


Piece = tuple[str | None, str, int]  # an action, or None and plain text; the line


def pieces(text: str) -> Iterator[Piece]:
    at, trims = 0, False
    for found in ACTION.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        plain = text[at : found.start()]
        at = found.end()
        plain = plain.lstrip() if trims else plain
        yield None, plain.rstrip() if found[1] else plain, line
        trims = bool(found[3])
        if not found[2].startswith("/*"):
            yield found[2].strip(), "", line
    rest = text[at:]
    if "{{" in rest:
        line = text.count("\n", 0, at + rest.index("{{")) + 1
        raise TemplateError(f"line {line}: an action does not end")
    yield None, rest.lstrip() if trims else rest, 0


def block(parts: Iterator[Piece], depth: int) -> tuple[list[Node], tuple[str, int] | None]:
    """The nodes until `end` or `else`, and which of them it was."""
    if depth > DEPTH_MAX:
        raise TemplateError(f"more than {DEPTH_MAX} blocks in each other")
    nodes: list[Node] = []
    for action, plain, line in parts:
        if action is None:
            if plain:
                nodes.append(plain)
            continue
        word, _, rest = action.partition(" ")
        if word in REFUSED:
            raise TemplateError(f"line {line}: {word} is not supported")
        if word in ("end", "else"):
            return nodes, (action, line)
        if word in ("if", "range", "with"):
            nodes.append(nested(word, rest, parts, depth, line))
        else:
            nodes.append(ActionParser(action, line).pipeline())
    return nodes, None


def nested(kind: str, rest: str, parts: Iterator[Piece], depth: int, line: int) -> Block:
    found = Block(kind, ActionParser(rest, line).pipeline())
    found.body, ended = block(parts, depth + 1)
    if ended is not None and ended[0].startswith("else"):
        word, _, condition = ended[0].removeprefix("else").strip().partition(" ")
        if word:  # else if, else with
            found.otherwise = [nested(word, condition, parts, depth + 1, ended[1])]
            return found
        found.otherwise, ended = block(parts, depth + 1)
    if ended is None or ended[0] != "end":
        raise TemplateError(f"line {line}: {kind} without end")
    return found


class ActionParser:
    """The tokens of one action."""

    def __init__(self, text: str, line: int) -> None:
        self._line = line
        self._tokens: list[re.Match[str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = TOKEN.match(text, at)
            if found is None:
                self._fail(f"{text[at : at + 20]!r} is not understood")
            self._tokens.append(found)
            at = found.end()
        self._at = 0

    def _fail(self, reason: str) -> NoReturn:
        raise TemplateError(f"line {self._line}: {reason}")

    def pipeline(self) -> Pipeline:
        found = self._pipeline()
        if self._at < len(self._tokens):
            self._fail(f"{self._tokens[self._at][0].strip()!r} is not expected here")
        return found

    def _next(self, group: str) -> str | None:
        if self._at < len(self._tokens):
            return self._tokens[self._at][group]
        return None

    def _pipeline(self) -> Pipeline:
        variables, is_declared = self._variables()
        commands: list[tuple[Operand, ...]] = []
        while True:
            command = self._command()
            if not command and not commands:
                self._fail("a value is missing")
            if command:  # Go takes a | at the end
                commands.append(tuple(command))
            if self._next("sign") != "|":
                return Pipeline(tuple(commands), variables, is_declared)
            self._at += 1

    def _variables(self) -> tuple[tuple[str, ...], bool]:
        """`$a := ` or `$a, $b := `, if the pipeline begins so."""
        names: list[str] = []
        for at in range(self._at, len(self._tokens)):
            token = self._tokens[at]
            if token["set"] and names:
                self._at = at + 1
                return tuple(names), token["set"] == ":="
            if token["path"] and re.fullmatch(r"\$\w+", token["path"]):
                names.append(token["path"])
            elif token["sign"] != ",":
                break
        return (), True

    def _command(self) -> list[Operand]:
        found: list[Operand] = []
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token["sign"] == "(":
                self._at += 1
                inner = self._pipeline()
                if self._next("sign") != ")":
                    self._fail("a ) is missing")
                self._at += 1
                found.append(Path("", self._names_behind(), inner))
                continue
            if token["sign"] or token["set"]:
                break
            self._at += 1
            found.append(operand(token))
        return found

    def _names_behind(self) -> tuple[str, ...]:
        """The fields behind a ), which have no blank before them."""
        path = self._next("path")
        if path and path.startswith(".") and path != "." and not self._tokens[self._at][0][0].isspace():
            self._at += 1
            return tuple(path[1:].split("."))
        return ()


def operand(token: re.Match[str]) -> Operand:
    if token["text"]:
        return Literal(unquoted(token["text"]))
    if token["number"]:
        return Literal(float(token["number"]) if "." in token["number"] else int(token["number"]))
    if token["path"]:
        variable, *names = token["path"].split(".")
        return Path(variable or ".", tuple(name for name in names if name))
    name = token["name"]
    constants: dict[str, object] = {"true": True, "false": False, "nil": None}
    return Literal(constants[name]) if name in constants else Function(name)


def unquoted(text: str) -> str:
    if text.startswith("`"):
        return text[1:-1]

    def value(found: re.Match[str]) -> str:
        code = found[1]
        return chr(int(code[1:], 16)) if len(code) > 1 else ESCAPED.get(code, code)

    return ESCAPE.sub(value, text[1:-1])
