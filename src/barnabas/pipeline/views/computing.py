"""Runs a view's SQL on rows, for both layers.

In: a definition, rows of the view's table. Out: a frame with the layout's columns; the layout itself.
Does not know: versions, which layer it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.pipeline.increments.scopes import Scope
from barnabas.pipeline.lake.tables import Lake, TableName
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.refined_sql import resolve
from barnabas.pipeline.views import sql
from barnabas.pipeline.views.definition import Definition, DefinitionError, names_of
from barnabas.pipeline.views.layout import Column, Layout, Role, arrow_type
from barnabas.pipeline.views.parts import Joined

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Computing:
    """Runs views' SQL in the session of the rows."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._lake: Lake = pipeline.lake_location

    def over(self, scope: Scope, definition: Definition, rows: DataFrame, joined: Joined) -> DataFrame:
        """The view over these rows, and joined tables as of these versions."""
        places = dict.fromkeys(names_of(definition.table), scope.place(rows))
        for name in definition.lookups:
            table = self.find(definition, name)
            frame = self._lake.read(scope.spark, table, joined.get(str(table)))
            places[name] = scope.place(frame)
        return scope.spark.sql(sql.render(definition, places))

    def find(self, definition: Definition, name: str) -> TableName:
        """The table that a name in the SQL means: with its zone, or in the first zone that has it."""
        table = resolve(self._pipeline, name)
        if table is None:
            raise DefinitionError(f"view {definition.name}: there is no table {name} in the lake")
        return table

    def layout(self, definition: Definition, frame: DataFrame, identity: str) -> Layout:
        """The layout of the view; `frame` is the view over any rows of its table."""
        types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        if definition.derived:
            shown = [f"{text} AS `{name}`" for name, text in definition.derived.items()]
            derived = frame.selectExpr(*shown).schema.fields
            types |= {field.name: field.dataType.simpleString() for field in derived}
        selected = [each.alias_or_name for each in definition.tree.expressions]
        columns = [self._column(definition, name, types[name]) for name in dict.fromkeys([*selected, *types])]
        source = f"{definition.table} {identity}: {definition.sql}"
        return Layout(definition.name, tuple(columns), source, definition.condition)

    def _column(self, definition: Definition, name: str, type: str) -> Column:
        try:
            arrow_type(type)
        except ValueError as problem:
            raise DefinitionError(f"view {definition.name}: the column {name}: {problem}") from None
        if name in definition.keys:
            return Column(name, type, Role.KEY)
        if name in definition.derived:
            return Column(name, type, Role.DERIVED, expression=definition.derived[name])
        if name in definition.measures:
            return Column(name, type, Role.MEASURE, definition.measures[name])
        merges = {each.name: each.merge for each in definition.hidden}
        return Column(name, type, Role.HIDDEN, merges.get(name))
