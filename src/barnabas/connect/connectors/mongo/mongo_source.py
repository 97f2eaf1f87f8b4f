"""The source of MongoDB: events of a change stream, behind a copy of what is there where that is wanted.

The offset is the token from which the stream goes on. A copy begins behind a token that was taken before it,
so nothing between is missed; a copy that is cut begins again. Does not know: topics, converters.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from bson import json_util
from bson.errors import BSONError
from pymongo import MongoClient
from pymongo.errors import AutoReconnect, OperationFailure, PyMongoError, ServerSelectionTimeoutError

from barnabas.connect.config import ConfigDef
from barnabas.connect.connectors.mongo.mongo_address import client_of, server_api_of
from barnabas.connect.connectors.mongo.source_records import Event, parts_of
from barnabas.connect.connectors.mongo.source_settings import SourcePlan, definitions, plan_of
from barnabas.connect.connectors.stores.checks import errors_of
from barnabas.connect.data import OPTIONAL_STRING, Column, Records
from barnabas.connect.plugins import ConnectError, Connector, RetriableError, SourceContext, SourceTask

log = logging.getLogger("barnabas.connect")

TOKEN, COPY = "_id", "copy"
FORGOTTEN = (260, 280, 286)  # InvalidResumeToken, ChangeStreamFatalError, ChangeStreamHistoryLost
DENIED = (13, 18, 8000)
SYSTEM = ("admin", "config", "local")


class MongoSourceTask(SourceTask):
    def start(self, context: SourceContext) -> None:
        super().start(context)
        self._plan: SourcePlan = plan_of(context.settings)
        self._client: MongoClient[dict[str, Any]] | None = None
        self._stream: Any = None
        [stored] = context.offsets.read([self._plan.source])
        text = (stored or {}).get(TOKEN)
        self._token: Any = json_util.loads(text) if text else None
        begins = stored is None and self._plan.mode == "copy_existing"
        self._copies = begins or bool((stored or {}).get(COPY))
        self._copy: Iterator[Event] | None = None
        self._next: Event | None = None  # of the copy
        self._waiting: deque[Records] = deque()
        self._told: Any = self._token
        self._told_at = time.monotonic()

    def poll(self) -> Records | None:
        if self._waiting:
            return self._waiting.popleft()
        try:
            if self._stream is None:
                self._open()
            if self._copies:
                found = self._copied()
                if found is not None:
                    return found
            return self._events()
        except (AutoReconnect, ServerSelectionTimeoutError) as error:
            self._shut()
            raise RetriableError(f"MongoDB is away: {error}") from error
        except OperationFailure as error:
            self._shut()
            if error.code in FORGOTTEN:
                self._forgotten(error)
                return None
            if error.code in DENIED:
                raise ConnectError(f"MongoDB refuses the connector: {error}") from error
            raise ConnectError(f"MongoDB refuses the change stream: {error}") from error
        except PyMongoError as error:
            self._shut()
            raise ConnectError(f"MongoDB cannot be read: {error}") from error

    def _forgotten(self, error: OperationFailure) -> None:
        if not self._plan.tolerates:
            raise ConnectError(
                f"MongoDB has forgotten the position ({error}): events were lost. Reset the offsets by"
                " DELETE /connectors/NAME/offsets, or set mongo.errors.tolerance=all to go on from now"
            ) from error
        log.error("%s goes on from now, events before are lost: %s", self.context.connector, error)
        self._token = None

    # -- reading -------------------------------------------------------------------------------------------

    def _open(self) -> None:
        plan = self._plan
        if self._client is None:
            self._client = client_of(self.context.settings)
        target: Any = self._client
        if plan.database:
            target = self._client[plan.database]
            target = target[plan.collection] if plan.collection else target
        wait_ms = max(1, min(plan.await_ms, int(self.context.poll_seconds * 1000)))
        more: dict[str, Any] = {"max_await_time_ms": wait_ms, **plan.options}
        if self._token is not None:
            more["resume_after"] = self._token
        elif plan.start_at is not None:
            more["start_at_operation_time"] = plan.start_at
        self._stream = target.watch(plan.pipeline, **more)
        self._token = self._token or self._stream.resume_token

    def _events(self) -> Records | None:
        plan = self._plan
        found: list[Event] = []
        while len(found) < plan.batch and not self.context.stopping.is_set():
            event = self._stream.try_next()
            if event is None:
                break
            found.append(event)
        token = self._stream.resume_token or (found[-1]["_id"] if found else None)
        self._token = token or self._token
        if found:
            return self._records(found, {TOKEN: json_util.dumps(self._token)})
        if not self._stream.alive:
            self._shut()  # the collection was dropped: open again behind it
        return self._heartbeat()

    def _heartbeat(self) -> Records | None:
        plan, now = self._plan, time.monotonic()
        is_due = plan.heartbeat_s > 0 and now - self._told_at >= plan.heartbeat_s
        if not is_due or self._token is None or self._token == self._told:
            return None
        self._told, self._told_at = self._token, now
        key = Column.of([json_util.dumps(dict(plan.source))], OPTIONAL_STRING)
        offset = {TOKEN: json_util.dumps(self._token)}
        return Records.of(
            plan.heartbeat_topic, Column.of([None], OPTIONAL_STRING), key,
            positions=[(dict(plan.source), offset)],
        )  # fmt: skip

    def _copied(self) -> Records | None:
        """Some documents of the copy."""
        if self._copy is None:
            self._copy = self._documents()
        found: list[Event] = []
        if self._next is not None:
            found.append(self._next)
        self._next = None
        for event in self._copy:
            if len(found) >= self._plan.batch:
                self._next = event  # the last part of a copy says that it is
                break
            found.append(event)
        token = {} if self._token is None else {TOKEN: json_util.dumps(self._token)}
        if self._next is None:
            self._copies, self._copy = False, None
        return self._records(found, {**token, COPY: "true" if self._copies else ""})

    def _documents(self) -> Iterator[Event]:
        plan = self._plan
        assert self._client is not None
        names = [plan.database] if plan.database else self._client.list_database_names()
        for database in sorted(set(names) - set(SYSTEM)):
            here = self._client[database]
            some = [plan.collection] if plan.collection else here.list_collection_names()
            for name in sorted(some):
                space = f"{database}.{name}"
                if name.startswith("system.") or (plan.copy_names and not plan.copy_names.search(space)):
                    continue
                if plan.copy_pipeline:
                    rows: Any = here[name].aggregate(plan.copy_pipeline)
                else:
                    rows = here[name].find()
                for row in rows:
                    yield {
                        "_id": {"_id": row.get("_id"), "copyingData": True},
                        "operationType": "insert",
                        "ns": {"db": database, "coll": name},
                        "documentKey": {"_id": row.get("_id")},
                        "fullDocument": row,
                    }

    # -- records -------------------------------------------------------------------------------------------

    def _records(self, events: Sequence[Event], offset: dict[str, Any]) -> Records | None:
        """Records of the events. Those of other schemas wait for the next polls; `offset` is behind all."""
        self._told, self._told_at = self._token, time.monotonic()
        parts = parts_of(self._plan, events)
        for part in parts[:-1]:
            here = {**offset, COPY: "true"} if COPY in offset else {TOKEN: token_of(events[part.end - 1])}
            self._waiting.append(self._positioned(part.records(), here))
        if parts:
            self._waiting.append(self._positioned(parts[-1].records(), offset))
        return self._waiting.popleft() if self._waiting else None

    def _positioned(self, records: Records, offset: dict[str, Any]) -> Records:
        return replace(records, positions=[(dict(self._plan.source), offset)])

    def _shut(self) -> None:
        stream, self._stream, self._copy, self._next = self._stream, None, None, None
        if stream is not None:
            try:
                stream.close()
            except PyMongoError as error:
                log.debug("the change stream is not closed: %s", error)

    def stop(self) -> None:
        if getattr(self, "_client", None) is not None:
            self._shut()
            assert self._client is not None
            self._client.close()


def token_of(event: Event) -> str:
    return json_util.dumps(event["_id"])


class MongoSourceConnector(Connector):
    KIND = "source"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("com.mongodb.kafka.connect.MongoSourceConnector",)
    CONFIG: ClassVar[ConfigDef] = definitions()
    task = MongoSourceTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        return errors_of(self.CONFIG, config, plan_of, server_api_of)

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        return True

    def alter_offsets(self, config: Mapping[str, str], offsets: Sequence[tuple[Any, Any]]) -> bool:
        for partition, offset in offsets:
            if not isinstance(partition, Mapping) or set(partition) != {"ns"}:
                raise ConnectError(
                    f'a partition of this source looks like {{"ns": "..."}}, not {partition!r}'
                )
            if offset is None:
                continue
            try:
                json_util.loads(offset[TOKEN])
            except (KeyError, TypeError, ValueError, BSONError) as error:
                raise ConnectError(f"the offset {offset!r} has no resume token as JSON in _id") from error
        return True
