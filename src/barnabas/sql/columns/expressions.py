"""Expressions of SQL over columns: a tree becomes one function of a frame.

Nodes have a form over arrays where the types allow it, else a loop over the values of the batch. What has
neither runs in the interpreter, row by row. Guards end here: rows that are doubted are evaluated again, and
what they raise is reported at their records. Importing this module registers it. Does not know: forms of
functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.plans import expressions as e
from barnabas.plans.evaluation import compile_expression
from barnabas.plans.windows import Windowed
from barnabas.sql.columns.forms import form_for
from barnabas.sql.columns.frames import Evaluate, Frame, certain
from barnabas.sql.columns.values import full
from barnabas.sql.errors import EvaluationError
from barnabas.sql.expressions.codes import code_for
from barnabas.sql.expressions.nodes import Guarded, KeyColumn, NewKey, SqlCall
from barnabas.streams.columns.column import Column, Constant, Fields, NotColumnar, Rows, row_at
from barnabas.streams.columns.expressions import compile_column, cursor_of, register_compiler

LAZY = ("COALESCE", "IFNULL")
_BOOLEAN = pa.bool_()


def compile_frame(node: e.Expression) -> Evaluate:
    """The function of a frame."""
    compiler = _COMPILERS.get(type(node))
    if compiler is not None:
        return compiler(node)
    if type(node) in (e.Column, e.Whole, e.Meta, e.Literal_, Guarded):
        plain = compile_column(node)
        return lambda frame: plain(frame.rows)
    return _by_rows(node)


def _by_rows(node: e.Expression) -> Evaluate:
    evaluate = compile_expression(node)
    return lambda frame: frame.by_rows(evaluate)


def has_users_code(node: e.Expression) -> bool:
    """Whether a function of the user would be called for rows that do not need its result."""
    return any(isinstance(each, SqlCall) and each.user is not None for each in e.walk(node))


def _key_column(node: KeyColumn) -> Evaluate:
    index = node.index

    def evaluate(frame: Frame) -> Column:
        keys = frame.rows.keys
        if isinstance(keys, Fields) and keys.is_tuple and index < len(keys.columns):
            return keys.columns[index]
        items = [each.key if type(each) is Windowed else each for each in keys.items]
        return Column(items=[None if each is None else each[index] for each in items])

    return evaluate


def _call(node: SqlCall) -> Evaluate:
    if any(isinstance(each, e.Lambda) for each in node.arguments):
        return _by_rows(node)
    if node.name in LAZY and any(has_users_code(each) for each in node.arguments[1:]):
        return _by_rows(node)
    arguments = [compile_frame(each) for each in node.arguments]
    form = None if node.user is not None else form_for(node)
    code = node.user.code() if node.user is not None else code_for(node.name, node.kinds, node.kind)

    def evaluate(frame: Frame) -> Column:
        columns = [each(frame) for each in arguments]
        if form is not None and not (columns and all(isinstance(each, Constant) for each in columns)):
            found = form(frame, columns)
            if found is not None:
                return found if isinstance(found, Column) else Column(full(found, len(frame)))
        return frame.loop(code, columns)

    return evaluate


def truths_of(column: Column, count: int) -> pa.Array | None:
    """Booleans with nulls; None where values are of another kind."""
    try:
        found = column.operand
    except NotColumnar:
        return None
    if pa.types.is_null(found.type):
        return pa.nulls(count, _BOOLEAN)
    return full(found, count) if found.type == _BOOLEAN else None


def _binary(node: e.Binary) -> Evaluate:
    if node.operator not in ("and", "or") or has_users_code(node.right):
        return _by_rows(node)
    left, right = compile_frame(node.left), compile_frame(node.right)
    compute = pc.and_kleene if node.operator == "and" else pc.or_kleene
    by_rows = _by_rows(node)

    def evaluate(frame: Frame) -> Column:
        one = truths_of(left(frame), len(frame))
        two = None if one is None else truths_of(right(frame), len(frame))
        return by_rows(frame) if one is None or two is None else Column(compute(one, two))

    return evaluate


def _unary(node: e.Unary) -> Evaluate:
    operand = compile_frame(node.operand)
    by_rows = _by_rows(node)

    def evaluate(frame: Frame) -> Column:
        column = operand(frame)
        if node.operator in ("is null", "is not null"):
            nulls = column.is_null
            return Column(pa.array(nulls if node.operator == "is null" else ~nulls))
        truths = truths_of(column, len(frame)) if node.operator == "not" else None
        return by_rows(frame) if truths is None else Column(pc.invert(truths))

    return evaluate


def _case(node: e.Case) -> Evaluate:
    if has_users_code(node):
        return _by_rows(node)
    conditions = [compile_frame(when) for when, _ in node.whens]
    results = [compile_frame(then) for _, then in node.whens]
    otherwise = compile_frame(node.default if node.default is not None else e.Literal_(None))
    by_rows = _by_rows(node)

    def evaluate(frame: Frame) -> Column:
        count = len(frame)
        given = [truths_of(each(frame), count) for each in conditions]
        columns = [*(each(frame) for each in results), otherwise(frame)]
        if any(each is None for each in given):
            return by_rows(frame)
        taken = np.full(count, len(conditions), np.int64)
        for place, truths in reversed(list(enumerate(given))):
            taken[truths.fill_null(False).to_numpy(zero_copy_only=False)] = place
        kinds = {each.plain_type for each in columns if not _is_all_null(each)}
        if len(kinds) == 1 and None not in kinds:
            [kind] = kinds
            arrays = [
                full(each.operand, count) if not _is_all_null(each) else pa.nulls(count, kind)
                for each in columns
            ]
            found = arrays[-1]
            for place in range(len(conditions)):
                found = pc.if_else(pa.array(taken == place), arrays[place], found)
            return Column(found)
        items = [each.items for each in columns]
        return Column(items=[items[place][row] for row, place in enumerate(taken.tolist())])

    return evaluate


def _is_all_null(column: Column) -> bool:
    if isinstance(column, Constant):
        return column.value is None
    return column.is_array and column.array.null_count == len(column)


def _field(node: e.Field) -> Evaluate:
    operand, name = compile_frame(node.operand), node.name
    by_rows = _by_rows(node)

    def evaluate(frame: Frame) -> Column:
        column = operand(frame)
        if isinstance(column, Fields) and not column.is_tuple:
            found = column.field(name)
            return Constant(None, len(frame)) if found is None else found
        items = column.items
        try:
            return Column(items=[None if each is None else each.get(name) for each in items])
        except AttributeError:
            return by_rows(frame)

    return evaluate


_COMPILERS: dict[type[e.Expression], Callable[[Any], Evaluate]] = {
    KeyColumn: _key_column,
    SqlCall: _call,
    e.Binary: _binary,
    e.Unary: _unary,
    e.Case: _case,
    e.Field: _field,
}

# ---------------------------------------------------------------------------------- for the steps of a task


def _guarded(node: Guarded) -> Callable[[Rows], Column]:
    operand, again = compile_frame(node.operand), compile_expression(node)

    def evaluate(rows: Rows) -> Column:
        frame = Frame(rows)
        return certain(frame, operand(frame), again)

    return evaluate


def _unguarded(node: e.Expression) -> Callable[[Rows], Column]:
    operand, again = compile_frame(node), compile_expression(node)

    def evaluate(rows: Rows) -> Column:
        frame = Frame(rows)
        return certain(frame, operand(frame), again)

    return evaluate


def _new_key(node: NewKey) -> Callable[[Rows], Column]:
    parts = [compile_column(each) for each in node.parts]
    names = [str(place) for place in range(len(parts))]

    def evaluate(rows: Rows) -> Column:
        columns = [each(rows) for each in parts]
        nulls = np.zeros(len(rows), np.bool_)
        for each in columns:
            nulls |= each.is_null
        if nulls.any() and node.drops_nulls:
            cursor = cursor_of(rows)
            for place in np.flatnonzero(nulls).tolist():
                cursor.row = place
                reason = EvaluationError("a value of the group is null")
                message = "Group-by column with null value: the row is left out"
                cursor.report(node.logger, message, reason, row_at(rows, place))
        elif len(parts) > 1:
            nulls[:] = False
        return Fields(names, columns, len(rows), nulls, is_tuple=True)

    return evaluate


def reasons_of(node: e.Expression) -> list[str]:
    """Names of the parts that run as Python over the values of a batch."""
    found = []
    for each in e.walk(node):
        if isinstance(each, SqlCall):
            if each.user is not None:
                found.append(f"{each.name}() is a function of the user")
            elif form_for(each) is None:
                types = ", ".join(map(str, each.kinds))
                found.append(f"{each.name} of ({types}) has no form over columns")
        elif type(each) not in _KNOWN:
            found.append(f"{type(each).__name__} has no form over columns")
    return list(dict.fromkeys(found))


_KNOWN = {*_COMPILERS, e.Column, e.Whole, e.Meta, e.Literal_, Guarded, NewKey}
register_compiler(Guarded, _guarded, reasons_of)
register_compiler(NewKey, _new_key, reasons_of)
for _kind in (KeyColumn, SqlCall):
    register_compiler(_kind, _unguarded, reasons_of)
