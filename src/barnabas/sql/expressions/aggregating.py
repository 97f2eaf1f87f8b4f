"""Aggregate functions of a statement as one aggregate of a plan.

`SqlAggregates` is a value: names, arguments and types, for compilers to read. The interpreter gets functions
made from `sql/functions/aggregates.py` or from classes of the user. A row that a function refuses changes
nothing and gets a line in the processing log. Does not know: groups, windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas.plans import expressions as e
from barnabas.plans.aggregate_functions import Functions
from barnabas.plans.aggregates import TypedAggregate
from barnabas.plans.evaluation import CONTEXT, VALUE, Evaluate, compile_expression
from barnabas.sql.functions.aggregates import Udaf, aggregate
from barnabas.sql.functions.user import UserFunction
from barnabas.sql.types.sql_types import SqlType


@dataclass(frozen=True, slots=True, eq=False)
class AggregateCall:
    """One function: `arguments` are expressions of the row, `literals` has the value of each argument that
    is a literal. `field` is the name of its result."""

    field: str
    name: str
    arguments: tuple[e.Expression, ...]
    kinds: tuple[SqlType, ...]
    literals: tuple[Any, ...]
    kind: SqlType
    user: UserFunction | None = None
    limit: int | None = None  # how many values COLLECT_LIST and COLLECT_SET keep

    def code(self) -> Udaf:
        if self.user is not None:
            return user_aggregate(self.user, self.kind)
        return aggregate(self.name, list(self.kinds), list(self.literals), self.limit)


def user_aggregate(function: UserFunction, kind: SqlType) -> Udaf:
    """A class of the user: `initial()`, `add(state, *arguments)`, `merge(one, two)`, and perhaps
    `undo(state, *arguments)` and `result(state)`."""
    made = function.found()()
    return Udaf(
        kind,
        made.initial,
        made.add,
        made.merge,
        getattr(made, "undo", None),
        getattr(made, "result", lambda state: state),
        function.takes_null,
        columns=function.signature.split("->")[0].count(",") + 1,
    )


@dataclass(frozen=True, slots=True)
class SqlAggregates(TypedAggregate):
    """All functions of a statement. The store keeps a list of their states, of COUNT(*) alone the number;
    readers see a dict of their results by `field`."""

    calls: tuple[AggregateCall, ...]
    logger: str = ""

    @property
    def is_count(self) -> bool:
        """Whether COUNT(*) is the only function."""
        only = self.calls[0]
        return len(self.calls) == 1 and only.name == "COUNT" and only.user is None and not only.arguments

    def functions(self) -> Functions:
        if self.is_count:
            field = self.calls[0].field
            return Functions(
                lambda: 0,
                lambda key, value, state, scope: state + 1,
                lambda key, value, state, scope: state - 1,
                lambda key, one, two: one + two,
                lambda state: {field: state},
            )
        codes = [call.code() for call in self.calls]
        names = [call.field for call in self.calls]
        parts = [
            (call.name, code, [compile_expression(each) for each in call.arguments[: code.columns]])
            for call, code in zip(self.calls, codes, strict=True)
        ]
        logger = self.logger

        def changed(undoes: bool) -> Callable[[Any, Any, Any, Any], Any]:
            steps = [(name, code.undo if undoes else code.add, code.takes_null, a) for name, code, a in parts]

            def change(key: Any, value: Any, state: Any, scope: Any) -> Any:
                found = []
                for (name, step, takes_null, arguments), before in zip(steps, state, strict=True):
                    found.append(applied(name, step, takes_null, arguments, before, scope))
                return found

            return change

        def applied(
            name: str, step: Any, takes_null: bool, arguments: list[Evaluate], before: Any, scope: Any
        ) -> Any:
            try:
                values = [argument(scope) for argument in arguments]
                if not takes_null and any(value is None for value in values):
                    return before
                return step(before, *values)
            except Exception as error:
                message = f"Error computing the aggregate {name}"
                scope[CONTEXT].report(logger, message, error, scope[VALUE])
                return before

        def merge(key: Any, one: Any, two: Any) -> Any:
            return [code.merge(a, b) for code, a, b in zip(codes, one, two, strict=True)]

        def finish(state: Any) -> dict[str, Any]:
            return {name: code.result(each) for name, code, each in zip(names, codes, state, strict=True)}

        return Functions(
            lambda: [code.initial() for code in codes],
            changed(False),
            changed(True) if all(code.undo is not None for code in codes) else None,
            merge,
            finish,
        )
