"""Go's text templates, as Burrow's notifiers use them, become trees.

In: the text of a template. Out: nodes. TemplateError names the line. Actions: values, pipelines, variables,
`if`, `range` and `with` with `else`, `break`, `continue`, `define`, `template`, `block`, comments, trimmed
blanks. Does not know: values, functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import NoReturn

BYTES_MAX = 1024 * 1024
DEPTH_MAX = 50
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


@dataclass(frozen=True, slots=True)
class Inclusion:
    """The place of a template with a name; without a pipeline its value is nil."""

    name: str
    pipeline: Pipeline | None


class Jump(Enum):
    BREAK = "break"
    CONTINUE = "continue"


Node = str | Pipeline | Block | Inclusion | Jump


@dataclass(frozen=True, slots=True)
class Tree:
    """The nodes of a template, and those that it defines by their names."""

    nodes: list[Node]
    named: dict[str, list[Node]]


def parse(text: str) -> Tree:
    if len(text) > BYTES_MAX:
        raise TemplateError(f"the template has more than {BYTES_MAX} characters")
    return TreeParser(pieces(text)).tree()


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


class TreeParser:
    """The actions and texts of a template, in their order."""

    def __init__(self, parts: Iterator[Piece]) -> None:
        self._parts = parts
        self._named: dict[str, list[Node]] = {}
        self._depth = self._ranges = 0

    def tree(self) -> Tree:
        nodes, ended = self._nodes()
        if ended:
            raise TemplateError(f"line {ended[1]}: {ended[0]} without a block")
        return Tree(nodes, self._named)

    def _nodes(self) -> tuple[list[Node], tuple[str, int] | None]:
        """The nodes until `end` or `else`, and which of them it was."""
        if self._depth > DEPTH_MAX:
            raise TemplateError(f"more than {DEPTH_MAX} blocks in each other")
        nodes: list[Node] = []
        for action, plain, line in self._parts:
            if action is None:
                if plain:
                    nodes.append(plain)
                continue
            if action == "end" or action.partition(" ")[0] == "else":
                return nodes, (action, line)
            node = self._node(action, line)
            if node is not None:
                nodes.append(node)
        return nodes, None

    def _node(self, action: str, line: int) -> Node | None:
        word, rest = split_action(action)
        if word in ("if", "range", "with"):
            return self._block(word, rest, line)
        if word in ("define", "template", "block"):
            return self._named_part(word, rest, line)
        if word in ("break", "continue"):
            if not self._ranges or rest:
                raise TemplateError(f"line {line}: {action} is not expected here")
            return Jump(word)
        return ActionParser(action, line).pipeline()

    def _block(self, kind: str, rest: str, line: int) -> Block:
        found = Block(kind, ActionParser(rest, line).pipeline())
        is_range = kind == "range"
        self._ranges += is_range
        found.body, ended = self._inner()
        self._ranges -= is_range
        if ended is not None and ended[0].startswith("else"):
            word, condition = split_action(ended[0].removeprefix("else").strip())
            if word:  # else if, else with
                found.otherwise = [self._block(word, condition, ended[1])]
                return found
            found.otherwise, ended = self._inner()
        if ended is None or ended[0] != "end":
            raise TemplateError(f"line {line}: {kind} without end")
        return found

    def _inner(self) -> tuple[list[Node], tuple[str, int] | None]:
        self._depth += 1
        found = self._nodes()
        self._depth -= 1
        return found

    def _named_part(self, kind: str, rest: str, line: int) -> Node | None:
        name, pipeline = ActionParser(rest, line).named()
        if kind == "template":
            return Inclusion(name, pipeline)
        if (kind == "define") == (pipeline is not None) or (kind == "define" and self._depth):
            raise TemplateError(f"line {line}: {kind} {rest} is not expected here")
        ranges, self._ranges = self._ranges, 0
        body, ended = self._inner()
        self._ranges = ranges
        if ended is None or ended[0] != "end":
            raise TemplateError(f"line {line}: {kind} without end")
        if not is_empty(self._named.get(name, [])) and not is_empty(body):
            raise TemplateError(f"line {line}: the template {name!r} is defined twice")
        if name not in self._named or is_empty(self._named[name]):
            self._named[name] = body
        return Inclusion(name, pipeline) if kind == "block" else None


def split_action(action: str) -> tuple[str, str]:
    """The first word of an action, and what follows."""
    found = re.match(r"\w*", action)
    assert found is not None
    return found[0], action[found.end() :].strip()


def is_empty(nodes: list[Node]) -> bool:
    """Whether nothing but blanks would be written."""
    return all(isinstance(each, str) and not each.strip() for each in nodes)


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

    def named(self) -> tuple[str, Pipeline | None]:
        """A name in quotes, and the pipeline behind it, if there is one."""
        text = self._next("text")
        if text is None:
            self._fail("the name of a template in quotes is missing")
        self._at += 1
        return unquoted(text), self.pipeline() if self._at < len(self._tokens) else None

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
