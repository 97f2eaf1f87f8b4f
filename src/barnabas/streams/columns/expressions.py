"""Expressions over columns: a tree becomes one function of rows.

Each node takes Arrow's form where it computes what the interpreter computes, and else the interpreter's own
function over the values of the batch. Does not know: steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from barnabas.plans import expressions as e
from barnabas.plans.evaluation import compile_expression, field_of
from barnabas.plans.functions import function_named
from barnabas.streams.columns.column import Column, Constant, Fields, NotColumnar, Rows
from barnabas.streams.columns.functions import binary_form, form_of, unary_form
from barnabas.streams.columns.origins import Cursor

Evaluate = Callable[[Rows], Column]
Reasons = Callable[[Any], list[str]]
_REASONS: dict[type[e.Expression], Reasons] = {}


def compile_column(expression: e.Expression) -> Evaluate:
    """The function of rows."""
    compiler = _COMPILERS.get(type(expression))
    return _item_by_item(expression) if compiler is None else compiler(expression)


def register_compiler(kind: type[e.Expression], compiler: Callable[[Any], Evaluate], why: Reasons) -> None:
    """Give expressions of a kind their form over columns. `why` says which of their parts run in Python."""
    _COMPILERS[kind], _REASONS[kind] = compiler, why


def reasons(expression: e.Expression, *, has_fields: bool = False) -> list[str]:
    """Why parts of an expression run as Python functions over the values of a batch. `has_fields`: the format
    gives a column for each field."""
    if type(expression) in _REASONS:
        return _REASONS[type(expression)](expression)
    if isinstance(expression, e.Struct):
        return [each for _, part in expression.fields for each in reasons(part, has_fields=has_fields)]
    found = []
    for each in e.walk(expression):
        if isinstance(each, e.Call) and form_of(each.name) is None:
            found.append(f"{each.name}() has no form over columns")
        elif isinstance(each, e.Column):
            if has_fields:
                continue
            found.append(f"the field {each.name} is read from objects")
        elif type(each) not in _COMPILERS:
            found.append(f"{type(each).__name__} has no form over columns")
    return found


def _item_by_item(expression: e.Expression) -> Evaluate:
    evaluate = compile_expression(expression)

    def run(rows: Rows) -> Column:
        cursor, found = cursor_of(rows), []
        for row, scope in enumerate(scopes_of(rows)):
            cursor.row = row
            found.append(evaluate((*scope, cursor)))
        return Column(items=found)

    return run


def cursor_of(rows: Rows) -> Cursor:
    assert rows.origins is not None, "rows of a batch know where they come from"
    return Cursor(rows.origins, rows.order)


def scopes_of(rows: Rows) -> Iterable[tuple[Any, ...]]:
    """Scopes of the interpreter's expressions, one for each row, but for the context."""
    rights = [None] * len(rows) if rows.right is None else rows.right.items
    return zip(rows.key_items, rows.values.items, rows.times.tolist(), rights, strict=True)


def _whole(node: e.Whole) -> Evaluate:
    if node.side == "key":
        return lambda rows: rows.keys if rows.starts is None else Column(items=rows.key_items)
    if node.side == "right":
        return _right
    return lambda rows: rows.values


def _right(rows: Rows) -> Column:
    return Column(items=[None] * len(rows)) if rows.right is None else rows.right


def _column(node: e.Column) -> Evaluate:
    name = node.name
    holder = _whole(e.Whole(node.side))
    if node.side == "key":
        holder = lambda rows: rows.keys  # noqa: E731 - a field of a windowed key is one of the key

    def evaluate(rows: Rows) -> Column:
        held = holder(rows)
        if isinstance(held, Fields) and not held.is_tuple:
            field = held.field(name)
            return Constant(None, len(rows)) if field is None else field
        items = held.items
        return Column(items=[row.get(name) if type(row) is dict else field_of(row, name) for row in items])

    return evaluate


def _meta(node: e.Meta) -> Evaluate:
    if node.name == "timestamp":
        return lambda rows: Column(pa.array(rows.times))
    if node.name == "offset":
        return lambda rows: Column(cursor_of(rows).offsets)
    if node.name in ("topic", "partition", "headers"):
        return _item_by_item(node)
    shift = node.name == "window_end"

    def evaluate(rows: Rows) -> Column:
        if rows.starts is None:
            return Column(items=[None] * len(rows))
        return Column(pa.array(rows.starts + (rows.window_ms if shift else 0)))

    return evaluate


def _literal(node: e.Literal_) -> Evaluate:
    return lambda rows: Constant(node.value, len(rows))


def _operands(columns: list[Column]) -> list[Any] | None:
    """The input of Arrow's functions; None where a column has no plain type, or all are constants."""
    if not columns or all(isinstance(each, Constant) for each in columns):
        return None
    try:
        return [each.operand for each in columns]
    except NotColumnar:
        return None


def _binary(node: e.Binary) -> Evaluate:
    left, right = compile_column(node.left), compile_column(node.right)
    row_by_row = compile_expression(e.Binary(node.operator, e.Whole("left"), e.Whole("right")))

    def evaluate(rows: Rows) -> Column:
        columns = [left(rows), right(rows)]
        operands = _operands(columns)
        if operands is not None and node.operator != "is distinct from":
            found = binary_form(node.operator, operands)
            if found is not None:
                return Column(found)
        pairs = zip(columns[0].items, columns[1].items, strict=True)
        return Column(items=[row_by_row((None, one, 0, two, None)) for one, two in pairs])

    return evaluate


def _unary(node: e.Unary) -> Evaluate:
    operand = compile_column(node.operand)
    row_by_row = compile_expression(e.Unary(node.operator, e.Whole("value")))

    def evaluate(rows: Rows) -> Column:
        column = operand(rows)
        if node.operator in ("is null", "is not null"):
            nulls = column.is_null
            return Column(pa.array(nulls if node.operator == "is null" else ~nulls))
        operands = _operands([column])
        if operands is not None:
            found = unary_form(node.operator, operands[0])
            if found is not None:
                return Column(found)
        return Column(items=[row_by_row((None, each, 0, None, None)) for each in column.items])

    return evaluate


def _call(node: e.Call) -> Evaluate:
    if any(isinstance(each, e.Lambda) for each in node.arguments):
        return _item_by_item(node)
    arguments = [compile_column(each) for each in node.arguments]
    function, form = function_named(node.name), form_of(node.name)

    def evaluate(rows: Rows) -> Column:
        columns = [each(rows) for each in arguments]
        operands = None if form is None else _operands(columns)
        if operands is not None and form is not None:
            found = form(operands)
            if found is not None:
                return Column(found)
        compute, takes_null = function.compute, function.takes_null
        if not columns:
            return Column(items=[compute() for _ in range(len(rows))])
        given = zip(*(each.items for each in columns), strict=True)
        if takes_null:
            return Column(items=[compute(*some) for some in given])
        return Column(items=[None if None in some else compute(*some) for some in given])

    return evaluate


def _struct(node: e.Struct) -> Evaluate:
    names = [name for name, _ in node.fields]
    if len(set(names)) < len(names):
        return _item_by_item(node)
    fields = [compile_column(each) for _, each in node.fields]
    return lambda rows: Fields(names, [each(rows) for each in fields], len(rows))


def truths(column: Column) -> Any:
    """A mask of the values that are true, as `bool(value)` says."""
    if column.plain_type == pa.bool_():
        return column.array.fill_null(False).to_numpy(zero_copy_only=False)
    return np.fromiter((bool(each) for each in column.items), np.bool_, len(column))


_COMPILERS: dict[type[e.Expression], Callable[[Any], Evaluate]] = {
    e.Column: _column,
    e.Whole: _whole,
    e.Meta: _meta,
    e.Literal_: _literal,
    e.Binary: _binary,
    e.Unary: _unary,
    e.Call: _call,
    e.Struct: _struct,
}
