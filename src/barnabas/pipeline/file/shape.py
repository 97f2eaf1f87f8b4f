"""The shape of a pipeline's file: its sections and names, for pydantic and for editors.

In: values of a `Document`. Out: shapes, from which `reading` makes a pipeline; the JSON Schema of the file. A
description is what an editor shows, and the hint where a required name is missing. Does not know: lines,
Spark, what names refer to.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from barnabas.pipeline.file.reading_rules import RULES_SCHEMA, read_rule
from barnabas.pipeline.file.shape_types import (
    Flag,
    Hidden,
    OrFlag,
    OrText,
    OrWords,
    Passwords,
    Rate,
    Seconds,
    Secretive,
    SecretSettings,
    Settings,
    Size,
    Tokens,
    Whole,
    Word,
    Words,
    choice,
    flag,
    problem,
    words,
)
from barnabas.pipeline.lake.tables import Zone
from barnabas.pipeline.spec import model
from barnabas.pipeline.spec.model import (
    Drift,
    FileKind,
    Format,
    Maintenance,
    Refresh,
    Rule,
    Serving,
    TableMode,
)

TITLE = "A pipeline of Barnabas"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
SERVERS = {"bootstrap_servers": "bootstrap.servers"}  # as Python spells it
# Names that belong to a kind of schema.
SCHEMA_NAMES = {
    "infer": (),
    "avro": (),
    "registry": ("subject", "version", "message", "settings"),
    "protobuf": ("message",),
    "ddl": (),
}


class Shape(BaseModel):
    """A section: names that are unknown are problems, and a name without a value counts as absent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: each for name, each in value.items() if each is not None}
        return value


def described(text: str, default: Any = ..., **more: Any) -> Any:
    return Field(default, description=text, **more)


# -- sources ----------------------------------------------------------------------------------------


def topic_names(value: Any) -> Any:
    if isinstance(value, dict) and "bootstrap_servers" in value and "bootstrap.servers" not in value:
        return {
            {"bootstrap_servers": "bootstrap.servers"}.get(name, name): each for name, each in value.items()
        }
    return value


class TopicShape(Shape):
    bootstrap_servers: Hidden = described("host:port, host:port", alias="bootstrap.servers")
    subscribe: Word = described("one topic, or several with commas", "")
    pattern: Word = described("a regular expression of topics, instead of subscribe", "")
    starting: Word = described("earliest or latest: where the first start begins", "earliest")
    settings: SecretSettings = described("options of the Spark source, as in kafka.security.protocol", {})


class TableShape(Shape):
    url: Hidden = described("jdbc:postgresql://…, jdbc:mysql://… or jdbc:sqlite:…")
    table: Word = described("the name of the table")
    user: Hidden = described("as ${env:NAME}", "")
    password: Hidden = described("as ${env:NAME} or ${file:/path}", "")
    mode: Annotated[TableMode, choice(TableMode)] = described("how new rows are found", TableMode.SNAPSHOT)
    incrementing: Word = described("the growing column of mode incrementing", "")
    timestamp: Word = described("the column with the time of change, for mode timestamp", "")
    window: Seconds = described("how long a transaction of the database may take", model.WINDOW_S)
    snapshot_below: Annotated[int, Whole()] = described(
        "tables of fewer rows are always read whole", model.SNAPSHOT_BELOW
    )
    connections: Annotated[int, Whole(1, model.CONNECTIONS_MAX)] = described(
        "how many connections read the table side by side", model.CONNECTIONS
    )
    split_by: Word = described("a column of whole numbers, by whose ranges connections share the rows", "")
    settings: SecretSettings = described("options of Spark's JDBC source", {})


class FilesShape(Shape):
    path: Word = described("a folder, a file or a URL")
    kind: Annotated[FileKind, choice(FileKind)] = described("what the files are", FileKind.JSON)
    pattern: Word = described("of file names, as in *.json", "")
    recursive: Flag = described("whether folders inside of the folder are read", True)
    settings: Settings = described("options of Spark's reader, as in header or sep", {})


def schema_names(value: Any) -> Any:
    """`infer` and a DDL are written as one text."""
    if isinstance(value, list):
        raise problem("must be a text or names with values, this is a list")
    if not isinstance(value, dict):
        return {"infer": {}} if value == "infer" else {"ddl": value}
    kinds = [kind for kind in SCHEMA_NAMES if kind in value]
    if len(kinds) != 1:
        raise problem(f"has {' and '.join(kinds) or 'no schema'}", f"one of {', '.join(SCHEMA_NAMES)}")
    foreign = [name for name in value if name in SchemaShape.model_fields and name != kinds[0]]
    foreign = [name for name in foreign if name not in SCHEMA_NAMES[kinds[0]]]
    if foreign:
        raise problem(f"{foreign[0]} does not belong to {kinds[0]}")
    return value


class InferShape(Shape):
    samples: Annotated[int, Whole(1, 1_000_000)] = described("how many records are looked at", 1000)


def version_number(value: Any) -> int:
    """The number of a version; 0 stands for `latest`."""
    if str(value).strip().lower() == "latest":
        return 0
    plain = getattr(value, "plain", value)
    if not isinstance(plain, int) or isinstance(plain, bool) or plain < 1:
        raise problem(f"is {str(value)!r}", "latest, or a number from 1")
    return plain


class SchemaShape(Shape):
    ddl: Word = described("columns as in id BIGINT, name STRING", "")
    avro: Annotated[Any, WithJsonSchema({"type": ["object", "string"]})] = described(
        "an Avro schema, or the path of its file", None
    )
    protobuf: Word = described("the path of a descriptor set, by protoc --descriptor_set_out", "")
    message: Word = described("the Protobuf message", "")
    infer: InferShape | None = described("columns are inferred from samples", None)
    registry: Hidden = described("the URL of a schema registry", "")
    subject: Word = described("the subject in the registry", "")
    version: Annotated[
        int,
        BeforeValidator(version_number),
        WithJsonSchema({"anyOf": [{"const": "latest"}, {"type": "integer"}]}),
    ] = described("latest, or a number", 0)
    settings: SecretSettings = described("how the registry is reached, as in basic.auth.user.info", {})


def frequency_names(value: Any) -> Any:
    if isinstance(value, dict):
        return value
    if value != model.Pace.REAL_TIME:
        raise problem(f"is {str(value)!r}", 'real_time, {near_real_time: 1 minute} or {batch: "0 2 * * *"}')
    return {}


class FrequencyShape(Shape):
    near_real_time: Seconds | None = described("the interval, as in 5 seconds", None)
    batch: Word | None = described('a cron expression (UTC), as in "0 2 * * *"', None)


class SourceShape(Shape):
    topic: Annotated[TopicShape, BeforeValidator(topic_names)] | None = described("a topic of Kafka", None)
    table: TableShape | None = described("a table of a database", None)
    files: FilesShape | None = described("a folder of files", None)
    format: Annotated[Format, choice(Format)] = described("the format of the records", Format.JSON)
    record_schema: Annotated[SchemaShape, BeforeValidator(schema_names), OrText()] | None = described(
        "a DDL, infer, or names with values", None, alias="schema"
    )
    frequency: Annotated[FrequencyShape, BeforeValidator(frequency_names), OrText("real_time")] | None = (
        described("how often the source is read", None)
    )
    event_time: Word = described("the column with the time of the event", "")
    lateness: Seconds | None = described("rows that arrive later than this are marked", None)
    bandwidth: Rate | None = described("a limit for reading", None)
    changes: Annotated[str, BeforeValidator(str), WithJsonSchema({"enum": [model.DEBEZIUM]})] = described(
        "the records are change events of this kind", ""
    )
    change_types: Settings = described(
        "Debezium's types of columns, for events without schemas, as in at: io.debezium.time.MicroTimestamp",
        {},
    )
    rows_per_batch: Annotated[int, Whole(1)] | None = described("rows of a batch at most", None)


# -- zones and views --------------------------------------------------------------------------------


class KeyShape(Shape):
    columns: Words = described("columns that tell rows apart")
    within: Seconds | None = described("how long a key is remembered, as in 7 days; always without it", None)


def key_names(value: Any) -> Any:
    """Columns alone are a list, or one text."""
    return value if isinstance(value, dict | KeyShape) else {"columns": words(value)}


class StagingShape(Shape):
    source: Word | None = described("the source; by default that of the same name", None)
    key: Annotated[KeyShape, BeforeValidator(key_names), OrText(), OrWords()] | None = described(
        "columns that tell rows apart", None
    )
    drift: Annotated[Drift, choice(Drift)] = described("fields that the schema does not name", Drift.RESCUE)


RuleValue = Annotated[Rule, BeforeValidator(read_rule), WithJsonSchema(RULES_SCHEMA)]


class TrustedShape(Shape):
    staging: Word | None = described(
        "the staging table; by default that of the same name", None, alias="from"
    )
    rules: list[RuleValue] = described("rules that rows must pass", [])
    mask: Settings = described(f"columns and how they are masked: {model.MASK_HINT}", {})
    hash: Words = described("columns that are hashed", ())
    salt: Secretive = described("of the hashes, as ${env:NAME}", "")
    encrypt: Words = described("columns that are encrypted: another text every time", ())
    tokenise: Words = described("columns that are encrypted: equal texts for equal values", ())
    key: Secretive = described("of encrypted and tokenised columns, as ${file:/path}", "")


class RefinedShape(Shape):
    sql: Word = described("a SELECT over tables of the lake", "")
    python: Word = described("module:function, called with the session and the inputs as frames", "")
    inputs: Words = described("the tables of the Python function", ())
    refresh: Annotated[Refresh, choice(Refresh)] = described("how it is computed again", Refresh.AUTO)
    schedule: Word = described("cron of full recomputations; by default every 5 minutes", "")


class ViewShape(Shape):
    source: Word = described("trusted.NAME or refined.NAME", alias="from")
    sql: Word = described("one SELECT that groups by the keys")
    keys: Words = described("the columns that it groups by", ())
    measures: Settings = described("the other columns: sum, count, min, max, last, distinct, …", {})
    batch: Word = described("cron of the batch layer", "")
    settings: Settings = described("settings of the view", {})


# -- the whole --------------------------------------------------------------------------------------


class SparkShape(Shape):
    master: Word = described("local[*], spark://host:7077, yarn, k8s://…", "local[*]")
    remote: Word = described("sc://host:15002, a Spark Connect server", "")
    settings: SecretSettings = described("settings of Spark", {})


class ServingShape(Shape):
    store: Hidden = described("duckdb, or postgresql://… as ${env:NAME}", "duckdb")
    host: Word = described("the address that the service listens on", "127.0.0.1")
    port: Annotated[int, Whole(0, 65535)] = described("the port of the service", 8088)
    token: Hidden = described("of the applications, which write parts", "")
    tokens: Tokens = described("of clients that ask, as ${env:NAME}", ())
    users: Passwords = described("names and passwords of clients that ask", {})
    certificate: Word = described("a PEM file: with private_key, the service speaks TLS", "")
    private_key: Word = described("a PEM file", "")
    plaintext: Flag = described("something in front of the service does TLS", False)
    keep_horizons: Annotated[int, Whole(1, 10_000)] = described(
        "how many versions of a view are kept for as_of", Serving().keep_horizons
    )
    memory: Size = described("the memory of the store", Serving().memory_bytes)
    threads: Annotated[int, Whole(0, 1024)] = described("the threads of the store; 0: as many as cores", 0)
    temp: Word = described("a folder for what does not fit into memory", "")


class LineageShape(Shape):
    url: Hidden = described("an OpenLineage server, as in http://localhost:5000")
    endpoint: Word = described("the path of its API", model.LINEAGE_ENDPOINT)
    token: Hidden = described("its API key, as ${env:NAME}", "")
    timeout: Seconds = described("how long a request may take", model.LINEAGE_TIMEOUT_S)


def audit_names(value: Any) -> Any:
    """`true` stands for an audit as it is by default, `false` for none."""
    if value is None or isinstance(value, dict | AuditShape):
        return value
    return {} if flag(value) else None


class AuditShape(Shape):
    topic: Word = described("the topic that gets the counts; by default _barnabas_audit", "")
    bucket: Seconds = described("the width of buckets, that of the brokers that count", model.AUDIT_BUCKET_S)
    sums: Flag = described("sums up what raw's rows hold: reads all of their bytes again", False)


class MaintenanceShape(Shape):
    compact: Word = described("cron of compactions", "")
    vacuum: Seconds = described(
        "age at which files that no version needs are deleted", Maintenance().vacuum_s
    )
    file_size: Size = described("the size that compactions aim at", Maintenance().file_bytes_target)


class RetentionShape(Shape):
    raw: Seconds = described("how long rows stay in raw", 0.0)
    staging: Seconds = described("how long rows stay in staging", 0.0)
    trusted: Seconds = described("how long rows stay in trusted", 0.0)
    refined: Seconds = described("how long rows stay in refined", 0.0)
    quarantine: Seconds = described("how long rows stay in quarantine", 0.0)


assert set(RetentionShape.model_fields) == set(Zone)


class PipelineShape(Shape):
    name: Word = described("a short name: letters, digits, _")
    lake: Word = described("a folder or URL, as in ./lake")
    spark: SparkShape = described("where Spark runs", SparkShape())
    sources: dict[str, SourceShape] = described("where rows come from", {})
    staging: dict[str, StagingShape] = described("parsed and typed rows, each key once", {})
    trusted: dict[str, TrustedShape] = described("rows that pass every rule, masked", {})
    refined: dict[str, RefinedShape] = described("business tables", {})
    views: dict[str, ViewShape] = described("what is served", {})
    serving: ServingShape = described("the service that answers queries", ServingShape())
    retention: RetentionShape = described("how long zones keep rows", RetentionShape())
    maintenance: MaintenanceShape = described("compaction and vacuum", MaintenanceShape())
    lineage: LineageShape | None = described("where OpenLineage events are sent", None)
    audit: Annotated[AuditShape | None, BeforeValidator(audit_names), OrFlag()] = described(
        "zones count records for barnabas audit", None
    )


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the file, for editors."""
    found = PipelineShape.model_json_schema(by_alias=True)
    required = {"required": [*found["required"], "sources"], "title": TITLE}
    return {"$schema": DIALECT, **found, **required}
