"""Connectors of this room, by the names of Java."""

from __future__ import annotations

from barnabas.connect.plugins.known import Kind, Known

HERE = "barnabas.connect.connectors.objects.connectors"
PLUGINS = (
    Known(Kind.SINK, f"{HERE}:S3SinkConnector", ("io.confluent.connect.s3.S3SinkConnector",)),
    Known(
        Kind.SINK,
        f"{HERE}:HdfsSinkConnector",
        ("io.confluent.connect.hdfs.HdfsSinkConnector", "io.confluent.connect.hdfs3.Hdfs3SinkConnector"),
    ),
)
