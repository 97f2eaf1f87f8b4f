"""The batch layer: a view recomputed from its whole table, as of one version.

In: a definition and the view's table. Out: a `BatchPart` whose horizon is that version.
Does not know: the store, the speed layer.
"""

from __future__ import annotations

from barnabas.pipeline.views.computing import Computing
from barnabas.pipeline.views.definition import Definition
from barnabas.pipeline.views.parts import BatchPart, TableVersion
from barnabas.pipeline.views.source_table import SourceTable


def compute(
    computing: Computing, definition: Definition, source_table: SourceTable, horizon: TableVersion
) -> BatchPart:
    with computing.over(definition, source_table.rows(horizon.version)) as view:
        layout = computing.layout(definition, view, source_table.identity())
        return BatchPart(layout, horizon, view.toArrow())
