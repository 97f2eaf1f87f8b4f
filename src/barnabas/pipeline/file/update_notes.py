"""How refined tables and views are updated, in words for `plan`.

In: a pipeline. Out: lines: what costs as much as the change, what costs as much as the table, and why.
Pure. Does not know: Spark, the lake.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.pipeline.spec.model import Pipeline, View
from barnabas.pipeline.spec.update_mode import update_of
from barnabas.pipeline.views.definition import DefinitionError, define, why_not_followed

TITLE = "How tables and views follow changes:"


def update_lines(pipeline: Pipeline) -> list[str]:
    """A line for each refined table, and for each view that joins tables."""
    found = [f"refined {each.name}: {update_of(pipeline, each).text}" for each in pipeline.refined]
    found += [line for view in pipeline.views for line in view_lines(pipeline, view)]
    return [TITLE, *(f"  {line}" for line in found)] if found else []


def view_lines(pipeline: Pipeline, view: View) -> Iterator[str]:
    try:
        definition = define(view, pipeline.event_time_of(view.table))
    except DefinitionError:
        return  # `validate` says what is wrong
    if not definition.lookups:
        return
    tables = ", ".join(definition.lookups)
    reason = why_not_followed(definition)
    if not reason:
        yield f"view {view.name}: keys with changed rows of {tables} are computed again"
    elif view.batch:
        yield f"view {view.name}: sees {tables} as of its last batch part, because {reason}"
    else:
        yield f"view {view.name}: computed as a whole when {tables} changes, because {reason}"
