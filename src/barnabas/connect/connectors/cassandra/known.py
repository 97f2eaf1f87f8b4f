"""Connectors of this room, by the names of Java."""

from __future__ import annotations

from barnabas.connect.plugins.known import Kind, Known

HERE = "barnabas.connect.connectors.cassandra"
PLUGINS = (
    Known(
        Kind.SINK,
        f"{HERE}.cassandra_sink:MappedCassandraSinkConnector",
        (
            "com.datastax.oss.kafka.sink.CassandraSinkConnector",
            "com.datastax.kafkaconnector.DseSinkConnector",
        ),
    ),
    Known(
        Kind.SINK,
        f"{HERE}.cassandra_sink:TableCassandraSinkConnector",
        ("io.confluent.connect.cassandra.CassandraSinkConnector",),
    ),
)
