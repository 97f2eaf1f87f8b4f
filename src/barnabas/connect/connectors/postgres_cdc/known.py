"""The plugins of this room."""

from barnabas.connect.plugins.known import Kind, Known

PLUGINS = (
    Known(
        Kind.SOURCE,
        "barnabas.connect.connectors.postgres_cdc.connector:PostgresConnector",
        ("io.debezium.connector.postgresql.PostgresConnector",),
    ),
)
