"""A node of the SQL server below its API: the command log, the runner, its part in the election, clients.

In: settings, a function that makes the engine. Out: what statements use (`Server`). Every node follows the
metastore and takes statements; the elected one runs the persistent queries. Does not know: routes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from barnabas.client.admin.admin import Admin
from barnabas.client.cluster import Cluster
from barnabas.client.core.address import parse_bootstrap
from barnabas.client.core.errors import ClientError, NoTopic
from barnabas.client.groups.leadership import Leadership
from barnabas.client.groups.membership import GroupSettings
from barnabas.protocol import KafkaError
from barnabas.registry.log.schema_log import LogSettings
from barnabas.registry.log.topic import TopicSettings
from barnabas.schemas.client.faces import AsyncSchemaRegistryClient
from barnabas.security.clients.client_security import client_security
from barnabas.services.errors import ApiError
from barnabas.services.settings.client_properties import BOOTSTRAP
from barnabas.settings.errors import SettingsError
from barnabas.sql.execution.port import Engine, QueryStatus
from barnabas.sql.metastore.metastore import Metastore
from barnabas.sql.server import processing_stream
from barnabas.sql.server.commands.command import NOOP, Command
from barnabas.sql.server.commands.command_log import CommandLog, MemoryLog, TopicLog
from barnabas.sql.server.commands.runner import Runner
from barnabas.sql.server.other_nodes import NodeUnreachable, OtherNodes
from barnabas.sql.server.settings.server_settings import ServerSettings
from barnabas.sql.server.statements.connect_client import ConnectClient
from barnabas.sql.server.statements.errors import NO_REGISTRY, StatementRefused
from barnabas.sql.server.statements.request import run_request
from barnabas.sql.server.statements.selects import Selects
from barnabas.sql.server.statements.session import Session
from barnabas.sql.syntax.parsing import parse_statement

CLIENT_ID = "ksql-server"
PROTOCOL_TYPE = "ksql"
HEARTBEATS_PER_SESSION = 5
LOOK_S = 1.0  # at the outcome of the election

log = logging.getLogger("barnabas.sql")


class SqlNode:
    def __init__(self, settings: ServerSettings, make_engine: Callable[[], Engine]) -> None:
        self.settings = settings
        self.cluster = Cluster(
            parse_bootstrap(settings.client[BOOTSTRAP]),
            client_id=settings.client.get("client.id", CLIENT_ID),
            security=client_security(settings.client),
            waits_for_bootstrap=True,
        )
        self.runner = Runner(make_engine)
        self.runner.on_terminate = self._delete_topics
        self.commands: CommandLog
        if settings.queries_file:
            self.commands = MemoryLog(self.runner.enqueue)
        else:
            self.commands = TopicLog(self.cluster, log_settings(settings), self.runner.enqueue)
        self.connect = ConnectClient(settings.connect_url, settings.connect_timeout_s)
        self.selects = Selects(
            settings.max_push_queries, settings.pull_queries_max, settings.pull_queries_per_s
        )
        self.others = OtherNodes(settings)
        self._registry: AsyncSchemaRegistryClient | None = None
        self._leadership: Leadership | None = None
        self._has_voted = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._is_replayed = False
        self._is_file_read = False
        self._is_log_stream_made = False

    @property
    def engine(self) -> Engine:
        return self.runner.engine

    @property
    def metastore(self) -> Metastore:
        return self.runner.metastore

    @property
    def leader(self) -> str:
        """The URL of the node that runs the queries; empty while nobody does."""
        return self._leadership.leader if self._leadership is not None else ""

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs of all nodes that take part in the election."""
        return self._leadership.names if self._leadership is not None else ()

    async def start(self) -> None:
        try:
            await self.cluster.retrying(self.cluster.refresh)
            await asyncio.to_thread(
                parse_statement, "SHOW STREAMS;"
            )  # builds the parser, which takes a second
            self.runner.start()
            await self.commands.start()
            await self.runner.statuses.wait(self.commands.next_number - 1, None)
            if self.settings.queries_file:
                await self._run_file(Path(self.settings.queries_file))
            self._is_replayed = True
            leadership = Leadership(self.cluster, self._group(), self.settings.url, self._has_voted.set)
            self._leadership = leadership
            leadership.start()
            self._follower = asyncio.create_task(self._follow_election(leadership))
        except BaseException:
            await self.stop()
            raise
        log.info(
            "%d statements of %s are carried out; %d streams and tables, %d queries",
            self.commands.next_number,
            self.settings.queries_file or self.settings.command_topic,
            len(self.metastore.sources),
            len(self.metastore.queries),
        )

    def _group(self) -> GroupSettings:
        session_ms = self.settings.session_timeout_ms
        return GroupSettings(
            self.settings.group,
            PROTOCOL_TYPE,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=session_ms,
            heartbeat_interval_ms=max(session_ms // HEARTBEATS_PER_SESSION, 1),
        )

    async def _follow_election(self, leadership: Leadership) -> None:
        """Tell the runner who leads. While nobody is elected, for a moment without a session, queries run on:
        the engine's lease sees to it that no other node runs them."""
        while True:
            if leadership.is_leader:
                self.runner.lead(True)
                if not self._is_log_stream_made:
                    self._is_log_stream_made = True
                    await self._make_log_stream()
            elif leadership.leader not in ("", self.settings.url):
                self.runner.lead(False)
            self._has_voted.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._has_voted.wait()

    async def _run_file(self, path: Path) -> None:
        try:
            text = await asyncio.to_thread(path.read_text, encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"ksql.queries.file: {path} cannot be read: {error}") from None
        await self._make_log_stream()
        self._is_log_stream_made = True
        try:
            await run_request(Session(self), text if text.rstrip().endswith(";") else f"{text};")
        except ApiError as error:
            raise SettingsError(f"{path}: {error.message}") from None
        self._is_file_read = True

    async def _make_log_stream(self) -> None:
        """Create the stream over the processing log where it is wanted. A server works without it."""
        settings = self.settings.shown
        if not processing_stream.is_wanted(settings) or self.runner.is_terminated:
            return
        topic = processing_stream.topic_of(settings, self.settings.service_id)
        try:
            known = {each.name for each in await Admin(self.cluster).list_topics()}
            text = processing_stream.statement(
                settings,
                topic,
                creates_topic=topic not in known,
                replicas=self.settings.internal_replicas,
            )
            await run_request(Session(self), text)
        except (ApiError, KafkaError, ClientError) as error:
            log.warning("the stream over the processing log %s could not be created: %s", topic, error)

    async def stop(self) -> None:
        await self.selects.close()
        if self._follower is not None:
            self._follower.cancel()
            await asyncio.gather(self._follower, return_exceptions=True)
        if self._leadership is not None:
            await self._leadership.stop()
        await self.runner.stop()
        await self.commands.stop()
        await self.connect.close()
        await self.others.close()
        if self._registry is not None:
            await self._registry.close()
        await self.cluster.close()

    def why_not_ready(self) -> str | None:
        if not self._is_replayed:
            return "statements of the command topic are being carried out"
        return self.commands.why_not_ready()

    def why_read_only(self) -> str | None:
        if self._is_file_read:
            return f"this server runs the statements of {self.settings.queries_file} and takes no others"
        return None

    def registry(self) -> AsyncSchemaRegistryClient:
        if not self.settings.registry_url:
            raise StatementRefused(
                "KSQL is not configured to use a schema registry: set ksql.schema.registry.url",
                code=NO_REGISTRY,
                status=428,
            )
        if self._registry is None:
            given = {**self.settings.registry, "url": self.settings.registry_url}
            self._registry = AsyncSchemaRegistryClient(given)
        return self._registry

    # -- the node that runs the queries ------------------------------------------------------------

    @property
    def _is_far(self) -> bool:
        """Whether another node runs the queries."""
        return not self.runner.is_leading and self.leader not in ("", self.settings.url)

    async def query_statuses(self) -> Mapping[str, QueryStatus]:
        if not self._is_far:
            return {each.query_id: each for each in self.engine.statuses()}
        try:
            return await self.others.statuses(self.leader)
        except NodeUnreachable as error:
            log.warning("%s", error)
            return {}

    async def answering(self, urls: Sequence[str]) -> list[str]:
        return await self.others.answering(urls)

    # -- the end of a cluster ----------------------------------------------------------------------

    async def _delete_topics(self, command: Command, written: frozenset[str]) -> None:
        patterns = json.loads(command.properties.get("ksql.delete.topic.list", "[]"))
        chosen = sorted(
            topic for topic in written if any(re.fullmatch(pattern, topic) for pattern in patterns)
        )
        try:
            await Admin(self.cluster).delete_topics([*chosen, self.settings.command_topic])
        except (KafkaError, NoTopic) as error:
            log.error("topics of the terminated cluster are left: %s", error)


def log_settings(settings: ServerSettings) -> LogSettings:
    topic = TopicSettings(
        settings.command_topic,
        settings.internal_replicas,
        {"retention.ms": "-1"},
        policy="delete",
        service="server",
        setting="ksql.service.id",
        records="statements",
    )
    return LogSettings(
        topic,
        settings.topic_timeout_ms,
        settings.topic_init_timeout_ms,
        noop=NOOP,
        fence=f"{settings.command_topic}-writer",
        init_setting="ksql.server.command.topic.init.timeout.ms",
    )
