"""Runs a view's SQL on rows, for both layers.

In: a definition, rows of the view's table. Out: a frame with the layout's columns; the layout itself.
Does not know: versions, which layer it is.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from barnabas.pipeline.lake.tables import Lake, TableName
from barnabas.pipeline.spec.model import Pipeline
from barnabas.pipeline.spec.refined_sql import resolve
from barnabas.pipeline.views import sql
from barnabas.pipeline.views.definition import Definition, DefinitionError, names_of
from barnabas.pipeline.views.layout import Column, Layout, Role, arrow_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

NUMBERS = itertools.count()


class Computing:
    """Runs views' SQL in the session of the rows."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._lake: Lake = pipeline.lake_location

    @contextmanager
    def over(self, definition: Definition, rows: DataFrame) -> Iterator[DataFrame]:
        """The view over these rows. The frame is valid until the block ends."""
        # Sessions may be shared, so names are unique across threads and processes.
        prefix = f"_barnabas_{os.getpid()}_{next(NUMBERS)}"
        places = dict.fromkeys(names_of(definition.table), f"{prefix}_rows")
        made = [f"{prefix}_rows"]
        spark = rows.sparkSession  # rows of a batch belong to the session of their source
        rows.createOrReplaceTempView(made[0])
        try:
            for number, name in enumerate(definition.lookups):
                places[name] = f"{prefix}_{number}"
                frame = self._lake.read(spark, self.find(definition, name))
                frame.createOrReplaceTempView(places[name])
                made.append(places[name])
            yield spark.sql(sql.render(definition, places))
        finally:
            for name in made:
                spark.catalog.dropTempView(name)

    def find(self, definition: Definition, name: str) -> TableName:
        """The table that a name in the SQL means: with its zone, or in the first zone that has it."""
        table = resolve(self._pipeline, name)
        if table is None:
            raise DefinitionError(f"view {definition.name}: there is no table {name} in the lake")
        return table

    def layout(self, definition: Definition, frame: DataFrame, identity: str) -> Layout:
        """The layout of the view; `frame` is the view over any rows of its table."""
        types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
        columns = []
        for name, type in types.items():
            try:
                arrow_type(type)
            except ValueError as problem:
                raise DefinitionError(f"view {definition.name}: the column {name}: {problem}") from None
            if name in definition.keys:
                columns.append(Column(name, type, Role.KEY))
            elif name in definition.measures:
                columns.append(Column(name, type, Role.MEASURE, definition.measures[name]))
            else:
                columns.append(Column(name, type, Role.HIDDEN))
        if definition.derived:
            shown = [f"{text} AS `{name}`" for name, text in definition.derived.items()]
            for field in frame.selectExpr(*shown).schema.fields:
                text = definition.derived[field.name]
                columns.append(
                    Column(field.name, field.dataType.simpleString(), Role.DERIVED, expression=text)
                )
        return Layout(definition.name, tuple(columns), f"{definition.table} {identity}: {definition.sql}")
