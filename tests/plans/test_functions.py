"""Functions of expressions are found by name, with their form as a column of Spark."""

import pytest

from barnabas.plans import functions
from barnabas.plans.functions import function_named, register, register_spark


def test_a_function_may_get_its_form_as_a_column_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_FUNCTIONS", {})
    register("Twice", lambda number: 2 * number, takes_null=True)
    assert function_named("twice").spark is None
    register_spark("twice", lambda columns, types: [*columns, *columns])
    found = function_named("twice")
    assert found.takes_null and found.spark is not None
    assert (found.compute(4), found.spark(["a"], ["int"])) == (8, ["a", "a"])
    with pytest.raises(ValueError, match="did you mean twice"):
        register_spark("twise", lambda columns, types: None)
