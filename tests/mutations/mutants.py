"""Small changes of a module's source, each a bug that a person could have made.

In: source text. Out: mutants, each with the line, what changed, and a syntax tree to compile. Comparisons are
shifted or turned around, conditions negated, `and` becomes `or`, a statement is left out. Log lines, texts
and annotations stay as they are. Does not know: what the module is for.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
SWAPPED: dict[str, str] = {"min": "max", "max": "min", "any": "all", "all": "any"}
LOGGERS = ("log", "LOG", "logger")

Change = Callable[[ast.AST], None]
Spot = tuple[str, Change]
"""What is changed, and how; applied to a copy of the node it was found at."""


@dataclass(frozen=True, slots=True)
class Mutant:
    line: int
    where: str  # the function
    change: str
    tree: ast.Module

    def __str__(self) -> str:
        return f"line {self.line}, {self.where}: {self.change}"


def mutants(source: str) -> Iterator[Mutant]:
    tree = ast.parse(source)
    for index, (node, function) in enumerate(nodes_of(tree)):
        for number, (change, _) in enumerate(spots(node)):
            mutated = copy.deepcopy(tree)
            target, _ = list(nodes_of(mutated))[index]
            list(spots(target))[number][1](target)
            ast.fix_missing_locations(mutated)
            yield Mutant(target.lineno, function, change, mutated)


def changes(source: str) -> Iterator[str]:
    """The names of all mutants' changes, without the mutants."""
    return (change for node, _ in nodes_of(ast.parse(source)) for change, _ in spots(node))


def nodes_of(tree: ast.Module) -> list[tuple[ast.expr | ast.stmt, str]]:
    """Expressions and statements inside of functions, in a fixed order."""
    found: list[tuple[ast.expr | ast.stmt, str]] = []

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for each in node.body:
                visit(each, node.name)
            return
        if is_left_alone(node):
            return
        if function and isinstance(node, ast.expr | ast.stmt):
            found.append((node, function))
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(tree, "")
    return found


def is_left_alone(node: ast.AST) -> bool:
    """Texts, log lines and annotations: nothing rests on them."""
    if isinstance(node, ast.JoinedStr | ast.Assert | ast.Import | ast.ImportFrom):
        return True
    call = node.value if isinstance(node, ast.Expr) else node
    if isinstance(call, ast.Constant) and isinstance(node, ast.Expr):
        return True
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
        return isinstance(call.func.value, ast.Name) and call.func.value.id in LOGGERS
    return False


def spots(node: ast.expr | ast.stmt) -> Iterator[Spot]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            other = COMPARED[type(operator)]
            change = f"{shown(node)}: {type(operator).__name__} becomes {other.__name__}"
            earlier = sum(type(each) is type(operator) for each in node.ops[:place])
            yield f"{change} ({earlier + 1})" if earlier else change, comparing(place, other)
    elif isinstance(node, ast.BoolOp):
        other_op = ast.Or if isinstance(node.op, ast.And) else ast.And
        yield f"{shown(node)}: and and or change places", operating(other_op)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in SWAPPED:
        yield f"{shown(node)}: {SWAPPED[node.func.id]}", calling(SWAPPED[node.func.id])
    elif isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Add | ast.Sub):
        sign = ast.Sub if isinstance(node.op, ast.Add) else ast.Add
        if not isinstance(node, ast.BinOp) or not has_text(node):
            yield f"{shown(node)}: plus and minus change places", operating(sign)
    if isinstance(node, ast.If | ast.While | ast.IfExp) and not isinstance(
        node.test, ast.Compare | ast.BoolOp
    ):
        yield f"if {shown(node.test)}: not", negate
    if is_left_out(node):
        yield f"{shown(node)}: left out", leave_out


def is_left_out(node: ast.expr | ast.stmt) -> bool:
    """Statements without which the function still ends as a function does."""
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    if isinstance(node, ast.Assign):
        return all(isinstance(each, ast.Attribute | ast.Subscript) for each in node.targets)
    return isinstance(node, ast.AugAssign | ast.Delete)


def has_text(node: ast.AST) -> bool:
    return any(
        isinstance(each, ast.Constant) and isinstance(each.value, str | bytes) for each in ast.walk(node)
    )


def shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 70 else text[:67] + "..."


# -- changes -----------------------------------------------------------------------------------------


def comparing(place: int, operator: type[ast.cmpop]) -> Change:
    def change(node: ast.AST) -> None:
        assert isinstance(node, ast.Compare)
        node.ops[place] = operator()

    return change


def operating(operator: type[ast.boolop] | type[ast.operator]) -> Change:
    def change(node: ast.AST) -> None:
        node.op = operator()  # type: ignore[attr-defined]

    return change


def calling(name: str) -> Change:
    def change(node: ast.AST) -> None:
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        node.func.id = name

    return change


def negate(node: ast.AST) -> None:
    assert isinstance(node, ast.If | ast.While | ast.IfExp)
    node.test = ast.UnaryOp(ast.Not(), node.test)


def leave_out(node: ast.AST) -> None:
    """The node itself stays where it is, and becomes a statement that does nothing."""
    nothing = ast.Expr(ast.Constant(None))
    ast.copy_location(nothing, node)
    node.__class__ = ast.Expr
    node.__dict__.clear()
    node.__dict__.update(nothing.__dict__)
