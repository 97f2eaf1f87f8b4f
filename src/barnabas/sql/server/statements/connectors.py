"""CREATE and DROP CONNECTOR, through Connect's API."""

from __future__ import annotations

from barnabas.sql.server.statements.changing import check_writable
from barnabas.sql.server.statements.entities import Entity, entity
from barnabas.sql.server.statements.errors import StatementRefused
from barnabas.sql.server.statements.session import Session
from barnabas.sql.syntax import statements as made
from barnabas.sql.syntax.tree import Value

DEFAULTS = {"key.converter": "org.apache.kafka.connect.storage.StringConverter"}


async def create_connector(session: Session, statement: made.CreateConnector, text: str) -> Entity:
    check_writable(session.server)
    connect = session.server.connect
    config = {name: config_text(value) for name, value in statement.properties}
    if "connector.class" not in config:
        raise StatementRefused(
            f"{statement.name} has no connector.class: LIST CONNECTOR PLUGINS; shows the classes", text
        )
    if await connect.connector(statement.name) is not None:
        if statement.if_not_exists:
            return entity("warning_entity", text, message=f"Connector {statement.name} already exists")
        raise StatementRefused(f"Connector {statement.name} already exists", text)
    info = await connect.create(statement.name, {**DEFAULTS, **config})
    return entity("connector_info", text, info=info)


async def drop_connector(session: Session, statement: made.DropConnector, text: str) -> Entity:
    check_writable(session.server)
    connect = session.server.connect
    if await connect.connector(statement.name) is None:
        if statement.if_exists:
            return entity("warning_entity", text, message=f"Connector '{statement.name}' does not exist.")
        raise StatementRefused(f"Connector {statement.name} does not exist at {connect.url}", text)
    await connect.delete(statement.name)
    return entity("drop_connector", text, connectorName=statement.name)


def config_text(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)
