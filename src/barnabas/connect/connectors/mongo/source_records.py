"""Records for the events of a change stream: topics, keys and values in the formats of the settings.

In: events. Out: parts of records, each with one schema of keys and one of values, and how many events it ends
behind. An event that does not fit its schema is an error, a dead letter, or left out, as the settings say.
Does not know: streams, offsets.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from barnabas.connect.connectors.mongo.schemas import inferred, value_of
from barnabas.connect.connectors.mongo.source_settings import Output, SourcePlan, encoded
from barnabas.connect.data import BYTES, STRING, Column, DataError, Records, Schema
from barnabas.connect.plugins import ConnectError

log = logging.getLogger("barnabas.connect")

Event = Mapping[str, Any]
EVENT_CHARS_MAX = 1000  # of an event that an error message shows


@dataclass(slots=True)
class Part:
    """Records of equal schemas."""

    key_schema: Schema
    value_schema: Schema | None  # None: there are only tombstones until now
    end: int = 0  # how many events are in this part and those before
    topics: list[str] = field(default_factory=list)
    keys: list[Any] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)
    times: list[int | None] = field(default_factory=list)

    def takes(self, key_schema: Schema, value_schema: Schema | None) -> bool:
        fits = value_schema is None or self.value_schema is None or self.value_schema == value_schema
        return fits and self.key_schema == key_schema

    def records(self) -> Records:
        count = len(self.values)
        none = self.value_schema is None
        return Records(
            topics=pa.array(self.topics),
            keys=Column.of(self.keys, self.key_schema),
            values=Column.nulls(count) if none else Column.of(self.values, self.value_schema),
            timestamps=pa.array(self.times, pa.int64()),
        )


def parts_of(plan: SourcePlan, events: Sequence[Event]) -> list[Part]:
    """Events without a record, such as deletions where only documents are wanted, end a part silently."""
    found: list[Part] = []
    for number, event in enumerate(events, 1):
        made = made_of(plan, event)
        if made is not None:
            topic, (key_schema, key), (value_schema, value) = made
            if not found or not found[-1].takes(key_schema, value_schema):
                found.append(Part(key_schema, value_schema, number))
            last = found[-1]
            last.value_schema = last.value_schema or value_schema
            last.topics.append(topic)
            last.keys.append(key)
            last.values.append(value)
            at = event.get("clusterTime")
            last.times.append(None if at is None else at.time * 1000)
        if found:
            found[-1].end = number
    return found


Typed = tuple[Schema, Any]
Made = tuple[str, Typed, tuple[Schema | None, Any]]


def made_of(plan: SourcePlan, event: Event) -> Made | None:
    space = event.get("ns") or {"db": plan.database, "coll": plan.collection}
    value: Any = event
    if plan.only_documents:
        value = event.get("fullDocument")
        if value is None and not plan.tombstones:
            return None
    key: Any = {"_id": event["_id"]}
    if plan.key.format == "schema":
        key = event
    elif plan.key_is_document_key and isinstance(event.get("documentKey"), Mapping):
        key = event["documentKey"]
    try:
        topic = plan.topic_of(".".join(each for each in (space["db"], space.get("coll")) if each))
        written = written_of(plan.key, key, plan.formatter)
        return (
            topic,
            written,
            (None, None) if value is None else written_of(plan.value, value, plan.formatter),
        )
    except (DataError, OverflowError, ValueError) as error:
        return refused(plan, key, value, error)


def refused(plan: SourcePlan, key: Any, value: Any, error: Exception) -> Made | None:
    """An event that does not fit its format: an error, a dead letter, or nothing."""
    texts = [plan.formatter(each) if each is not None else "" for each in (key, value)]
    why = f"the event with the key {texts[0][:EVENT_CHARS_MAX]} does not become a record: {error}"
    if not plan.tolerates:
        raise ConnectError(why) from error
    if plan.logs_errors:
        log.error("%s: %s", why, texts[1][:EVENT_CHARS_MAX])
    if not plan.dead_letters:
        return None
    return plan.dead_letters, (STRING, texts[0]), (STRING, texts[1])


def written_of(output: Output, value: Mapping[str, Any], formatter: Callable[[Any], str]) -> Typed:
    if output.format == "bson":
        return BYTES, encoded(value)
    if output.format == "json":
        return STRING, formatter(value)
    schema = output.schema or inferred(value)
    return schema, value_of(schema, value, formatter)
