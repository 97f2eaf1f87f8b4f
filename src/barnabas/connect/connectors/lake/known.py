"""Connectors of this room."""

from __future__ import annotations

from barnabas.connect.plugins.known import Kind, Known

HERE = "barnabas.connect.connectors.lake"
PLUGINS = (
    Known(Kind.SINK, f"{HERE}.lake_sink:LakeSinkConnector"),
    Known(
        Kind.SINK,
        f"{HERE}.lake_sink:DeltaSinkConnector",
        (
            "io.confluent.connect.deltalake.DeltaLakeSinkConnector",
            "io.confluent.connect.databricks.deltalake.DatabricksDeltaLakeSinkConnector",
        ),
    ),
    Known(
        Kind.SINK,
        f"{HERE}.iceberg_sink:IcebergSinkConnector",
        (
            "org.apache.iceberg.connect.IcebergSinkConnector",
            "io.tabular.iceberg.connect.IcebergSinkConnector",
        ),
    ),
)
