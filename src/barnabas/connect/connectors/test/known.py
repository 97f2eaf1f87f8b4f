"""Connectors of this room, by the names of Java."""

from __future__ import annotations

from barnabas.connect.plugins.known import Kind, Known

HERE = "barnabas.connect.connectors.test"
TOOLS = "org.apache.kafka.connect.tools"
PLUGINS = (
    Known(
        Kind.SOURCE,
        f"{HERE}.datagen:DatagenConnector",
        ("io.confluent.kafka.connect.datagen.DatagenConnector",),
    ),
    Known(
        Kind.SOURCE, f"{HERE}.verifiable:VerifiableSourceConnector", (f"{TOOLS}.VerifiableSourceConnector",)
    ),
    Known(Kind.SINK, f"{HERE}.verifiable:VerifiableSinkConnector", (f"{TOOLS}.VerifiableSinkConnector",)),
    Known(Kind.SOURCE, f"{HERE}.schema_source:SchemaSourceConnector", (f"{TOOLS}.SchemaSourceConnector",)),
    Known(Kind.SOURCE, f"{HERE}.mock:MockSourceConnector", (f"{TOOLS}.MockSourceConnector",)),
    Known(Kind.SINK, f"{HERE}.mock:MockSinkConnector", (f"{TOOLS}.MockSinkConnector",)),
)
