"""The batch layer: a view recomputed from the master data, as of one version.

In: a definition and the master data. Out: a `BatchPart` whose horizon is that version.
Does not know: the store, the speed layer.
"""

from __future__ import annotations

from barnabas.pipeline.views.computing import Computing
from barnabas.pipeline.views.definition import Definition
from barnabas.pipeline.views.parts import BatchPart, Position
from barnabas.pipeline.views.source_table import Master


def compute(computing: Computing, definition: Definition, master: Master, horizon: Position) -> BatchPart:
    with computing.over(definition, master.rows(horizon.version)) as view:
        layout = computing.layout(definition, view, master.identity())
        return BatchPart(layout, horizon, view.toArrow())
