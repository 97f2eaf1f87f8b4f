"""Debezium's transform of the outbox pattern: rows that were inserted into a table become messages.

In: change events of the outbox table. Out: for each inserted row a record with its payload, at the topic that
the row names. Updates are errors or warnings, deletes and tombstones are dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pyarrow as pa

from barnabas.connect.config import ConfigDef, ConfigType, Importance, invalid, one_of_any_case
from barnabas.connect.data import Column, DataError, Field, Header, Records, Schema, Type
from barnabas.connect.data.java_regex import java_pattern, java_replacement
from barnabas.connect.transforms.change_events import JAVA, is_envelope
from barnabas.connect.transforms.contract import SchemaError, Transform, Transformed
from barnabas.connect.transforms.parts_of_columns import taken_apart

log = logging.getLogger("barnabas.connect")
HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
STRING = ConfigType.STRING
PLACEMENTS = ("header", "envelope", "partition")
PAYLOAD = "payload"  # its field beside additional ones
MICROS = {"io.debezium.time.MicroTimestamp": 1000, "io.debezium.time.NanoTimestamp": 1_000_000}


@dataclass(frozen=True, slots=True)
class Additional:
    """A column that goes along: `name:header:alias`."""

    name: str
    placement: str
    alias: str

    @staticmethod
    def of(text: str) -> Additional:
        name, _, rest = (each.strip() for each in text.partition(":"))
        placement, _, alias = (each.strip() for each in rest.partition(":"))
        if placement.lower() not in PLACEMENTS:
            reason = f"write column:placement or column:placement:alias, with {', '.join(PLACEMENTS)}"
            raise invalid("table.fields.additional.placement", text, reason)
        return Additional(name, placement.lower(), alias or name)


class EventRouter(Transform):
    """Rows of an outbox table become messages at the topics that they name."""

    JAVA_NAMES = (f"{JAVA}outbox.EventRouter",)
    on = "values"  # tombstones come by themselves
    CONFIG = (
        ConfigDef()
        .define("table.field.event.id", STRING, "id", LOW, "The column of the header id.")
        .define("table.field.event.key", STRING, "aggregateid", LOW, "The column of keys.")
        .define("table.field.event.timestamp", STRING, "", MEDIUM, "The column of times; none: the event's.")
        .define("table.field.event.payload", STRING, "payload", LOW, "The column of messages.")
        .define("table.fields.additional.placement", ConfigType.LIST, "", LOW,
                "More columns: column:placement:alias; placements are header, envelope and partition.")
        .define("table.fields.additional.error.on.missing", ConfigType.BOOLEAN, True, LOW,
                "Whether a missing column of these is an error.")
        .define("table.expand.json.payload", ConfigType.BOOLEAN, False, MEDIUM,
                "Read payloads as JSON: values are maps without a schema.")
        .define("table.op.invalid.behavior", STRING, "warn", MEDIUM, "Updates: warn, error or fatal.",
                validator=one_of_any_case("warn", "error", "fatal"))
        .define("route.by.field", STRING, "aggregatetype", MEDIUM, "The column that names the topic.")
        .define("route.topic.regex", STRING, "(?<routedByValue>.*)", LOW, "What of it is used.")
        .define("route.topic.replacement", STRING, "outbox.event.${routedByValue}", HIGH, "The topic.")
        .define("route.tombstone.on.empty.payload", ConfigType.BOOLEAN, False, MEDIUM,
                "A row without a payload becomes a tombstone.")
        .refused({"table.field.event.schema.version": (None, "schemas of messages get no versions")})
        .without_effect(
            {
                "table.json.payload.null.behavior": ("ignore", "maps have no schema"),
                "tracing.span.context.field": ("tracingspancontext", "there is no tracing"),
                "tracing.operation.name": ("debezium-read", "there is no tracing"),
                "tracing.with.context.field.only": ("false", "there is no tracing"),
            }
        )
    )  # fmt: skip

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._pattern = java_pattern(self.settings.text("route.topic.regex"))
        self._more = [
            Additional.of(each) for each in self.settings.entries("table.fields.additional.placement")
        ]

    def apply(self, records: Records) -> Transformed:
        values = records.values
        if not is_envelope(values.schema):
            kept = [row for row, missing in enumerate(values.is_null().to_pylist()) if not missing]
            return Transformed(records if len(kept) == len(records) else records.take(kept), kept)
        ops = taken_apart(values, "reading operations")["op"].to_pylist()
        chosen = [row for row, op in enumerate(ops) if op in ("c", "r")]
        failures = self._refused(ops)
        return Transformed(self._messages(records.take(chosen)), chosen, failures)

    def _refused(self, ops: list[Any]) -> dict[int, Exception]:
        """Updates: rows of an outbox are inserted and deleted."""
        wrong = [row for row, op in enumerate(ops) if op not in ("c", "r", "d", "t", None)]
        text = "an outbox table has an event with the operation"
        if self.settings.text("table.op.invalid.behavior").lower() == "fatal":
            return {row: DataError(f"{text} {ops[row]}: rows are inserted and deleted only") for row in wrong}
        level = logging.ERROR if self.settings.text("table.op.invalid.behavior").lower() == "error" else 30
        for row in wrong:
            log.log(level, "%s %s, which is left out: rows are inserted and deleted only", text, ops[row])
        return {}

    def _messages(self, records: Records) -> Records:
        envelope = records.values
        assert envelope.schema is not None
        schema = envelope.schema.field("after")
        if schema is None or schema.type is not Type.STRUCT:
            raise SchemaError(f"the envelope {envelope.schema.name} has no struct `after`")
        parts = taken_apart(envelope, "reading events", defaults=False)
        row = Column(schema, parts["after"])
        columns = taken_apart(row, "reading the outbox")
        text = self.settings.text

        def column(setting: str) -> Column:
            return self._column(row, columns, text(setting), setting)

        routes = column("route.by.field").pylist()
        payload = column("table.field.event.payload")
        return replace(
            records,
            topics=pa.array([self._topic(each) for each in routes], pa.string()),
            keys=column("table.field.event.key") if text("table.field.event.key") else records.keys,
            values=self._values(row, columns, payload),
            timestamps=self._times(row, columns, parts["ts_ms"]),
            partitions=self._partitions(row, columns, records.partitions),
            headers=self._headers(row, columns, records, column("table.field.event.id")),
        )

    def _topic(self, routed: Any) -> str:
        if routed is None:
            raise DataError(f"the column {self.settings.text('route.by.field')} is null: it names the topic")
        found = self._pattern.fullmatch(str(routed))
        return (
            str(routed)
            if found is None
            else java_replacement(self.settings.text("route.topic.replacement"), found)
        )

    def _column(self, row: Column, columns: Mapping[str, Any], name: str, setting: str) -> Column:
        assert row.schema is not None
        found = row.schema.field(name)
        if found is None:
            raise SchemaError(
                f"{setting}: the outbox has no column {name!r}; {', '.join(row.schema.field_names)}"
            )
        return Column(found, columns[name])

    def _placed(self, row: Column, columns: Mapping[str, Any], placement: str) -> list[tuple[str, Column]]:
        found = []
        for each in self._more:
            if each.placement != placement:
                continue
            assert row.schema is not None
            if row.schema.field(each.name) is None and not self.settings.flag(
                "table.fields.additional.error.on.missing"
            ):
                continue
            setting = "table.fields.additional.placement"
            found.append((each.alias, self._column(row, columns, each.name, setting)))
        return found

    def _values(self, row: Column, columns: Mapping[str, Any], payload: Column) -> Column:
        more = self._placed(row, columns, "envelope")
        is_json = self.settings.flag("table.expand.json.payload")
        empty = [each is None or each in ("", b"") for each in payload.pylist()]
        makes_tombstones = self.settings.flag("route.tombstone.on.empty.payload")
        if is_json:
            found = [expanded(each) for each in payload.pylist()]
            named = [(alias, each.pylist()) for alias, each in more]
            if named:
                found = [
                    {PAYLOAD: each, **{alias: values[place] for alias, values in named}}
                    for place, each in enumerate(found)
                ]
            gone = [makes_tombstones and each for each in empty]
            return Column(None, [None if drop else each for drop, each in zip(gone, found, strict=True)])
        assert payload.schema is not None
        made = payload
        if more:
            fields = [(PAYLOAD, payload.schema, payload.data)]
            fields += [(alias, each.schema, each.data) for alias, each in more if each.schema is not None]
            schema = Schema(type=Type.STRUCT).with_fields(
                tuple(Field(name, kind) for name, kind, _ in fields)
            )
            arrow = [schema.arrow.field(place) for place in range(schema.arrow.num_fields)]
            made = Column(schema, pa.StructArray.from_arrays([part for _, _, part in fields], fields=arrow))
        if makes_tombstones and any(empty):
            assert made.schema is not None
            places = pa.array([None if each else place for place, each in enumerate(empty)], pa.int64())
            made = Column(made.schema.as_required(), made.data.take(places))
        return made

    def _times(self, row: Column, columns: Mapping[str, Any], events: Any) -> Any:
        name = self.settings.text("table.field.event.timestamp")
        if not name:
            return events.cast(pa.int64())
        column = self._column(row, columns, name, "table.field.event.timestamp")
        assert column.schema is not None
        if column.schema.type is not Type.INT64:
            raise SchemaError(f"table.field.event.timestamp: {name} is {column.schema.type}, not int64")
        if column.schema.logical is not None:
            return column.data.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        unit = MICROS.get(column.schema.name or "", 1)
        times = column.data.to_pylist()
        return pa.array([None if each is None else each // unit for each in times], pa.int64())

    def _partitions(self, row: Column, columns: Mapping[str, Any], given: Any) -> Any:
        placed = self._placed(row, columns, "partition")
        return placed[-1][1].data.cast(pa.int32()) if placed else given

    def _headers(
        self, row: Column, columns: Mapping[str, Any], records: Records, ids: Column
    ) -> list[tuple[Header, ...]]:
        placed = [("id", ids), *self._placed(row, columns, "header")]
        named = [(alias, each.schema, each.pylist()) for alias, each in placed]
        given = records.headers if records.headers is not None else [()] * len(records)
        return [
            (*before, *(Header(alias, values[place], schema) for alias, schema, values in named))
            for place, before in enumerate(given)
        ]


def expanded(payload: Any) -> Any:
    """A payload as JSON; texts that are none stay texts."""
    if not isinstance(payload, str | bytes):
        return payload
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError:
        return payload
