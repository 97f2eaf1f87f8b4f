"""Go's text templates filled in: values in, text out.

In: a parsed template, functions, a value. Out: text as Go prints it. TemplateError names what is missing.
A `Record` is a struct of Go: a name that it does not have is an error; one that a mapping lacks is
`<no value>`. Does not know: Burrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from barnabas.monitor.burrow.template_parsing import (
    Block,
    Function,
    Inclusion,
    Jump,
    Literal,
    Node,
    Operand,
    Path,
    Pipeline,
    TemplateError,
    Tree,
)

OUTPUT_CHARS_MAX = 4 * 1024 * 1024
INCLUSIONS_MAX = 50  # in each other
MISSING = object()
Functions = Mapping[str, Callable[..., Any]]


class Record:
    """A struct: fields, and methods of which a template may call those without arguments by name alone."""

    def __init__(
        self, fields: Mapping[str, Any], methods: Mapping[str, Callable[..., Any]] | None = None
    ) -> None:
        self.fields = fields
        self.methods = methods or {}

    def __str__(self) -> str:
        show = self.methods.get("String")
        return str(show()) if show is not None else "{" + " ".join(map(shown, self.fields.values())) + "}"


class Number(int):
    """A number of Go with a name: it is printed by its name, and compared as a number."""

    def __new__(cls, value: int, name: str) -> Number:
        found = super().__new__(cls, value)
        found.name = name
        return found

    name: str

    def __str__(self) -> str:
        return self.name


class Run:
    def __init__(self, functions: Functions, value: Any) -> None:
        self._functions = functions
        self._scopes: list[dict[str, Any]] = [{"$": value}]
        self._parts: list[str] = []
        self._size = 0
        self._named: Mapping[str, Sequence[Node]] = {}
        self._inclusions = 0

    def text(self, tree: Tree, value: Any) -> str:
        self._named = tree.named
        self._nodes(tree.nodes, value)
        return "".join(self._parts)

    def _write(self, text: str) -> None:
        self._size += len(text)
        if self._size > OUTPUT_CHARS_MAX:
            raise TemplateError(f"the text has more than {OUTPUT_CHARS_MAX} characters")
        self._parts.append(text)

    def _nodes(self, nodes: Sequence[Node], dot: Any) -> Jump | None:
        """Returns the `break` or `continue` that ended it."""
        for node in nodes:
            if isinstance(node, str):
                self._write(node)
            elif isinstance(node, Jump):
                return node
            elif isinstance(node, Inclusion):
                self._include(node, dot)
            elif isinstance(node, Block):
                self._scopes.append({})
                jump = self._block(node, dot)
                self._scopes.pop()
                if jump is not None:
                    return jump
            else:
                value = self._value(node, dot)
                if not node.variables:
                    self._write(shown(value))
        return None

    def _block(self, node: Block, dot: Any) -> Jump | None:
        value = self._value(node.pipeline, dot)
        if node.kind == "range":
            return self._range(node, value, dot)
        if is_true(value):
            return self._nodes(node.body, value if node.kind == "with" else dot)
        return self._nodes(node.otherwise, dot)

    def _range(self, node: Block, value: Any, dot: Any) -> Jump | None:
        rows = list(pairs(value))
        if not rows:
            return self._nodes(node.otherwise, dot)
        for key, each in rows:
            self._scopes.append({})
            self._bind(node.pipeline.variables, key, each)
            jump = self._nodes(node.body, each)
            self._scopes.pop()
            if jump is Jump.BREAK:
                break
        return None

    def _include(self, node: Inclusion, dot: Any) -> None:
        """Write a template with a name: it sees its own value alone."""
        if node.name not in self._named:
            raise TemplateError(f"the template {node.name!r} is not defined")
        if self._inclusions == INCLUSIONS_MAX:
            raise TemplateError(f"more than {INCLUSIONS_MAX} templates in each other")
        value = self._value(node.pipeline, dot) if node.pipeline is not None else None
        scopes, self._scopes = self._scopes, [{"$": value}]
        self._inclusions += 1
        self._nodes(self._named[node.name], value)
        self._inclusions -= 1
        self._scopes = scopes

    def _bind(self, names: Sequence[str], key: Any, value: Any) -> None:
        scope = self._scopes[-1]
        for name, given in zip(reversed(names), (value, key), strict=False):
            scope[name] = given

    def _value(self, pipeline: Pipeline, dot: Any) -> Any:
        value: Any = MISSING
        for command in pipeline.commands:
            value = self._command(command, dot, value)
        if pipeline.variables:
            name = pipeline.variables[-1]
            owner = self._scopes[-1]
            if not pipeline.is_declared:
                owner = next((each for each in reversed(self._scopes) if name in each), owner)
            owner[name] = value
        return value

    def _command(self, command: Sequence[Operand], dot: Any, last: Any) -> Any:
        first, *rest = command
        arguments = [self._operand(each, dot) for each in rest]
        if last is not MISSING:
            arguments.append(last)
        if isinstance(first, Function):
            return self._call(first.name, arguments)
        if isinstance(first, Path) and first.names:
            return field_of(self._path(first, dot, first.names[:-1]), first.names[-1], arguments)
        if arguments:
            raise TemplateError("a value that is no function has arguments")
        return self._operand(first, dot)

    def _call(self, name: str, arguments: list[Any]) -> Any:
        function = self._functions.get(name)
        if function is None:
            raise TemplateError(f"the function {name} is not known")
        try:
            return function(*arguments)
        except (TypeError, ValueError, LookupError, ZeroDivisionError, AttributeError) as error:
            raise TemplateError(f"{name}: {error}") from None

    def _operand(self, operand: Operand, dot: Any) -> Any:
        if isinstance(operand, Literal):
            return operand.value
        if isinstance(operand, Function):
            return self._call(operand.name, [])
        return self._path(operand, dot, operand.names)

    def _path(self, path: Path, dot: Any, names: Sequence[str]) -> Any:
        if path.of is not None:
            value = self._value(path.of, dot)
        elif path.variable == ".":
            value = dot
        else:
            scope = next((each for each in reversed(self._scopes) if path.variable in each), None)
            if scope is None:
                raise TemplateError(f"the variable {path.variable} is not set")
            value = scope[path.variable]
        for name in names:
            value = field_of(value, name, [])
        return value


def field_of(value: Any, name: str, arguments: list[Any]) -> Any:
    if isinstance(value, Number) and name == "String":
        return value.name
    if isinstance(value, Record):
        if name in value.methods:
            return value.methods[name](*arguments)
        if name in value.fields and not arguments:
            return value.fields[name]
        raise TemplateError(f"there is no {name} here; known: {', '.join([*value.fields, *value.methods])}")
    if isinstance(value, Mapping) and not arguments:
        return value.get(name)
    if value is None:
        raise TemplateError(f"there is no value that could have {name}")
    raise TemplateError(f"{shown(value)[:40]} has no {name}")


def pairs(value: Any) -> Iterator[tuple[Any, Any]]:
    if value is None:
        return
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield key, value[key]
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from enumerate(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from enumerate(range(value))
    else:
        raise TemplateError(f"range cannot go over {shown(value)[:40]}")


def is_true(value: Any) -> bool:
    return True if isinstance(value, Record) else bool(value)


def shown(value: Any) -> str:
    """A value as Go prints it."""
    if value is None:
        return "<no value>"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if value != int(value) or abs(value) >= 1e21 else str(int(value))
    if isinstance(value, Mapping):
        return "map[" + " ".join(f"{shown(key)}:{shown(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + " ".join(map(shown, value)) + "]"
    return str(value)
