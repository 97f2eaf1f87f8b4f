"""Connectors of this room, by the names of Java."""

from __future__ import annotations

from barnabas.connect.plugins.known import Kind, Known

HERE = "barnabas.connect.connectors.mongo"
PLUGINS = (
    Known(
        Kind.SINK,
        f"{HERE}.mongo_sink:MongoSinkConnector",
        ("com.mongodb.kafka.connect.MongoSinkConnector",),
    ),
    Known(
        Kind.SOURCE,
        f"{HERE}.mongo_source:MongoSourceConnector",
        ("com.mongodb.kafka.connect.MongoSourceConnector",),
    ),
)
