"""Connectors of this room, by the names of Java."""

from __future__ import annotations

from barnabas.connect.plugins.known import Kind, Known

HERE = "barnabas.connect.connectors.http"
PLUGINS = (
    Known(Kind.SINK, f"{HERE}.http_sink:HttpSinkConnector", ("io.confluent.connect.http.HttpSinkConnector",)),
    Known(
        Kind.SINK,
        f"{HERE}.http_sink:AivenHttpSinkConnector",
        ("io.aiven.kafka.connect.http.HttpSinkConnector",),
    ),
    Known(
        Kind.SOURCE,
        f"{HERE}.http_source:HttpSourceConnector",
        ("io.confluent.connect.http.HttpSourceConnector",),
    ),
)
