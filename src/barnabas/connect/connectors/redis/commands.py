"""Commands of Redis for records: which command a record becomes, by the type of the target.

In: a record. Out: commands as tuples, or DataError that says why the record does not fit. Knows no
connection.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.connect.connectors.stores.json_values import json_bytes, text_of
from barnabas.connect.data import DataError, Record

Command = tuple[Any, ...]
TYPES = ("string", "hash", "json", "jsonmerge", "list", "set", "stream", "zset", "geo", "timeseries", "del")
COMMANDS = {  # the names that `redis.command` has, and what they are here
    "SET": "string",
    "HSET": "hash",
    "HMSET": "hash",
    "JSONSET": "json",
    "JSON.SET": "json",
    "JSONMERGE": "jsonmerge",
    "JSON.MERGE": "jsonmerge",
    "DEL": "del",
    "RPUSH": "list",
    "LPUSH": "list",
    "SADD": "set",
    "XADD": "stream",
    "ZADD": "zset",
    "GEOADD": "geo",
    "TSADD": "timeseries",
    "TS.ADD": "timeseries",
}
# One key for the topic; records are members.
COLLECTIONS = ("list", "set", "stream", "zset", "geo", "timeseries")
# A second write of the same records changes nothing.
REPEATABLE = ("string", "hash", "json", "jsonmerge", "set", "zset", "geo", "timeseries", "del")
NEEDED = {"json": "JSON.SET", "jsonmerge": "JSON.MERGE", "timeseries": "TS.ADD"}  # commands of modules
REMOVALS = ("DEL", "SREM", "LREM", "ZREM", "TS.DEL")
LONGITUDE_MAX, LATITUDE_MAX = 180.0, 85.05112878  # what Redis takes


@dataclass(frozen=True, slots=True)
class Target:
    """The commands that records become. `keyspace` may hold `${topic}`."""

    type: str
    keyspace: str
    separator: str = ":"
    member: str = "value"  # or key: members of lists and sets
    pushes_left: bool = False
    expire_s: int = -1
    length_max: int = -1  # of streams
    score: str = "score"  # the field with the score of a sorted set, where values are structs
    longitude: str = "longitude"
    latitude: str = "latitude"
    path_header: str = ""  # JSON.MERGE: the header with the path
    path: str = "$"  # where there is none

    def name_of(self, record: Record) -> str | bytes:
        """The key in Redis."""
        space = self.keyspace.replace("${topic}", record.topic or "")
        if self.type in COLLECTIONS:
            return space
        if record.key is None:
            raise DataError(
                "the record has no key, and its key names the entry in Redis:"
                " produce with keys, or set one with the transform ValueToKey"
            )
        if not space:
            return record.key if isinstance(record.key, bytes) else text_of(record.key)
        return f"{space}{self.separator}{text_of(record.key)}"

    def commands(self, record: Record) -> list[Command]:
        name = self.name_of(record)
        if not name:
            raise DataError("the key in Redis would be empty: set redis.keyspace or produce with keys")
        made: list[Command] = getattr(self, f"_{self.type}")(name, record)
        if self.expire_s > 0 and made and made[-1][0] not in REMOVALS:
            made.append(("EXPIRE", name, self.expire_s))
        return made

    def _string(self, name: Any, record: Record) -> list[Command]:
        return [("DEL", name)] if record.value is None else [("SET", name, value_bytes(record.value))]

    def _hash(self, name: Any, record: Record) -> list[Command]:
        if record.value is None:
            return [("DEL", name)]
        fields = fields_of(record.value, "hash")
        found: list[Command] = []
        present = [(field, value) for field, value in fields.items() if value is not None]
        if present:
            found.append(
                ("HSET", name, *(part for field, value in present for part in (field, value_bytes(value))))
            )
        if absent := [field for field, value in fields.items() if value is None]:
            found.insert(0, ("HDEL", name, *absent))
        return found

    def _json(self, name: Any, record: Record) -> list[Command]:
        return [("DEL", name)] if record.value is None else [("JSON.SET", name, "$", document(record.value))]

    def _jsonmerge(self, name: Any, record: Record) -> list[Command]:
        """Fields of the value are merged into the document, at a path that a header may name."""
        if record.value is None:
            return [("DEL", name)]
        found = [text_of(each.value) for each in record.headers if each.name == self.path_header]
        return [("JSON.MERGE", name, found[-1] if found else self.path, document(record.value))]

    def _del(self, name: Any, record: Record) -> list[Command]:
        return [("DEL", name)]

    def _list(self, name: Any, record: Record) -> list[Command]:
        if (is_gone := record.value is None) and self.member == "value":
            raise DataError(
                "a tombstone has no value to push; redis.member=key removes its key from the list"
            )
        member = self._member(record)
        if is_gone:
            return [("LREM", name, 0, member)]
        return [("LPUSH" if self.pushes_left else "RPUSH", name, member)]

    def _set(self, name: Any, record: Record) -> list[Command]:
        if (is_gone := record.value is None) and self.member == "value":
            raise DataError("a tombstone has no value to add; redis.member=key removes its key from the set")
        return [("SREM" if is_gone else "SADD", name, self._member(record))]

    def _member(self, record: Record) -> bytes:
        if self.member == "value":
            return value_bytes(record.value)
        if record.key is None:
            raise DataError("the record has no key, and redis.member=key makes its key the member")
        return value_bytes(record.key)

    def _zset(self, name: Any, record: Record) -> list[Command]:
        """A member of a sorted set: the record's key, with its value as the score."""
        member = self._key_member(record)
        if record.value is None:
            return [("ZREM", name, member)]
        if isinstance(record.value, Mapping):
            score = number_of(record.value.get(self.score), f"the field {self.score}, the score")
        else:
            score = number_of(record.value, "the value, the score")
        return [("ZADD", name, score, member)]

    def _geo(self, name: Any, record: Record) -> list[Command]:
        """A place: the record's key, with its longitude and latitude from the value."""
        member, value = self._key_member(record), record.value
        if value is None:
            return [("ZREM", name, member)]
        if isinstance(value, str) and value.count(",") == 1:
            given = dict(zip((self.longitude, self.latitude), value.split(","), strict=True))
        else:
            given = fields_of(value, "place")
        found = []
        for field, bound in ((self.longitude, LONGITUDE_MAX), (self.latitude, LATITUDE_MAX)):
            number = number_of(given.get(field), f"the field {field}")
            if abs(float(number)) > bound:
                raise DataError(f"the field {field} is {number}, and Redis takes -{bound} to {bound}")
            found.append(number)
        return [("GEOADD", name, *found, member)]

    def _timeseries(self, name: Any, record: Record) -> list[Command]:
        """A sample: its time in milliseconds is the key, or else that of the record."""
        at = record.timestamp if record.key is None else record.key
        if isinstance(at, bytes | str) and text_of(at).isdecimal():
            at = int(text_of(at))
        if isinstance(at, bool) or not isinstance(at, int):
            raise DataError(f"the key is {at!r}, and the key of a sample is its time in milliseconds")
        if record.value is None:
            return [("TS.DEL", name, at, at)]
        return [("TS.ADD", name, at, number_of(record.value, "the value"), "ON_DUPLICATE", "LAST")]

    def _key_member(self, record: Record) -> bytes:
        if record.key is None:
            raise DataError("the record has no key, and its key is the member")
        return value_bytes(record.key)

    def _stream(self, name: Any, record: Record) -> list[Command]:
        if record.value is None:
            raise DataError("a tombstone has no fields for an entry of a stream")
        if isinstance(record.value, Mapping):
            fields = {
                field: value
                for field, value in fields_of(record.value, "stream").items()
                if value is not None
            }
        else:
            fields = {"value": record.value}
        if not fields:
            raise DataError("an entry of a stream needs a field that is not null")
        bound = ("MAXLEN", "~", self.length_max) if self.length_max > 0 else ()
        parts = [part for field, value in fields.items() for part in (field, value_bytes(value))]
        return [("XADD", name, *bound, "*", *parts)]


def document(value: Any) -> bytes:
    """A document of RedisJSON: texts and bytes are JSON already."""
    return value_bytes(value) if isinstance(value, str | bytes | bytearray) else json_bytes(value)


def number_of(value: Any, what: str) -> str:
    """A number as Redis reads it."""
    text = value.decode(errors="replace") if isinstance(value, bytes) else str(value)
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if isinstance(value, bool) or math.isnan(found):
        raise DataError(f"{what} is {value!r}, and must be a number")
    return text.strip()


def fields_of(value: Any, kind: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"a {kind} needs a struct or a map, and the value is a {type(value).__name__}")
    return {text_of(field): each for field, each in value.items()}


def value_bytes(value: Any) -> bytes:
    """Texts and bytes as they are, everything else as JSON."""
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    try:
        return text_of(value).encode()
    except UnicodeEncodeError as error:
        raise DataError(f"the text cannot be written as UTF-8: {error.reason}") from error
