"""The batch layer: a view recomputed from its whole table, as of one version.

In: a definition, the view's table, versions of the joined tables. Out: a `BatchPart` whose horizon is that
version. Executors compute it; `deliver` brings it to where the store finds it.
Does not know: the store, the speed layer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.pipeline.increments.scopes import Scope
from barnabas.pipeline.increments.source_table import SourceTable, TableVersion
from barnabas.pipeline.views.computing import Computing
from barnabas.pipeline.views.definition import Definition
from barnabas.pipeline.views.layout import Layout
from barnabas.pipeline.views.parts import BatchPart, Joined, PartRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Deliver = Callable[["DataFrame"], PartRows]


def compute(
    computing: Computing,
    definition: Definition,
    source_table: SourceTable,
    layout: Layout,
    horizon: TableVersion,
    joined: Joined,
    deliver: Deliver,
) -> BatchPart:
    rows = source_table.rows(horizon.version)
    with Scope(rows.sparkSession) as scope:
        view = computing.over(scope, definition, rows, joined)
        return BatchPart(layout, horizon, deliver(view), joined)
