"""The sink of MongoDB: records become writes of documents, in bulk, in their order.

Writes with an id from the record leave the same documents when they come again. A write that the server
refuses is reported alone; the others of its request are done. Does not know: topics, converters.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from bson.errors import BSONError
from pymongo import DeleteOne, InsertOne, MongoClient, ReplaceOne, UpdateOne
from pymongo.errors import (
    AutoReconnect,
    BulkWriteError,
    CollectionInvalid,
    ConfigurationError,
    DocumentTooLarge,
    ExecutionTimeout,
    NetworkTimeout,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
    WTimeoutError,
)

from barnabas.client.core.topology import TopicPartition
from barnabas.connect.config import ConfigDef, Settings
from barnabas.connect.connectors.mongo.change_events import write_of
from barnabas.connect.connectors.mongo.documents import document_of, without
from barnabas.connect.connectors.mongo.mongo_address import client_of, nodes_of, server_api_of
from barnabas.connect.connectors.mongo.mongo_settings import (
    TopicPlan,
    definitions,
    plan_of,
    settings_for,
)
from barnabas.connect.connectors.mongo.projections import Document
from barnabas.connect.connectors.stores.checks import errors_of
from barnabas.connect.connectors.stores.delivered import Delivered, Place
from barnabas.connect.connectors.stores.json_values import moment
from barnabas.connect.connectors.stores.left_out import refuse
from barnabas.connect.connectors.stores.retries import Pauses, Retries
from barnabas.connect.data import DataError, Record, Records
from barnabas.connect.plugins import ConnectError, Connector, SinkContext, SinkTask

log = logging.getLogger("barnabas.connect")

AWAY = (AutoReconnect, NetworkTimeout, ServerSelectionTimeoutError, ExecutionTimeout, WTimeoutError)
DENIED = (13, 18, 8000)  # Unauthorized, AuthenticationFailed, Atlas' error
DUPLICATE = 11000
# Errors of single writes while servers start, stop or elect a primary: the same write works in a moment.
CHANGING = frozenset(
    (6, 7, 63, 89, 91, 133, 150, 189, 234, 262, 9001, 10107, 11600, 11602, 13388, 13435, 13436)
)
WRITES_MAX = 10_000  # of one request
Spot = tuple[Place, int]


@dataclass(frozen=True, slots=True)
class Write:
    spot: Spot
    space: tuple[str, str]
    model: Any
    id: Any  # None: no other write of the batch is of the same document


class MongoSinkTask(SinkTask):
    def start(self, context: SinkContext) -> None:
        super().start(context)
        settings = context.settings
        self._retries = Retries(
            context, settings.integer("max.num.retries"), Pauses(settings.integer("retries.defer.timeout"))
        )
        self._plans: dict[str, TopicPlan] = {}
        self._client: MongoClient[dict[str, Any]] | None = None
        self._created: set[tuple[str, str]] = set()
        # Records of the batch that comes again which need no other try, and why where they were refused.
        self._settled: dict[Spot, Exception | None] = {}
        self._requests: dict[str, int] = {}  # of topics whose rate is limited
        self._made: dict[Spot, Write | None] = {}  # made once: an id that is new stays the same

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        self._settled.clear()
        self._made.clear()

    def put(self, records: Records) -> None:
        spots = Delivered().places(records)
        writes: list[Write] = []
        for spot, record in zip(spots, records.rows(), strict=True):
            if spot in self._settled:
                continue
            try:
                if spot not in self._made:
                    self._made[spot] = self._write_of(spot, record)
                made = self._made[spot]
            except DataError as error:
                self._settled[spot] = error
                continue
            if made is not None:
                writes.append(made)
        try:
            for part in self._parts(writes, records):
                self._send(part)
        except AWAY as error:
            raise self._retries.failed(f"MongoDB cannot take records: {error}", error) from error
        except OperationFailure as error:
            if error.code in DENIED:
                raise ConnectError(f"MongoDB refuses the connector: {error}") from error
            if error.has_error_label("RetryableWriteError"):
                raise self._retries.failed(f"MongoDB cannot take records: {error}", error) from error
            raise ConnectError(f"MongoDB refuses a request: {error}") from error
        except ConfigurationError as error:
            raise ConnectError(f"connection.uri: {error}") from error
        except PyMongoError as error:
            raise ConnectError(f"MongoDB cannot be used: {error}") from error
        self._retries.succeeded()
        settled, self._settled = self._settled, {}
        self._made.clear()
        for index, spot in enumerate(spots):
            if (why := settled.get(spot)) is not None:
                self._failed(records, index, why)

    # -- writes --------------------------------------------------------------------------------------------

    def _plan(self, topic: str) -> TopicPlan:
        if topic not in self._plans:
            settings = self.context.settings
            self._plans[topic] = plan_of(settings_for(MongoSinkConnector.CONFIG, settings, topic))
        return self._plans[topic]

    def _write_of(self, spot: Spot, record: Record) -> Write | None:
        plan = self._plan(record.topic or "")
        key = document_of(record.key, "key", record.key_schema)
        value = document_of(record.value, "value", record.value_schema)
        space = self._space(plan, record, key, value)
        if plan.handler is not None:
            model = write_of(plan.handler, key, value)
            return None if model is None else Write(spot, space, model, marked(model))
        if key is not None:
            key = plan.documents.projected(key)
        if value is None:
            if not plan.deletes_nulls:
                return None  # as MongoDB's connector does
            model = DeleteOne(self._chosen(plan, plan.delete, plan.documents.id_of(record, key, None)))
        else:
            model = self._model(plan, plan.documents.processed(record, key, value))
        return Write(spot, space, model, marked(model))

    def _model(self, plan: TopicPlan, value: Document) -> Any:
        name, id = plan.write, value.get("_id")
        if plan.series is not None or name == "InsertOneDefaultStrategy":
            return InsertOne(with_time(value, plan.series.field) if plan.series is not None else value)
        where = self._chosen(plan, name, id)
        if name.startswith("DeleteOne"):
            return DeleteOne(where)
        is_business = "BusinessKey" in name
        fields = without(value, "_id") if is_business else value
        if name in (
            "DefaultWriteModelStrategy",
            "ReplaceOneDefaultStrategy",
            "ReplaceOneBusinessKeyStrategy",
        ):
            return ReplaceOne(where, fields, upsert=True)
        update: Document = {"$set": fields}
        if "Timestamp" in name:
            now = datetime.now(UTC)
            update = {
                "$set": {**fields, "_modifiedTS": now},
                "$setOnInsert": {"_insertedTS": now},
            }
        return UpdateOne(where, update, upsert=True)

    def _chosen(self, plan: TopicPlan, name: str, id: Any) -> Document:
        """The filter of a write: the id, or the fields of a business key."""
        if "BusinessKey" not in name:
            return {"_id": id}
        if not isinstance(id, dict) or not id:
            raise DataError("the business key is empty: no field of the projection is there")
        return dict(id)

    def _space(
        self, plan: TopicPlan, record: Record, key: Document | None, value: Document | None
    ) -> tuple[str, str]:
        found = {"database": plan.database, "collection": plan.collection or record.topic or ""}
        for name, path in plan.mapped.items():
            side, part = name.split(".")
            at: Any = key if side == "key" else value
            for each in path.split("."):
                at = at.get(each) if isinstance(at, Mapping) else None
            if isinstance(at, str) and at:
                found[part] = at
            elif plan.mapped_fails:
                raise DataError(f"the {side} has no text at {path}, which names the {part}")
        return found["database"], found["collection"]

    # -- requests ------------------------------------------------------------------------------------------

    def _parts(self, writes: list[Write], records: Records) -> list[list[Write]]:
        """Requests: of one collection, of a bounded size. Unordered ones have each document once."""
        found: list[list[Write]] = []
        seen: set[Any] = set()
        for write in writes:
            plan = self._plan(write.spot[0][0])
            bound = min(plan.batch or WRITES_MAX, WRITES_MAX)
            last = found[-1] if found else None
            is_twice = not plan.is_ordered and write.id is not None and write.id in seen
            if last is None or last[0].space != write.space or len(last) >= bound or is_twice:
                found.append([])
                seen = set()
            found[-1].append(write)
            seen.add(write.id)
        return found

    def _send(self, part: list[Write]) -> None:
        """One request; behind a write that is refused, the others are sent again where order matters."""
        plan = self._plan(part[0].spot[0][0])
        collection = self._collection(part[0].space, plan)
        while part:
            try:
                collection.bulk_write([each.model for each in part], ordered=plan.is_ordered)
            except BulkWriteError as error:
                part = self._left(part, error, plan)
                continue
            except (DocumentTooLarge, BSONError, OverflowError, TypeError, ValueError) as error:
                if len(part) == 1:
                    self._settled[part[0].spot] = DataError(f"MongoDB's format cannot hold it: {error}")
                    return
                for each in part:
                    self._send([each])
                return
            for each in part:
                self._settled[each.spot] = None
            break
        self._slow_down(part[0].spot[0][0] if part else "", plan)

    def _slow_down(self, topic: str, plan: TopicPlan) -> None:
        """Pause behind every nth request of a topic, where the settings want it."""
        if not plan.pause_s or not plan.pause_every:
            return
        self._requests[topic] = (self._requests.get(topic, 0) + 1) % plan.pause_every
        if self._requests[topic] == 0:
            time.sleep(plan.pause_s)

    def _left(self, part: list[Write], error: BulkWriteError, plan: TopicPlan) -> list[Write]:
        """Note what was done and what was refused. Out: writes that must be sent again."""
        details = error.details
        if details.get("writeConcernErrors"):
            raise AutoReconnect(f"the write concern is not met: {details['writeConcernErrors'][0]}")
        failed = {int(each["index"]): each for each in details["writeErrors"]}
        if any(each.get("code") in DENIED for each in failed.values()):
            raise OperationFailure(next(iter(failed.values()))["errmsg"], DENIED[0])
        end = min(failed) + 1 if plan.is_ordered else len(part)
        again = [each for each in failed.values() if each.get("code") in CHANGING]
        for index, write in enumerate(part[:end]):
            refused = failed.get(index)
            if refused in again:
                continue
            is_there = (
                refused is not None
                and refused.get("code") == DUPLICATE
                and isinstance(write.model, InsertOne)
                and (refused.get("keyPattern") == {"_id": 1} or "_id_" in str(refused.get("errmsg")))
            )
            self._settled[write.spot] = (
                None
                if refused is None or is_there  # an insert that came before
                else ConnectError(f"MongoDB refuses the record: {refused.get('errmsg')}")
            )
        if again:
            raise AutoReconnect(f"the server changes its state: {again[0].get('errmsg')}")
        return part[end:]

    def _collection(self, space: tuple[str, str], plan: TopicPlan) -> Any:
        if self._client is None:
            self._client = client_of(self.context.settings)
        database = self._client[space[0]]
        if plan.series is not None and space not in self._created:
            try:
                database.create_collection(space[1], **plan.series.options())
            except CollectionInvalid:
                pass  # it is there
            self._created.add(space)
        return database[space[1]]

    def _failed(self, records: Records, index: int, error: Exception) -> None:
        plan = self._plan(records.topics[index].as_py())
        if plan.logs_errors:
            log.error(
                "task %s-%d cannot write the record %d of %d: %s",
                self.context.connector, self.context.task, index + 1, len(records), error,
            )  # fmt: skip
        setting = "mongo.errors.tolerance" if plan.tolerates else None
        refuse(self.context, records, index, error, ignored_by=setting)

    def stop(self) -> None:
        if getattr(self, "_client", None) is not None:
            assert self._client is not None
            self._client.close()


def marked(model: Any) -> Any:
    """The document of a write, as something that can be compared; None where it is a new one."""
    return None if isinstance(model, InsertOne) else repr(model._filter)


def with_time(value: Document, name: str) -> Document:
    """The time field of a series as a date: numbers are milliseconds, texts are ISO 8601."""
    at = value.get(name)
    if isinstance(at, str):
        try:
            found = datetime.fromisoformat(at)
        except ValueError as error:
            raise DataError(f"the time field {name} is {at!r}, and no time in ISO form") from error
        return {**value, name: found if found.tzinfo else found.replace(tzinfo=UTC)}
    if isinstance(at, int) and not isinstance(at, bool):
        return {**value, name: moment(at)}
    if not isinstance(at, datetime):
        raise DataError(f"the time field {name} is {at!r}: a time series needs it")
    return value


class MongoSinkConnector(Connector):
    KIND = "sink"
    JAVA_NAMES: ClassVar[tuple[str, ...]] = ("com.mongodb.kafka.connect.MongoSinkConnector",)
    CONFIG: ClassVar[ConfigDef] = definitions()
    task = MongoSinkTask

    def check(self, config: Mapping[str, str]) -> dict[str, list[str]]:
        def overridden(settings: Settings) -> None:
            for topic in (each.strip() for each in (config.get("topics") or "").split(",")):
                if topic:
                    plan_of(settings_for(self.CONFIG, settings, topic))

        return errors_of(self.CONFIG, config, plan_of, overridden, nodes_of, server_api_of)
