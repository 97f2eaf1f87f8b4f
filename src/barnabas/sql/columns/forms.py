"""Forms over columns of operators, casts and functions: which one a call has, by its name and types.

A form gets a frame and the columns of its arguments and gives what the function of the interpreter gives, as
an array or a column. It doubts the rows for which it cannot say so, and gives None for a batch that it does
not take. Does not know: trees.
"""

from __future__ import annotations

from barnabas.sql.columns import date_forms, number_forms, text_forms
from barnabas.sql.columns.arithmetic import arithmetic_form, negation_form
from barnabas.sql.columns.cast_forms import cast_form
from barnabas.sql.columns.comparisons import comparison_form, in_form, like_form
from barnabas.sql.columns.function_forms import FORMS, Form
from barnabas.sql.expressions.codes import ARITHMETIC, COMPARISONS
from barnabas.sql.expressions.nodes import SqlCall

REGISTERED = (date_forms, number_forms, text_forms)  # imported for the forms that they add


def form_for(node: SqlCall) -> Form | None:
    """None: a loop over the values of the batch."""
    found: Form | None
    if node.user is not None:
        return None
    if node.name in ARITHMETIC:
        found = arithmetic_form(node.name, node.kinds, node.kind)
        return found
    if node.name == "NEGATE":
        found = negation_form(node.kind)
        return found
    if node.name in COMPARISONS:
        found = comparison_form(node.name, node.kinds)
        return found
    if node.name == "CAST":
        found = cast_form(node.kinds[0], node.kind)
        return found
    if node.name == "LIKE":
        found = like_form(node.arguments, node.kinds)
        return found
    if node.name == "IN":
        found = in_form(node.kinds)
        return found
    make = FORMS.get(node.name)
    return None if make is None else make(node.kinds, node.kind)
