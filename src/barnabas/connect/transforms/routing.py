"""Transforms of topics and headers, the filter, and the predicates."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config import (
    REQUIRED,
    ConfigDef,
    ConfigType,
    Importance,
    all_of,
    entries,
    invalid,
    non_empty,
    non_empty_list,
    non_null,
    one_of,
    regex,
)
from barnabas.connect.config.types import parse_type
from barnabas.connect.convert.simple_headers import guess
from barnabas.connect.data import Column, Header, Records
from barnabas.connect.data.date_formats import DateFormat
from barnabas.connect.data.java_regex import java_pattern, java_replacement
from barnabas.connect.transforms.contract import (
    FieldTransform,
    Predicate,
    SchemaError,
    Transform,
    Transformed,
    both,
    with_column,
)
from barnabas.connect.transforms.parts_of_columns import (
    REPLACE_NULL,
    put_together,
    require_map,
    taken_apart,
    with_null_setting,
)

PREFIX = "org.apache.kafka.connect.transforms."
HIGH, MEDIUM = Importance.HIGH, Importance.MEDIUM


def renamed(topics: pa.Array, change: Callable[[str], str]) -> pa.Array:
    """Topics after a change that is computed once for each name."""
    coded = topics if isinstance(topics, pa.DictionaryArray) else topics.dictionary_encode()
    names = pa.array([change(one) for one in coded.dictionary.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(coded.indices, names)


class RegexRouter(Transform):
    """Topics whose whole name matches are renamed."""

    JAVA_NAMES = (f"{PREFIX}RegexRouter",)
    CONFIG = (
        ConfigDef()
        .define("regex", ConfigType.STRING, REQUIRED, HIGH, "What the topic must match.", validator=regex())
        .define("replacement", ConfigType.STRING, REQUIRED, HIGH, "The new name, with $1 for groups.")
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(
            {**config, "regex": str(java_pattern(config["regex"]).pattern)} if "regex" in config else config
        )
        self.pattern = java_pattern(self.settings.text("regex"))

    def change(self, records: Records) -> Records:
        def rename(topic: str) -> str:
            found = self.pattern.fullmatch(topic)
            return topic if found is None else java_replacement(self.settings.text("replacement"), found)

        return replace(records, topics=renamed(records.topics, rename))


class TimestampRouter(Transform):
    """Topics get the record's time into their name."""

    JAVA_NAMES = (f"{PREFIX}TimestampRouter",)
    CONFIG = (
        ConfigDef()
        .define("topic.format", ConfigType.STRING, "${topic}-${timestamp}", HIGH, "The new name.")
        .define(
            "timestamp.format", ConfigType.STRING, "yyyyMMdd", HIGH, "A pattern of SimpleDateFormat, in UTC."
        )
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        try:
            self.format = DateFormat(self.settings.text("timestamp.format"))
        except ValueError as error:
            raise invalid("timestamp.format", self.settings.text("timestamp.format"), str(error)) from None

    def change(self, records: Records) -> Records:
        if records.timestamps.null_count:
            raise ValueError("Timestamp missing on record")
        times = self.format.texts(records.timestamps.cast(pa.timestamp("ms", "UTC")))
        topics = records.topics.cast(pa.string())
        pieces: list[Any] = []
        for piece in re.split(r"(\$\{topic\}|\$\{timestamp\})", self.settings.text("topic.format")):
            pieces.append({"${topic}": topics, "${timestamp}": times}.get(piece, piece))
        return replace(records, topics=pc.binary_join_element_wise(*pieces, ""))


class Filter(Transform):
    """Drops all records it sees."""

    JAVA_NAMES = (f"{PREFIX}Filter",)

    def apply(self, records: Records) -> Transformed:
        return Transformed(records.take([]), [])


class DropHeaders(Transform):
    """Headers of these names are removed."""

    JAVA_NAMES = (f"{PREFIX}DropHeaders",)
    CONFIG = ConfigDef().define(
        "headers", ConfigType.LIST, REQUIRED, HIGH, "Names of headers.", validator=entries(may_be_empty=False)
    )

    def change(self, records: Records) -> Records:
        if records.headers is None:
            return records
        names = set(self.settings.entries("headers"))
        kept = [tuple(one for one in each if one[0] not in names) for each in records.headers]
        return replace(records, headers=kept)


class InsertHeader(Transform):
    """Every record gets a header with a fixed value."""

    JAVA_NAMES = (f"{PREFIX}InsertHeader",)
    CONFIG = (
        ConfigDef()
        .define("header", ConfigType.STRING, REQUIRED, HIGH, "The name of the header.", validator=non_null())
        .define(
            "value.literal",
            ConfigType.STRING,
            REQUIRED,
            HIGH,
            "The value; its type is guessed.",
            validator=non_null(),
        )
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self.header = Header(self.settings.text("header"), *guess(self.settings.text("value.literal")))

    def change(self, records: Records) -> Records:
        given = records.headers if records.headers is not None else [()] * len(records)
        return replace(records, headers=[(*each, self.header) for each in given])


@both
class HeaderFrom(FieldTransform):
    """Fields become headers; they are copied or moved."""

    CONFIG = with_null_setting(
        ConfigDef()
        .define("fields", ConfigType.LIST, REQUIRED, HIGH, "Names of fields.", validator=non_empty_list())
        .define("headers", ConfigType.LIST, REQUIRED, HIGH, "Names of headers.", validator=non_empty_list())
        .define(
            "operation", ConfigType.STRING, REQUIRED, HIGH, "move or copy.", validator=one_of("move", "copy")
        )
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        # A field may become several headers, and a header may have several values: names may repeat.
        fields, headers = (parse_type(each, config[each], ConfigType.LIST) for each in ("fields", "headers"))
        if len(fields) != len(headers):
            raise invalid("headers", headers, "as many headers as fields are needed")
        self.pairs = list(zip(fields, headers, strict=True))
        self.moves = self.settings.text("operation") == "move"

    def change(self, records: Records) -> Records:
        column: Column = getattr(records, self.on)
        given = records.headers if records.headers is not None else [()] * len(records)
        if column.schema is None:
            added = [
                tuple(Header(header, one.get(name), None) for name, header in self.pairs)
                for one in (require_map(value, "header from") for value in column.data)
            ]
            gone = {name for name, _ in self.pairs} if self.moves else set()
            left = [{name: one for name, one in value.items() if name not in gone} for value in column.data]
            made = Column(None, left)
        else:
            parts = taken_apart(column, "header from", defaults=self.settings.flag(REPLACE_NULL))
            columns = []
            for name, header in self.pairs:
                schema = column.schema.field(name)
                if schema is None:
                    raise SchemaError(f"Unknown field: {name}")
                columns.append([Header(header, one, schema) for one in Column(schema, parts[name]).pylist()])
            added = list(zip(*columns, strict=True))
            made = column
            if self.moves:
                gone = {name for name, _ in self.pairs}
                fields = [(one.name, one.schema, parts[one.name]) for one in column.schema.fields]
                made = put_together(column, [one for one in fields if one[0] not in gone])
        both_headers = [(*before, *more) for before, more in zip(given, added, strict=True)]
        return with_column(replace(records, headers=both_headers), self.on, made)


class TopicNameMatches(Predicate):
    """The whole name of the topic matches."""

    JAVA_NAMES = (f"{PREFIX}predicates.TopicNameMatches",)
    CONFIG = ConfigDef().define(
        "pattern",
        ConfigType.STRING,
        REQUIRED,
        MEDIUM,
        "A regular expression.",
        validator=all_of(non_empty(), regex()),
    )

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        self.pattern = java_pattern(self.settings.text("pattern"))

    def test(self, records: Records) -> Any:
        names = renamed(records.topics, lambda topic: "y" if self.pattern.fullmatch(topic) else "n")
        return pc.equal(names.cast(pa.string()), "y")


class HasHeaderKey(Predicate):
    """The record has a header of this name."""

    JAVA_NAMES = (f"{PREFIX}predicates.HasHeaderKey",)
    CONFIG = ConfigDef().define(
        "name", ConfigType.STRING, REQUIRED, MEDIUM, "The name of a header.", validator=non_empty()
    )

    def test(self, records: Records) -> Any:
        name = self.settings.text("name")
        given = records.headers if records.headers is not None else [()] * len(records)
        return pa.array([any(one[0] == name for one in each) for each in given], pa.bool_())


class RecordIsTombstone(Predicate):
    """The record has no value."""

    JAVA_NAMES = (f"{PREFIX}predicates.RecordIsTombstone",)

    def test(self, records: Records) -> Any:
        return records.values.is_null()
