"""Lineage as OpenLineage events (https://openlineage.io, spec 2-0-2), one line of JSON each.

In: the graph, a node that was made, and its run. Out: an event that any OpenLineage server accepts, with
schemas, column lineage, SQL and row counts. Addresses contain no user or password. Does not know: where
events go (`lineage.log`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from barnabas.engine.timeline import Entry
from barnabas.pipeline.lineage.graph import Graph, Node, Use

PRODUCER = f"https://pypi.org/project/barnabas/{version('barnabas')}"
SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
FACETS = "https://openlineage.io/spec/facets"
SCHEMAS = {
    "schema": f"{FACETS}/1-1-1/SchemaDatasetFacet.json#/$defs/SchemaDatasetFacet",
    "columnLineage": f"{FACETS}/1-2-0/ColumnLineageDatasetFacet.json#/$defs/ColumnLineageDatasetFacet",
    "outputStatistics": f"{FACETS}/1-0-2/OutputStatisticsOutputDatasetFacet.json"
    "#/$defs/OutputStatisticsOutputDatasetFacet",
    "sql": f"{FACETS}/1-1-0/SQLJobFacet.json#/$defs/SQLJobFacet",
    "jobType": f"{FACETS}/2-0-3/JobTypeJobFacet.json#/$defs/JobTypeJobFacet",
    "errorMessage": f"{FACETS}/1-0-1/ErrorMessageRunFacet.json#/$defs/ErrorMessageRunFacet",
}
NAMESPACE = "barnabas"
RUNS = uuid.uuid5(uuid.NAMESPACE_URL, PRODUCER)  # the same run has the same id, recorded again or not


def event(
    graph: Graph, node: Node, entry: Entry, kind: str = "COMPLETE", *, streaming: bool
) -> dict[str, Any]:
    """The event of one run that made a node."""
    job = f"{graph.pipeline}.{node.key}"
    run_facets: dict[str, Any] = {}
    if entry.error:
        kind = "FAIL"
        run_facets["errorMessage"] = facet("errorMessage", message=entry.error, programmingLanguage="python")
    job_facets = {
        "jobType": facet(
            "jobType",
            processingType="STREAMING" if streaming else "BATCH",
            integration="BARNABAS",
            jobType="JOB",
        )
    }
    if node.sql:
        job_facets["sql"] = facet("sql", query=node.sql, dialect="spark")
    statistics = {"outputStatistics": facet("outputStatistics", rowCount=entry.rows_out, size=entry.bytes_in)}
    output = {**dataset(node), "outputFacets": statistics}
    if node.origins:
        output["facets"]["columnLineage"] = column_lineage(graph, node)
    return {
        "eventType": kind,
        "eventTime": datetime.fromtimestamp(entry.ended, UTC).isoformat(),
        "run": {
            "runId": str(uuid.uuid5(RUNS, f"{job}/{entry.kind}/{entry.run}")),
            "facets": run_facets,
        },
        "job": {"namespace": NAMESPACE, "name": job, "facets": job_facets},
        "inputs": [dataset(graph.nodes[key]) for key in node.inputs],
        "outputs": [output],
        "producer": PRODUCER,
        "schemaURL": SPEC,
    }


def declared(graph: Graph, now: float) -> Iterator[dict[str, Any]]:
    """Events for a pipeline that never ran: one for each node, without numbers of a run."""
    for node in graph.nodes.values():
        if node.inputs:
            entry = Entry("declared", node.key, "0", now, now)
            yield event(graph, node, entry, "OTHER", streaming=False)


def dataset(node: Node) -> dict[str, Any]:
    facets = {}
    if node.columns:
        fields = [{"name": name, "type": kind} for name, kind in node.columns.items()]
        facets["schema"] = facet("schema", fields=fields)
    return {"namespace": node.namespace, "name": node.dataset, "facets": facets}


def column_lineage(graph: Graph, node: Node) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for column, origins in node.origins.items():
        fields[column] = {
            "inputFields": [
                {
                    "namespace": graph.nodes[origin.column.node].namespace,
                    "name": graph.nodes[origin.column.node].dataset,
                    "field": origin.column.name,
                    "transformations": [transformation(origin.use)],
                }
                for origin in origins
                if origin.column.node in graph.nodes
            ]
        }
    return facet("columnLineage", fields=fields)


def transformation(use: Use) -> Mapping[str, Any]:
    subtype = Use.TRANSFORMATION if use is Use.MASKED else use
    return {"type": "DIRECT", "subtype": subtype.value, "description": "", "masking": use is Use.MASKED}


def facet(name: str, **values: Any) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": SCHEMAS[name], **values}
