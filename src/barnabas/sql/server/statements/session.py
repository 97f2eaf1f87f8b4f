"""Shared by the statements of one request: properties, variables, and their part of the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from barnabas.client.core.cluster import ClusterCore
from barnabas.schemas.client.faces import AsyncSchemaRegistryClient
from barnabas.sql.execution.port import Engine, QueryStatus
from barnabas.sql.metastore.metastore import Metastore
from barnabas.sql.server.commands.command_log import CommandLog
from barnabas.sql.server.commands.runner import Runner
from barnabas.sql.server.settings.properties import plain_name
from barnabas.sql.server.settings.server_settings import ServerSettings
from barnabas.sql.server.statements.connect_client import ConnectClient
from barnabas.sql.server.statements.selects import Selects


class Server(Protocol):
    """The node, as statements see it."""

    settings: ServerSettings
    runner: Runner
    commands: CommandLog
    connect: ConnectClient
    selects: Selects

    @property
    def cluster(self) -> ClusterCore: ...

    @property
    def engine(self) -> Engine: ...

    @property
    def metastore(self) -> Metastore: ...

    def registry(self) -> AsyncSchemaRegistryClient:
        """StatementRefused 42801 where no registry is configured."""

    def why_read_only(self) -> str | None:
        """The reason why statements that change something are refused."""

    async def answering(self, urls: Sequence[str]) -> list[str]:
        """Choose the nodes that answer now."""

    async def query_statuses(self) -> Mapping[str, QueryStatus]:
        """Statuses of persistent queries, of the node that runs them."""


@dataclass(slots=True)
class Session:
    """`properties` are those of the request, with plain names."""

    server: Server
    properties: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    def set(self, name: str, value: str) -> None:
        self.properties[plain_name(name)] = value

    def unset(self, name: str) -> None:
        self.properties.pop(plain_name(name), None)

    @property
    def all_properties(self) -> dict[str, str]:
        """The server's defaults, those of ALTER SYSTEM, then the session's own."""
        return {**self.server.settings.defaults, **self.server.runner.system, **self.properties}

    def copy(self) -> Session:
        return Session(self.server, dict(self.properties), dict(self.variables))
