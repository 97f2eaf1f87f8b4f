"""Lineage as OpenLineage events (https://openlineage.io), made by its own library.

In: the graph, a node that was made, and its run. Out: an event that any OpenLineage server accepts, with
schemas, column lineage, SQL and row counts. Addresses contain no user or password. Does not know: where
events go (`lineage.log`, `lineage.sending`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.generated.column_lineage_dataset import (
    ColumnLineageDatasetFacet,
    Fields,
    InputField,
    Transformation,
)
from openlineage.client.generated.error_message_run import ErrorMessageRunFacet
from openlineage.client.generated.job_type_job import JobTypeJobFacet
from openlineage.client.generated.output_statistics_output_dataset import OutputStatisticsOutputDatasetFacet
from openlineage.client.generated.schema_dataset import SchemaDatasetFacet, SchemaDatasetFacetFields
from openlineage.client.generated.sql_job import SQLJobFacet
from openlineage.client.serde import Serde

from barnabas.engine.timeline import Entry
from barnabas.pipeline.lineage.graph import Graph, Node, Use

PRODUCER = f"https://pypi.org/project/barnabas/{version('barnabas')}"
NAMESPACE = "barnabas"
RUNS = uuid.uuid5(uuid.NAMESPACE_URL, PRODUCER)  # the same run has the same id, recorded again or not


def event(
    graph: Graph, node: Node, entry: Entry, kind: RunState = RunState.COMPLETE, *, streaming: bool
) -> RunEvent:
    """The event of one run that made a node."""
    job = f"{graph.pipeline}.{node.key}"
    run_facets: dict[str, Any] = {}
    if entry.error:
        kind = RunState.FAIL
        run_facets["errorMessage"] = ErrorMessageRunFacet(
            message=entry.error, programmingLanguage="python", producer=PRODUCER
        )
    job_facets: dict[str, Any] = {
        "jobType": JobTypeJobFacet(
            processingType="STREAMING" if streaming else "BATCH",
            integration="BARNABAS",
            jobType="JOB",
            producer=PRODUCER,
        )
    }
    if node.sql:
        job_facets["sql"] = SQLJobFacet(query=node.sql, dialect="spark", producer=PRODUCER)
    statistics = OutputStatisticsOutputDatasetFacet(
        rowCount=entry.rows_out, size=entry.bytes_in, producer=PRODUCER
    )
    facets = dataset_facets(node)
    if node.origins:
        facets["columnLineage"] = column_lineage(graph, node)
    return RunEvent(
        eventType=kind,
        eventTime=datetime.fromtimestamp(entry.ended, UTC).isoformat(),
        run=Run(runId=str(uuid.uuid5(RUNS, f"{job}/{entry.kind}/{entry.run}")), facets=run_facets),
        job=Job(namespace=NAMESPACE, name=job, facets=job_facets),
        inputs=[input_dataset(graph.nodes[key]) for key in node.inputs],
        outputs=[
            OutputDataset(
                node.namespace,
                node.dataset,
                facets=facets,
                outputFacets={"outputStatistics": statistics},
            )
        ],
        producer=PRODUCER,
    )


def plain(found: RunEvent) -> dict[str, Any]:
    """An event as it is sent."""
    return dict(Serde.to_dict(found))


def declared(graph: Graph, now: float) -> Iterator[dict[str, Any]]:
    """Events for a pipeline that never ran: one for each node, without numbers of a run."""
    for node in graph.nodes.values():
        if node.inputs:
            entry = Entry("declared", node.key, "0", now, now)
            yield plain(event(graph, node, entry, RunState.OTHER, streaming=False))


def input_dataset(node: Node) -> InputDataset:
    return InputDataset(node.namespace, node.dataset, facets=dataset_facets(node))


def dataset_facets(node: Node) -> dict[str, Any]:
    if not node.columns:
        return {}
    fields = [SchemaDatasetFacetFields(name=name, type=kind) for name, kind in node.columns.items()]
    return {"schema": SchemaDatasetFacet(fields=fields, producer=PRODUCER)}


def column_lineage(graph: Graph, node: Node) -> ColumnLineageDatasetFacet:
    fields = {
        column: Fields(
            [
                InputField(
                    graph.nodes[origin.column.node].namespace,
                    graph.nodes[origin.column.node].dataset,
                    origin.column.name,
                    [transformation(origin.use)],
                )
                for origin in origins
                if origin.column.node in graph.nodes
            ]
        )
        for column, origins in node.origins.items()
    }
    return ColumnLineageDatasetFacet(fields=fields, producer=PRODUCER)


def transformation(use: Use) -> Transformation:
    subtype = Use.TRANSFORMATION if use is Use.MASKED else use
    return Transformation(type="DIRECT", subtype=subtype.value, description="", masking=use is Use.MASKED)
