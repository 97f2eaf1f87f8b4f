"""Debezium's transform that moves times of change events to another time zone.

Times that tell their offset keep their moment and get another offset. Times without one count as times of
that zone, so that their numbers change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from barnabas.connect.config import REQUIRED, ConfigDef, ConfigType, Importance, invalid
from barnabas.connect.data import TIMESTAMP, Column, DataError, Field, Records, Schema
from barnabas.connect.transforms.change_events import JAVA, is_envelope
from barnabas.connect.transforms.contract import Transform, with_column
from barnabas.connect.transforms.parts_of_columns import put_together, taken_apart

HIGH = Importance.HIGH
OFFSET = re.compile(r"([+-])(\d{2}):(\d{2})(?::(\d{2}))?")
MOMENT = re.compile(r"([+-]?\d{4,9})-(\d\d)-(\d\d)T(\d\d:\d\d(?::\d\d)?(?:\.\d+)?)(Z|[+-][\d:]+)")
OF_TIME = "io.debezium.time."
UNITS = {f"{OF_TIME}Timestamp": 1000, f"{OF_TIME}MicroTimestamp": 1_000_000, f"{OF_TIME}NanoTimestamp": 10**9}
EPOCHS = {"ts_ms": 1000, "ts_us": 1_000_000, "ts_ns": 10**9}
CYCLE = 146_097 * 86_400  # seconds of 400 years
EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Rule:
    """The events that a rule is for, and their fields; without fields all."""

    kind: str  # topic, source, or none: the topic or the table
    name: str
    fields: frozenset[str] = field(default_factory=frozenset)


def rules_of(setting: str, texts: list[str]) -> list[Rule]:
    """Rules such as `source:orders:at`; a rule without topic or source has that of the one before."""
    found: dict[tuple[str, str], set[str]] = {}
    kind = ""
    for text in texts:
        parts = [each.strip() for each in text.split(":")]
        if parts[0].lower() in ("source", "topic") and len(parts) in (2, 3):
            kind, parts = parts[0].lower(), parts[1:]
        if not 1 <= len(parts) <= 2 or not all(parts):
            reason = "write source:table, source:table:field, topic:topic, topic:topic:field or name:field"
            raise invalid(setting, text, reason)
        found.setdefault((kind, parts[0]), set()).update(parts[1:])
    return [Rule(kind, name, frozenset(fields)) for (kind, name), fields in found.items()]


class TimezoneConverter(Transform):
    """Times of events are those of another time zone."""

    JAVA_NAMES = (f"{JAVA}TimezoneConverter",)
    on = "values"
    CONFIG = (
        ConfigDef()
        .define("converted.timezone", ConfigType.STRING, REQUIRED, HIGH, "Europe/Berlin or +08:00.")
        .define("include.list", ConfigType.LIST, "", HIGH, "Rules of events and fields that are converted.")
        .define("exclude.list", ConfigType.LIST, "", HIGH, "Rules of events and fields that are not.")
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self._zone = zone_of(self.settings.text("converted.timezone"))
        included, excluded = (self.settings.entries(f"{each}.list") for each in ("include", "exclude"))
        if included and excluded:
            reason = "include.list and exclude.list are exclusive: set one of them"
            raise invalid("exclude.list", ",".join(excluded), reason)
        self._is_including = bool(included)
        self._rules = rules_of("include.list", included) or rules_of("exclude.list", excluded)

    def change(self, records: Records) -> Records:
        values = records.values
        if not is_envelope(values.schema) or not len(records):
            return records
        assert values.schema is not None
        parts = taken_apart(values, "converting times", defaults=False)
        tables = parts["source"].field("table").to_pylist() if "source" in parts else [None] * len(records)
        topics = records.topics.to_pylist()
        if len(set(zip(topics, tables, strict=True)) - {(None, None)}) > 1:
            raise DataError("records of several tables come together: name the topics by predicates")
        rule = self._rule(topics[0], next((each for each in tables if each is not None), None))
        if rule is None and self._is_including:
            return records
        fields: list[tuple[str, Schema, Any]] = []
        for one in values.schema.fields:
            part = Column(one.schema, parts[one.name])
            if one.name in ("before", "after", "source"):
                part = self._converted(one, part, rule)
            fields.append((one.name, one.schema, part.data))
        return with_column(records, "values", put_together(values, fields))

    def _rule(self, topic: str | None, table: str | None) -> Rule | None:
        for kind, name in (("topic", topic), ("source", table), ("", topic), ("", table)):
            for each in self._rules:
                if (each.kind, each.name) == (kind, name):
                    return each
        return None

    def _wants(self, part: str, name: str, rule: Rule | None) -> bool:
        if rule is None or not rule.fields:
            return part != "source" and (rule is None or self._is_including)
        names = {name, f"{part}.{name}"} if part != "source" else {f"source.{name}"}
        if part == "source" and not any(each.startswith("source.") for each in rule.fields):
            return False
        return bool(names & rule.fields) is self._is_including

    def _converted(self, one: Field, row: Column, rule: Rule | None) -> Column:
        assert row.schema is not None
        fields = []
        parts = taken_apart(row, "converting times", defaults=False)
        for each in row.schema.fields:
            data = parts[each.name]
            if (convert := self._converter(one.name, each)) and self._wants(one.name, each.name, rule):
                data = pa.array(
                    [None if value is None else convert(value) for value in plain(data)], data.type
                )
            fields.append((each.name, each.schema, data))
        return put_together(row, fields)

    def _converter(self, part: str, one: Field) -> Callable[[Any], Any] | None:
        name = one.schema.name or ""
        if name in UNITS:
            return lambda value: moved(value, UNITS[name], self._zone)
        if name == TIMESTAMP.name:
            return lambda value: moved(value, 1000, self._zone)
        if name == f"{OF_TIME}ZonedTimestamp":
            return lambda value: at_zone(value, self._zone)
        if name == f"{OF_TIME}ZonedTime":
            return lambda value: time_at_zone(value, self._zone)
        if part == "source" and not name and one.name in EPOCHS:
            return lambda value: (
                value + offset_s(value // EPOCHS[one.name], UTC, self._zone) * EPOCHS[one.name]
            )
        return None


def plain(data: Any) -> list[Any]:
    """Values; timestamps of Connect as numbers."""
    return list((data.cast(pa.int64()) if pa.types.is_timestamp(data.type) else data).to_pylist())


def zone_of(text: str) -> tzinfo:
    if found := OFFSET.fullmatch(text):
        sign, hours, minutes, seconds = found.groups()
        step = timedelta(hours=int(hours), minutes=int(minutes), seconds=int(seconds or 0))
        return timezone(-step if sign == "-" else step)
    try:
        return ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        reason = "write a name such as Europe/Berlin or an offset such as +08:00"
        raise invalid("converted.timezone", text, reason) from None


def offset_s(seconds: int, of: tzinfo | None, zone: tzinfo) -> int:
    """The offset of a zone at a moment (`of` is UTC), or at a time of its own clocks (None). Years that
    Python does not have count as those 400 years before or after them."""
    while seconds > 253_402_214_400:
        seconds -= CYCLE
    while seconds < -62_135_510_400:
        seconds += CYCLE
    local = EPOCH + timedelta(seconds=seconds)
    found = zone.utcoffset(local) if of is None else local.replace(tzinfo=of).astimezone(zone).utcoffset()
    return int((found or timedelta()).total_seconds())


def moved(value: int, unit: int, zone: tzinfo) -> int:
    return value - offset_s(value // unit, None, zone) * unit


def shown_offset(seconds: int) -> str:
    if not seconds:
        return "Z"
    sign, rest = ("-" if seconds < 0 else "+"), abs(seconds)
    text = f"{sign}{rest // 3600:02d}:{rest // 60 % 60:02d}"
    return f"{text}:{rest % 60:02d}" if rest % 60 else text


def given_offset(text: str) -> int:
    if text == "Z":
        return 0
    parts = [int(each) for each in text[1:].split(":")] + [0, 0]
    seconds = (parts[0] * 60 + parts[1]) * 60 + parts[2]
    return -seconds if text[0] == "-" else seconds


def at_zone(text: str, zone: tzinfo) -> str:
    """The same moment with the offset of the zone at that time of its clocks."""
    found = MOMENT.fullmatch(text)
    if found is None:
        raise DataError(f"{text!r} is no time with an offset")
    year, month, day, clock, offset = found.groups()
    cycles, rest = divmod(int(year), 400)
    hours, _, part = clock.partition(".")
    local = datetime.fromisoformat(f"{rest + 400:04d}-{month}-{day}T{hours}")
    years = (cycles - 1) * 400
    seconds = int((local - EPOCH).total_seconds()) + (cycles - 1) * CYCLE
    own = given_offset(offset)
    new = offset_s(seconds, None, zone)
    at = local + timedelta(seconds=new - own)
    digits = part.rstrip("0")
    shown = at.year + years
    head = f"{shown:04d}" if 0 <= shown <= 9999 else f"{'-' if shown < 0 else '+'}{abs(shown):04d}"
    return f"{head}-{at:%m-%dT%H:%M:%S}" + (f".{digits}" if digits else "") + shown_offset(new)


def time_at_zone(text: str, zone: tzinfo) -> str:
    """A time of day with the offset that the zone has now."""
    found = re.fullmatch(r"([\d:]+)(\.\d+)?(Z|[+-][\d:]+)", text)
    if found is None:
        raise DataError(f"{text!r} is no time of day with an offset")
    clock, part, offset = found.groups()
    now = int(datetime.now(UTC).timestamp())
    new = offset_s(now, UTC, zone)
    at = datetime.fromisoformat(f"2000-01-02T{clock}") + timedelta(seconds=new - given_offset(offset))
    digits = (part or "").rstrip("0").rstrip(".")
    return f"{at:%H:%M:%S}{digits}{shown_offset(new)}"
