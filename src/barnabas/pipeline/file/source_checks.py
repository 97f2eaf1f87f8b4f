"""Finds problems of a source: addresses, formats, schemas, modes, times.

In: a source. Out: problems. Does not know: other sections, whether the source answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from barnabas.engine.secrets import ANY_REFERENCE, IN_ADDRESS, reference
from barnabas.pipeline.file.problems import Problem, did_you_mean
from barnabas.pipeline.spec import change_types
from barnabas.pipeline.spec.model import (
    DEBEZIUM,
    WINDOW_S,
    FileKind,
    FilesSource,
    Format,
    Pace,
    Source,
    TableMode,
    TableSource,
    TopicSource,
)
from barnabas.security.clients.references import REFERENCE
from barnabas.spark.formats.ddl import DdlError, Field, parse_columns

TIME_TYPES = ("timestamp", "timestamp_ntz", "date", "string")
DATABASES = ("jdbc:postgresql:", "jdbc:sqlite:", "jdbc:mysql:")
BINARY_COLUMNS = (
    "path", "name", "extension", "media_type", "size_bytes", "modified_at", "sha256", "width", "height",
)  # fmt: skip


def cron_wrong(path: str, text: str) -> Iterator[Problem]:
    if not text:
        return
    from datetime import datetime

    from cronsim import CronSim, CronSimError

    try:
        CronSim(text, datetime(2026, 1, 1))
    except CronSimError as error:
        yield Problem(path, f"{text!r} is not a cron expression: {error}", 'five fields, as in "0 2 * * *"')


def fields_of(source: Source) -> list[Field] | None:
    """Columns with types, if they are declared as DDL."""
    try:
        return parse_columns(source.schema.ddl) if source.schema.ddl else None
    except DdlError:
        return None


def columns_of(source: Source) -> list[str] | None:
    """Names of columns; None if they are unknown."""
    fields = fields_of(source)
    if fields is not None:
        return [each.name for each in fields]
    if source.schema.avro:
        try:
            found = json.loads(source.schema.avro)
            return [each["name"] for each in found["fields"]]
        except (ValueError, KeyError, TypeError):
            return None
    if isinstance(source, FilesSource) and source.kind is FileKind.BINARY:
        return list(BINARY_COLUMNS)
    if source.format is Format.STRING or (isinstance(source, FilesSource) and source.kind is FileKind.TEXT):
        return ["value"]
    return None


def source_problems(source: Source) -> Iterator[Problem]:
    path = f"sources.{source.name}"
    yield from schema_problems(path, source)
    yield from time_problems(path, source)
    if isinstance(source, TopicSource):
        yield from topic_problems(f"{path}.topic", source)
    elif isinstance(source, TableSource):
        yield from table_problems(f"{path}.table", source)
    elif isinstance(source, FilesSource) and not source.path:
        pass  # reported by the reader
    if source.changes:
        if source.changes != DEBEZIUM:
            yield Problem(
                f"{path}.changes", f"is {source.changes!r}", did_you_mean(source.changes, [DEBEZIUM])
            )
        if not isinstance(source, TopicSource) or source.format is not Format.JSON:
            yield Problem(f"{path}.changes", "are read from a topic in JSON", "use topic and format json")
    yield from change_type_problems(f"{path}.change_types", source)


def change_type_problems(path: str, source: Source) -> Iterator[Problem]:
    if source.change_types and not source.changes:
        yield Problem(path, "are for change events", f"changes: {DEBEZIUM}")
    columns = columns_of(source)
    for column, name in source.change_types.items():
        if columns is not None and column not in columns:
            yield Problem(path, f"there is no column {column!r}", did_you_mean(column, columns))
        if name not in change_types.KNOWN:
            yield Problem(f"{path}.{column}", f"is {name!r}", did_you_mean(name, list(change_types.KNOWN)))


def schema_problems(path: str, source: Source) -> Iterator[Problem]:
    schema = source.schema
    if schema.ddl:
        try:
            parse_columns(schema.ddl)
        except DdlError as error:
            yield Problem(f"{path}.schema", f"cannot be read: {error}", "as in id BIGINT, name STRING")
    if schema.avro:
        try:
            found = json.loads(schema.avro)
        except ValueError as error:
            yield Problem(f"{path}.schema.avro", f"is not JSON: {error}")
        else:
            if not isinstance(found, dict) or found.get("type") != "record":
                yield Problem(f"{path}.schema.avro", "is not a record", '{"type": "record", "fields": […]}')
    if schema.registry:
        yield from registry_problems(path, source)
        return
    if source.format is Format.AVRO and not schema.avro:
        yield Problem(f"{path}.schema", "is missing", "format avro needs schema: {avro: …}")
    if source.format is Format.PROTOBUF and not schema.protobuf:
        yield Problem(
            f"{path}.schema", "is missing", "format protobuf needs schema: {protobuf: …, message: …}"
        )
    if schema.avro and source.format is not Format.AVRO and isinstance(source, TopicSource):
        yield Problem(f"{path}.format", f"is {source.format}, the schema is Avro's", "format: avro")


def registry_problems(path: str, source: Source) -> Iterator[Problem]:
    if not isinstance(source, TopicSource):
        yield Problem(f"{path}.schema.registry", "is for topics: their records name their schemas")
    elif not source.schema.subject and ("," in source.subscribe or not source.subscribe):
        yield Problem(f"{path}.schema.subject", "is missing", "only a source of one topic has a default")
    if source.format not in (Format.AVRO, Format.PROTOBUF, Format.JSON):
        yield Problem(f"{path}.format", f"is {source.format}", "a registry has avro, protobuf and json")
    if source.changes:
        yield Problem(f"{path}.changes", "cannot be read by a schema registry", "declare the schema as DDL")


def time_problems(path: str, source: Source) -> Iterator[Problem]:
    columns = columns_of(source)
    if source.event_time and columns is not None:
        if source.event_time not in columns:
            hint = did_you_mean(source.event_time, columns)
            yield Problem(f"{path}.event_time", f"there is no column {source.event_time!r}", hint)
        for field in fields_of(source) or ():
            if field.name == source.event_time and field.kind.name not in TIME_TYPES:
                yield Problem(
                    f"{path}.event_time", f"{field.name} is a {field.kind.name}", "it must be a TIMESTAMP"
                )
    if source.lateness_s is not None and not source.event_time:
        yield Problem(f"{path}.lateness", "needs an event time", "name the column with event_time")
    frequency = source.frequency
    if frequency.pace is Pace.BATCH:
        if not frequency.cron:
            yield Problem(f"{path}.frequency.batch", "is empty", 'five fields, as in "0 2 * * *"')
        yield from cron_wrong(f"{path}.frequency.batch", frequency.cron)
    if frequency.pace is Pace.NEAR_REAL_TIME and frequency.interval_s <= 0:
        yield Problem(f"{path}.frequency.near_real_time", "must be longer than 0 seconds")


def topic_problems(path: str, source: TopicSource) -> Iterator[Problem]:
    servers = reference(source.bootstrap_servers)
    for part in servers.split(",") if "${" not in servers else ():
        if part.strip() and not re.fullmatch(r".+:\d{1,5}", part.strip()):
            yield Problem(
                f"{path}.bootstrap.servers", f"{part.strip()!r} is not an address", "host:port, host:port"
            )
    if bool(source.subscribe) == bool(source.pattern):
        yield Problem(f"{path}.subscribe", "or pattern must name the topics", "exactly one of them")
    if source.pattern:
        try:
            re.compile(source.pattern)
        except re.error as error:
            yield Problem(f"{path}.pattern", f"is not a regular expression: {error}")
    if source.starting not in ("earliest", "latest") and not source.starting.startswith("{"):
        hint = 'earliest, latest, or {"topic": {"0": 23}}'
        yield Problem(f"{path}.starting", f"is {source.starting!r}", hint)
    yield from references_wrong(f"{path}.bootstrap.servers", servers)
    yield from options_wrong(path, source)


def options_wrong(path: str, source: TopicSource) -> Iterator[Problem]:
    """Options that the data source would refuse, as far as that is known without secrets."""
    from barnabas.spark.basics.settings import OptionError
    from barnabas.spark.options import source_options

    given = {name: value for name, value in source.settings.items() if isinstance(value, str)}
    try:
        source_options(
            {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "any", **given}, streaming=True
        )
    except OptionError as error:
        yield Problem(f"{path}.settings", str(error))


def table_problems(path: str, source: TableSource) -> Iterator[Problem]:
    url = source.address
    if url and not url.startswith((*DATABASES, "${")):
        yield Problem(
            f"{path}.url", f"{url.partition('//')[0]!r} cannot be read", f"one of {', '.join(DATABASES)}"
        )
    without_references = REFERENCE.sub("", url)
    if IN_ADDRESS.search(without_references) or re.search(r"(?i)password=[^&;]+", without_references):
        yield Problem(f"{path}.url", "holds a password", "give user and password beside it, as ${env:NAME}")
    if source.mode in (TableMode.INCREMENTING, TableMode.BOTH) and not source.incrementing:
        yield Problem(
            f"{path}.incrementing", "is missing", f"name the growing column, for mode {source.mode}"
        )
    if source.mode in (TableMode.TIMESTAMP, TableMode.BOTH) and not source.timestamp:
        yield Problem(
            f"{path}.timestamp",
            "is missing",
            f"name the column with the time of change, for mode {source.mode}",
        )
    if source.window_s != WINDOW_S and source.mode is not TableMode.TIMESTAMP:
        yield Problem(f"{path}.window", "is read by no other mode than timestamp", "mode: timestamp")
    columns = columns_of(source)
    for name in (source.incrementing, source.timestamp):
        if name and columns is not None and name not in columns:
            yield Problem(path, f"there is no column {name!r}", did_you_mean(name, columns))
    for name, value in (
        ("url", url),
        ("user", reference(source.user)),
        ("password", reference(source.password)),
    ):
        yield from references_wrong(f"{path}.{name}", value)


def references_wrong(path: str, value: str) -> Iterator[Problem]:
    for match in ANY_REFERENCE.finditer(value):
        if not REFERENCE.fullmatch(match[0]):
            yield Problem(
                path, f"{match[0]} is not a reference", "${env:NAME}, ${file:/path} or ${file:/path:key}"
            )
