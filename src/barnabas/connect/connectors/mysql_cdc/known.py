"""The plugins of this room."""

from barnabas.connect.plugins.known import Kind, Known

PLUGINS = (
    Known(
        Kind.SOURCE,
        "barnabas.connect.connectors.mysql_cdc.connector:MySqlConnector",
        ("io.debezium.connector.mysql.MySqlConnector",),
    ),
    Known(
        Kind.SOURCE,
        "barnabas.connect.connectors.mysql_cdc.connector:MariaDbConnector",
        ("io.debezium.connector.mariadb.MariaDbConnector",),
    ),
)
