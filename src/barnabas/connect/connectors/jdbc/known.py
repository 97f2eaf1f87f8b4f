"""The plugins of this room."""

from barnabas.connect.plugins.known import Kind, Known

ROOM = "barnabas.connect.connectors.jdbc"
PLUGINS = (
    Known(
        Kind.SOURCE,
        f"{ROOM}.source:JdbcSourceConnector",
        ("io.confluent.connect.jdbc.JdbcSourceConnector", "io.aiven.connect.jdbc.JdbcSourceConnector"),
    ),
    Known(
        Kind.SINK,
        f"{ROOM}.sink:JdbcSinkConnector",
        ("io.confluent.connect.jdbc.JdbcSinkConnector", "io.aiven.connect.jdbc.JdbcSinkConnector"),
    ),
)
