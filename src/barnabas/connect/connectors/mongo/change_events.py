"""Change events of Debezium and of MongoDB's change streams as writes: `change.data.capture.handler`.

In: a record whose value is an event. Out: an upsert, a partial update or a deletion by id; None for events
that change no document. Does not know: strategies of ids.
"""

from __future__ import annotations

from typing import Any

from pymongo import DeleteOne, ReplaceOne, UpdateOne

from barnabas.connect.connectors.mongo.documents import parsed
from barnabas.connect.connectors.mongo.projections import Document
from barnabas.connect.data import DataError

HANDLERS = {
    "debezium.mongodb.MongoDbHandler": "mongo",
    "debezium.rdbms.RdbmsHandler": "rdbms",
    "debezium.rdbms.mysql.MysqlHandler": "rdbms",
    "debezium.rdbms.postgres.PostgresHandler": "rdbms",
    "mongodb.ChangeStreamHandler": "stream",
}


def handler_of(name: str) -> str | None:
    """The kind of a handler by its class; None if it is unknown."""
    return next((kind for each, kind in HANDLERS.items() if name.endswith(each)), None)


def write_of(kind: str, key: Document | None, event: Document | None) -> Any:
    """Find the operation of an event. DataError if it is no event."""
    try:
        return operation_of(kind, key, event)
    except (AttributeError, TypeError, KeyError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"a part of the change event has an unknown form: {error}") from error


def operation_of(kind: str, key: Document | None, event: Document | None) -> Any:
    if kind == "stream":
        return of_stream(event)
    if event is None or not event:
        return None  # the tombstone behind a deletion
    payload = event.get("payload", event) if "op" not in event else event
    if not isinstance(payload, dict) or "op" not in payload:
        raise DataError("the value has no field op: it is no event of Debezium")
    return of_rdbms(key, payload) if kind == "rdbms" else of_mongo(key, payload)


def of_rdbms(key: Document | None, event: Document) -> Any:
    op = event["op"]
    if op in ("m", "t"):
        return None
    row = event.get("before" if op == "d" else "after")
    if key:
        id: Any = {name: value for name, value in (key.get("payload") or key).items() if name != "schema"}
    elif row:
        id = dict(row)  # a table without a key: the whole row
    else:
        raise DataError(f"the event with op {op!r} has neither a key nor a row")
    if op == "d":
        return DeleteOne({"_id": id})
    if row is None:
        raise DataError(f"the event with op {op!r} has no field after")
    return ReplaceOne({"_id": id}, {"_id": id, **{n: v for n, v in row.items() if n not in id}}, upsert=True)


def of_mongo(key: Document | None, event: Document) -> Any:
    op = event["op"]
    given = (key or {}).get("id", (key or {}).get("_id"))
    if given is None and op in ("d", "u"):
        raise DataError("the key of the event has no field id")
    id = parsed(given) if isinstance(given, str) else given
    if op == "d":
        return DeleteOne({"_id": id})
    after = event.get("after")
    if after is not None:
        document = parsed(after) if isinstance(after, str) else after
        return ReplaceOne({"_id": document.get("_id", id)}, document, upsert=True)
    changes = event.get("updateDescription") or {}
    found: Document = {}
    if updated := changes.get("updatedFields"):
        found["$set"] = parsed(updated) if isinstance(updated, str) else updated
    if removed := changes.get("removedFields"):
        found["$unset"] = dict.fromkeys(removed, "")
    if patch := event.get("patch"):
        found = {n: v for n, v in parsed(patch).items() if n != "$v"}
    if not found:
        raise DataError(f"the event with op {op!r} has neither after nor a description of the update")
    return (
        UpdateOne({"_id": id}, found)
        if any(n.startswith("$") for n in found)
        else ReplaceOne({"_id": id}, found, upsert=True)
    )


def of_stream(event: Document | None) -> Any:
    if not event:
        return None
    kind, key = event.get("operationType"), event.get("documentKey")
    if kind in ("drop", "dropDatabase", "rename", "invalidate"):
        return None
    if not isinstance(key, dict):
        raise DataError("the value has no documentKey: it is no event of a change stream")
    if kind == "delete":
        return DeleteOne(key)
    if (full := event.get("fullDocument")) is not None:
        return ReplaceOne(key, full, upsert=True)
    if kind != "update":
        raise DataError(f"the event {kind!r} has no fullDocument")
    changes = event.get("updateDescription") or {}
    found: Document = {}
    if changes.get("updatedFields"):
        found["$set"] = changes["updatedFields"]
    if changes.get("removedFields"):
        found["$unset"] = dict.fromkeys(changes["removedFields"], "")
    return UpdateOne(key, found) if found else None
