"""Connectors of this room, by the names of Java."""

from __future__ import annotations

from barnabas.connect.plugins.known import Kind, Known

HERE = "barnabas.connect.connectors.search"
PLUGINS = (
    Known(
        Kind.SINK,
        f"{HERE}.search_sink:ElasticsearchSinkConnector",
        (
            "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector",
            "io.aiven.connect.elasticsearch.ElasticsearchSinkConnector",
        ),
    ),
    Known(
        Kind.SINK,
        f"{HERE}.search_sink:OpenSearchSinkConnector",
        (
            "io.aiven.kafka.connect.opensearch.OpensearchSinkConnector",
            "io.aiven.kafka.connect.opensearch.OpenSearchSinkConnector",
        ),
    ),
)
