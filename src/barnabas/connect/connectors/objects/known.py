"""Connectors of this room, by the names of Java."""

from __future__ import annotations

from barnabas.connect.plugins.known import Kind, Known

HERE = "barnabas.connect.connectors.objects.connectors"
SOURCE = "barnabas.connect.connectors.objects.object_source"
PLUGINS = (
    Known(Kind.SOURCE, f"{SOURCE}:S3SourceConnector", ("io.confluent.connect.s3.source.S3SourceConnector",)),
    Known(Kind.SOURCE, f"{SOURCE}:HdfsSourceConnector", ("io.confluent.connect.hdfs3.Hdfs3SourceConnector",)),
    Known(Kind.SINK, f"{HERE}:S3SinkConnector", ("io.confluent.connect.s3.S3SinkConnector",)),
    Known(
        Kind.SINK,
        f"{HERE}:HdfsSinkConnector",
        ("io.confluent.connect.hdfs.HdfsSinkConnector", "io.confluent.connect.hdfs3.Hdfs3SinkConnector"),
    ),
)
