"""CREATE STREAM and CREATE TABLE over a topic.

Columns come from the statement, or from the registry where it has none; then `Prepared.text` has them
written out. Does not know: queries.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.sql.analysis.context import Context
from barnabas.sql.analysis.facts import (
    DEFAULT_KEY_FORMAT,
    DEFAULT_VALUE_FORMAT,
    Facts,
    Lookups,
    SchemaLookup,
)
from barnabas.sql.analysis.options import (
    FORMATS,
    OF_CREATE,
    Options,
    check_columns,
    key_format,
    options_of,
    value_format,
)
from barnabas.sql.analysis.replacing import check_source_replacement
from barnabas.sql.analysis.sinks import check_timestamp, check_topic
from barnabas.sql.analysis.stages import rows_of
from barnabas.sql.analysis.work import QueryWork, WorkKind
from barnabas.sql.errors import SqlError
from barnabas.sql.execution.port import Prepared, TopicNeeded
from barnabas.sql.expressions.resolving import looked_up
from barnabas.sql.metastore.metastore import Change, DataSource, PutQuery, PutSource, QueryEntry
from barnabas.sql.metastore.schemas import PSEUDO_COLUMNS, WINDOW_COLUMNS, Column, Schema
from barnabas.sql.syntax.statement_printing import statement_text
from barnabas.sql.syntax.statements import ColumnDefinition, CreateSource, Role
from barnabas.sql.types.sql_types import KEY_HEADERS, Map, SqlType

BARE_KEY = "ROWKEY"
BARE_VALUE = "ROWVAL"
SYSTEM_NAMES = {*PSEUDO_COLUMNS, *WINDOW_COLUMNS}
FORMATS_WITH_ANY_MAP_KEY = {"AVRO", "PROTOBUF"}


def lookups(statement: CreateSource, facts: Facts) -> Lookups:
    """The topic, and schemas of the sides that have no columns in the statement."""
    options = options_of(statement.properties, OF_CREATE, statement.at)
    topic = options.text("KAFKA_TOPIC")
    if topic is None:
        return Lookups()
    schemas = [
        each for each in (_lookup(statement, options, facts, topic, side) for side in (True, False)) if each
    ]
    return Lookups((topic,), tuple(schemas))


def _lookup(
    statement: CreateSource, options: Options, facts: Facts, topic: str, is_key: bool
) -> SchemaLookup | None:
    side, default = ("KEY", DEFAULT_KEY_FORMAT) if is_key else ("VALUE", DEFAULT_VALUE_FORMAT)
    name = options.text(f"{side}_FORMAT") or options.text("FORMAT") or facts.setting(default)
    traits = FORMATS.get((name or "").upper())
    if name is None or traits is None or not traits.registry:
        return None
    roles = (Role.KEY, Role.PRIMARY_KEY) if is_key else (Role.VALUE,)
    if any(each.role in roles for each in statement.columns or ()):
        return None
    schema_id = options.number(f"{side}_SCHEMA_ID")
    full_name = options.text(f"{side}_SCHEMA_FULL_NAME")
    return SchemaLookup(topic, is_key, name.upper(), schema_id, full_name)


def create_source(statement: CreateSource, context: Context) -> Prepared:
    name, kind = statement.name, "table" if statement.is_table else "stream"
    before = context.metastore.sources.get(name)
    if before is not None and statement.if_not_exists:
        message = f"Cannot add {kind} `{name}`: A {before.kind.lower()} with the same name already exists."
        return Prepared(statement, context.text, "CREATE", message, before.schema, entity=(kind, name))
    if before is not None and not statement.or_replace:
        raise SqlError(
            f"Cannot add {kind} '{name}': A {before.kind.lower()} with the same name already exists",
            statement.at,
        )
    if statement.is_source and statement.or_replace:
        raise SqlError(f"CREATE OR REPLACE is not supported on source {kind}s.", statement.at)
    options = options_of(statement.properties, OF_CREATE, statement.at)
    topic = options.text("KAFKA_TOPIC")
    if topic is None:
        raise SqlError(
            'Missing required property "KAFKA_TOPIC" which has no default value: WITH (KAFKA_TOPIC = …)',
            statement.at,
        )
    source, inferred = _source(statement, options, context, topic)
    if before is not None:
        check_source_replacement(before, source)
    topics = _topics(statement, options, context, topic)
    changes: list[Change] = []
    text, work, starts = context.text, None, None
    if inferred:
        text = statement_text(inferred) + ";"
        source = replace(source, statement=text)
    changes.append(PutSource(source, before is not None))
    if statement.is_source and statement.is_table:
        starts = f"CST_{name}_{context.number}"
        changes.append(PutQuery(QueryEntry(starts, "CREATE_AS", text, (name,), None)))
        application_id = context.application_id(starts)
        work = QueryWork(WorkKind.SOURCE_TABLE, starts, application_id, (rows_of(source),))
    message = f"{'Table' if statement.is_table else 'Stream'} created"
    return Prepared(
        statement,
        text,
        "CREATE",
        message,
        source.schema,
        tuple(changes),
        topics,
        starts=starts,
        entity=(kind, name),
        properties=context.properties,
        work=work,
    )


def _topics(
    statement: CreateSource, options: Options, context: Context, topic: str
) -> tuple[TopicNeeded, ...]:
    fact = context.facts.topics.get(topic)
    if fact is not None:
        check_topic(topic, options, fact.partitions, statement)
        return ()
    partitions = options.number("PARTITIONS")
    if statement.is_source or partitions is None:
        raise SqlError(
            f"Topic '{topic}' does not exist. If you want to create a new topic for the "
            f"{'table' if statement.is_table else 'stream'} please re-run the statement providing the "
            "required 'PARTITIONS' configuration in the WITH clause.",
            statement.at,
        )
    if partitions < 1:
        raise SqlError(f"PARTITIONS is {partitions}: at least 1 is needed", statement.at)
    settings: dict[str, str] = {}
    retention, policy = options.number("RETENTION_MS"), options.text("CLEANUP_POLICY")
    if policy is not None:
        settings["cleanup.policy"] = policy
    if retention is not None:
        settings["retention.ms"] = str(retention)
    return (TopicNeeded(topic, partitions, options.number("REPLICAS"), settings),)


def _source(
    statement: CreateSource, options: Options, context: Context, topic: str
) -> tuple[DataSource, CreateSource | None]:
    """The source, and the statement with its columns where some were inferred."""
    definitions = list(statement.columns or ())
    keys, values, inferred = _inferred(statement, options, context, topic, definitions)
    headers = [each for each in definitions if each.role == Role.HEADERS]
    all_columns = [*keys, *values, *headers] if inferred else definitions
    columns = tuple(_column(each, statement, context) for each in all_columns)
    _check(columns, statement)
    schema = Schema(columns)
    form = key_format(options, context.facts)
    if not schema.key and options.text("KEY_FORMAT") is None:
        form = replace(form, name="NONE", properties={}, is_wrapped=False)
    values_form = value_format(options, context.facts, len(schema.value))
    check_columns(form, schema.key, True, statement.at)
    check_columns(values_form, schema.value, False, statement.at)
    for column in (*schema.key, *schema.value):
        _check_map_keys(column, column.kind, form.name if column.is_key else values_form.name, statement)
    timestamp = options.timestamp
    if timestamp is not None:
        check_timestamp(timestamp, schema, statement)
    window = options.window
    if window is not None and not schema.key:
        raise SqlError("Windowed sources require a key column.", statement.at)
    source = DataSource(
        statement.name,
        statement.is_table,
        schema,
        topic,
        form,
        values_form,
        window,
        timestamp,
        statement.is_source,
        context.text,
    )
    return source, replace(statement, columns=tuple(all_columns)) if inferred else None


def _inferred(
    statement: CreateSource,
    options: Options,
    context: Context,
    topic: str,
    definitions: list[ColumnDefinition],
) -> tuple[list[ColumnDefinition], list[ColumnDefinition], bool]:
    keys = [each for each in definitions if each.role in (Role.KEY, Role.PRIMARY_KEY)]
    values = [each for each in definitions if each.role == Role.VALUE]
    is_inferred = False
    for is_key in (True, False):
        lookup = _lookup(statement, options, context.facts, topic, is_key)
        if lookup is None:
            continue
        found = context.facts.schemas.get(lookup)
        if found is None:
            if is_key and not statement.is_table and lookup.schema_id is None:
                continue  # a stream may have no key
            side = "keys" if is_key else "values"
            place = f"id {lookup.schema_id}" if lookup.schema_id is not None else f"subject {lookup.subject}"
            raise SqlError(
                f"Schema for message {side} on topic '{topic}' does not exist in the Schema Registry "
                f"({place}). Register it, or define the columns in the statement.",
                statement.at,
            )
        role = (Role.PRIMARY_KEY if statement.is_table else Role.KEY) if is_key else Role.VALUE
        bare = BARE_KEY if is_key else BARE_VALUE
        made = [
            ColumnDefinition(bare if found.is_bare else column.name, column.kind, role)
            for column in found.columns
        ]
        is_inferred = True
        if is_key:
            keys = made
        else:
            values = made
    return keys, values, is_inferred


def _column(given: ColumnDefinition, statement: CreateSource, context: Context) -> Column:
    kind = looked_up(given.kind, context.metastore.types, given.at)
    if given.name in SYSTEM_NAMES:
        raise SqlError(f"'{given.name}' is a reserved column name. It cannot be used.", given.at)
    if given.role == Role.KEY and statement.is_table:
        raise SqlError(
            f"Column `{given.name}` is a 'KEY' column: please use 'PRIMARY KEY' for tables.\n"
            "Tables have PRIMARY KEYs, which are unique and NON NULL.\n"
            "Streams have KEYs, which have no uniqueness or NON NULL constraints.",
            given.at,
        )
    if given.role == Role.PRIMARY_KEY and not statement.is_table:
        raise SqlError(
            f"Column `{given.name}` is a 'PRIMARY KEY' column: please use 'KEY' for streams.\n"
            "Tables have PRIMARY KEYs, which are unique and NON NULL.\n"
            "Streams have KEYs, which have no uniqueness or NON NULL constraints.",
            given.at,
        )
    if given.role == Role.HEADERS:
        wanted = "BYTES" if given.header is not None else KEY_HEADERS.name
        fits = kind.base == "BYTES" if given.header is not None else kind == KEY_HEADERS
        if not fits:
            shape = wanted if given.header is not None else str(KEY_HEADERS)
            raise SqlError(f"Invalid type for HEADERS column: expected {shape}, got {kind}", given.at)
    return Column(given.name, kind, given.role, given.header)


def _check(columns: tuple[Column, ...], statement: CreateSource) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.name in seen:
            raise SqlError(f"Duplicate column names: {column.name}", statement.at)
        seen.add(column.name)
    if statement.is_table and not any(column.is_key for column in columns):
        raise SqlError(
            f"Tables require a PRIMARY KEY. Please define the PRIMARY KEY: `{statement.name}` has none.",
            statement.at,
        )
    if not any(column.role == Role.VALUE for column in columns):
        raise SqlError("The statement does not define any columns.", statement.at)


def _check_map_keys(column: Column, kind: SqlType, form: str, statement: CreateSource) -> None:
    if isinstance(kind, Map) and kind.key.base != "STRING" and form not in FORMATS_WITH_ANY_MAP_KEY:
        raise SqlError(
            f"The '{form}' format only supports MAP types with STRING keys, not {kind}: column {column.name}",
            statement.at,
        )
