"""A pipeline as values: what the file describes, or what Python code writes instead of a file.

In: names, addresses, schemas, rules. Out: frozen values for the other rooms. `file.reading` makes them from
YAML, `file.writing` turns them into a document again, `file.checks` finds their problems. Does not know:
YAML, Spark, the lake's tables.

    pipeline = Pipeline(
        name="shop",
        lake="./lake",
        sources=[TopicSource(name="orders", bootstrap_servers="localhost:9092", subscribe="orders", ...)],
        staging=[Staging(name="orders", source="orders", key=["order_id"])],
        trusted=[Trusted(name="orders", staging="orders", rules=[not_null("order_id")])],
    )
    run_pipeline(pipeline, once=True)  # of barnabas.pipeline.run.start
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from barnabas.engine.secrets import Text, reference
from barnabas.engine.spark_settings import SparkSettings
from barnabas.pipeline.lake.tables import Lake, TableName, Zone

Named = TypeVar("Named", bound="_Named")


class Pace(StrEnum):
    REAL_TIME = "real_time"
    NEAR_REAL_TIME = "near_real_time"
    BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Frequency:
    """How often a source is read: continuously, at an interval, or by cron."""

    pace: Pace = Pace.REAL_TIME
    interval_s: float = 0.0
    cron: str = ""

    @property
    def is_streaming(self) -> bool:
        """Whether the streaming application reads the source; if not, the batch application does."""
        return self.pace is not Pace.BATCH


REAL_TIME = Frequency()
EVERY_MINUTE = Frequency(Pace.NEAR_REAL_TIME, interval_s=60.0)
EVERY_TEN_SECONDS = Frequency(Pace.NEAR_REAL_TIME, interval_s=10.0)


def every(interval_s: float) -> Frequency:
    return Frequency(Pace.NEAR_REAL_TIME, interval_s=interval_s)


def on_schedule(cron: str) -> Frequency:
    return Frequency(Pace.BATCH, cron=cron)


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of records: DDL, an Avro schema, a Protobuf message, a subject of a registry, or inferred
    from samples."""

    ddl: str = ""
    avro: str = ""  # the schema itself, as JSON
    protobuf: str = ""  # path of a descriptor set, or the set in base64
    message: str = ""
    infer_samples: int = 0
    registry: Text = ""  # URL of a schema registry
    subject: str = ""
    version: int = 0  # 0 follows the latest one
    registry_settings: Mapping[str, Text] = field(default_factory=dict, hash=False)

    @property
    def is_given(self) -> bool:
        return bool(self.ddl or self.avro or self.protobuf or self.registry)


class Drift(StrEnum):
    """Treatment of fields that the schema does not name."""

    ADD = "add"
    RESCUE = "rescue"
    STOP = "stop"


class TableMode(StrEnum):
    SNAPSHOT = "snapshot"
    INCREMENTING = "incrementing"
    TIMESTAMP = "timestamp"
    BOTH = "timestamp+incrementing"


class FileKind(StrEnum):
    JSON = "json"
    CSV = "csv"
    AVRO = "avro"
    PARQUET = "parquet"
    TEXT = "text"
    BINARY = "binary"


class Format(StrEnum):
    JSON = "json"
    CSV = "csv"
    AVRO = "avro"
    PROTOBUF = "protobuf"
    STRING = "string"
    BINARY = "binary"


DEBEZIUM = "debezium"
SNAPSHOT_BELOW = 10_000
WINDOW_S = 300.0
CONNECTIONS = 4  # to a database, for one read of a table
CONNECTIONS_MAX = 128
AUDIT_BUCKET_S = 600.0  # as brokers have it by default
LINEAGE_ENDPOINT = "api/v1/lineage"
LINEAGE_TIMEOUT_S = 5.0
# Ways to mask a column.
MASKS = re.compile(r"all|email|null|year|(last|first)(\d{1,2})")
MASK_HINT = "all, last4 (any number), first1, email, year, null"


class Merging(StrEnum):
    """How a batch changes a table: add rows with new keys, replace rows by key, or replace all rows.

    Raw's commits keep the values."""

    INSERT_NEW = "first"
    UPSERT = "last"
    REPLACE_ALL = "mirror"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Named:
    name: str

    def __post_init__(self) -> None:
        # Callers may pass lists; tuples keep the values frozen and hashable.
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, list):
                object.__setattr__(self, each.name, tuple(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source(_Named):
    """Base of all kinds of sources."""

    format: Format = Format.JSON
    schema: Schema = Schema()
    frequency: Frequency = REAL_TIME
    event_time: str = ""
    lateness_s: float | None = None
    bandwidth_bytes_s: float | None = None
    changes: str = ""  # `debezium`
    change_types: Mapping[str, str] = field(default_factory=dict)  # Debezium's names of types by column
    rows_per_batch_max: int | None = None

    @property
    def merging(self) -> Merging:
        return Merging.UPSERT if self.changes else Merging.INSERT_NEW


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSource(Source):
    bootstrap_servers: Text
    subscribe: str = ""
    pattern: str = ""
    starting: str = "earliest"
    settings: Mapping[str, Text] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSource(Source):
    url: Text
    table: str
    user: Text = ""
    password: Text = ""
    mode: TableMode = TableMode.SNAPSHOT
    incrementing: str = ""
    timestamp: str = ""
    window_s: float = WINDOW_S  # mode `timestamp` reads rows of so many seconds again
    snapshot_below: int = SNAPSHOT_BELOW
    connections: int = CONNECTIONS  # that read the table side by side, each a range of numbers
    split_by: str = ""  # the column of these ranges; by default `incrementing`, or the primary key
    frequency: Frequency = EVERY_MINUTE
    settings: Mapping[str, Text] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """The URL as in the file, without the values of secrets."""
        return reference(self.url)

    @property
    def merging(self) -> Merging:
        """The merging that follows from the mode. Small tables are read as snapshots in every mode, which
        shows only at reading."""
        if self.mode is TableMode.SNAPSHOT:
            return Merging.REPLACE_ALL
        return Merging.INSERT_NEW if self.mode is TableMode.INCREMENTING else Merging.UPSERT


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSource(Source):
    path: str
    kind: FileKind = FileKind.JSON
    pattern: str = ""  # of file names, as in *.json
    recursive: bool = True
    frequency: Frequency = EVERY_TEN_SECONDS
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Staging(_Named):
    """`within_s`: a row is a duplicate if a row with its key was ingested so many seconds before; any row
    without it."""

    source: str
    key: tuple[str, ...] | list[str] = ()
    within_s: float | None = None
    drift: Drift = Drift.RESCUE


class RuleKind(StrEnum):
    NOT_NULL = "not_null"
    RANGE = "range"
    PATTERN = "pattern"
    UNIQUE = "unique"
    REFERENCE = "reference"
    EXPRESSION = "expression"
    FRESHNESS = "freshness"


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule for rows of a trusted table. Make it with `not_null`, `in_range`, `pattern` and so on."""

    kind: RuleKind
    columns: tuple[str, ...] = ()
    low: Any = None  # of a range; None: no bound
    high: Any = None
    text: str = ""  # the pattern, the expression, or the referenced table.column
    age_s: float = 0.0
    name: str = ""
    within_s: float | None = None  # `unique`: how long a value is remembered; None: always

    @property
    def label(self) -> str:
        """The rule's name in the quarantine and the report."""
        return self.name or "_".join((self.kind, *self.columns))


def not_null(column: str, name: str = "") -> Rule:
    return Rule(RuleKind.NOT_NULL, (column,), name=name)


def in_range(column: str, low: Any = None, high: Any = None, name: str = "") -> Rule:
    return Rule(RuleKind.RANGE, (column,), low=low, high=high, name=name)


def pattern(column: str, expression: str, name: str = "") -> Rule:
    """The whole value must match the expression."""
    return Rule(RuleKind.PATTERN, (column,), text=expression, name=name)


def unique(*columns: str, name: str = "", within_s: float | None = None) -> Rule:
    """`within_s`: a value is taken if a row with it was ingested so many seconds before."""
    return Rule(RuleKind.UNIQUE, columns, name=name, within_s=within_s)


def refers_to(column: str, target: str, name: str = "") -> Rule:
    """`target` is table.column of a trusted table, or staging.table.column or refined.table.column."""
    return Rule(RuleKind.REFERENCE, (column,), text=target, name=name)


def expression(sql: str, name: str = "") -> Rule:
    return Rule(RuleKind.EXPRESSION, text=sql, name=name)


def fresh(column: str, age_s: float, name: str = "") -> Rule:
    return Rule(RuleKind.FRESHNESS, (column,), age_s=age_s, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trusted(_Named):
    staging: str  # `from` in the file
    rules: tuple[Rule, ...] | list[Rule] = ()
    mask: Mapping[str, str] = field(default_factory=dict)  # column -> all, last4, first1, email, null
    hash: tuple[str, ...] | list[str] = ()
    salt: Text = ""  # of the hashes
    encrypt: tuple[str, ...] | list[str] = ()  # columns; another text every time
    tokenise: tuple[str, ...] | list[str] = ()  # columns; equal texts for equal values
    key: Text = ""  # of encrypted and tokenised columns

    @property
    def protected(self) -> tuple[str, ...]:
        """Columns that hold other values than in staging, and always text."""
        return (*self.hash, *self.encrypt, *self.tokenise)


class Refresh(StrEnum):
    FULL = "full"
    APPEND = "append"
    AUTO = "auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refined(_Named):
    """A business table. SQL names its inputs itself; a Python function needs `inputs`."""

    sql: str = ""
    python: str = ""  # module:function, called with the session and the inputs as frames
    inputs: tuple[str, ...] | list[str] = ()
    refresh: Refresh = Refresh.AUTO
    schedule: str = ""  # cron of full recomputations; empty: every 5 minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class View(_Named):
    source: str  # `from` in the file: trusted.orders or refined.daily
    sql: str
    keys: tuple[str, ...] | list[str] = ()
    measures: Mapping[str, str] = field(default_factory=dict)
    batch: str = ""  # cron of the batch layer
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def table(self) -> TableName:
        return TableName.parse(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    store: Text = "duckdb"
    host: str = "127.0.0.1"
    port: int = 8088
    token: Text = ""  # of the applications, which write parts
    tokens: tuple[Text, ...] = ()  # of clients that ask
    users: Mapping[str, Text] = field(default_factory=dict)  # names and passwords of clients that ask
    certificate: str = ""  # PEM files: with both, the service speaks TLS
    private_key: str = ""
    plaintext: bool = False  # something in front of the service does TLS
    keep_horizons: int = 3
    memory_bytes: int = 1 << 30  # of the embedded store
    threads: int = 0  # of the embedded store; 0: one for each core
    temp_folder: str = ""  # for what exceeds its memory; empty: beside the store

    @property
    def is_guarded(self) -> bool:
        """Whether clients must say who they are."""
        return bool(self.tokens or self.users)


@dataclass(frozen=True, slots=True)
class Maintenance:
    compact: str = ""  # cron
    vacuum_s: float = 7 * 86400.0  # age at which files that no version needs are deleted
    file_bytes_target: int = 128 * 2**20


@dataclass(frozen=True, slots=True)
class Audit:
    """Whether zones count records for `barnabas audit`, and where their counts go: to a topic of the brokers
    that the source reads from."""

    is_enabled: bool = False
    topic: str = ""  # empty: _barnabas_audit
    bucket_s: float = AUDIT_BUCKET_S
    has_sums: bool = False  # of what raw's rows hold


@dataclass(frozen=True, slots=True)
class LineageServer:
    """The address to which OpenLineage events are sent, beside the file that always has them."""

    url: Text = ""
    endpoint: str = LINEAGE_ENDPOINT
    token: Text = ""
    timeout_s: float = LINEAGE_TIMEOUT_S


def by_name(values: Iterable[Named], name: str) -> Named:
    for each in values:
        if each.name == name:
            return each
    raise KeyError(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline(_Named):
    lake: str
    spark: SparkSettings = field(default_factory=SparkSettings)
    sources: Sequence[Source] = ()
    staging: Sequence[Staging] = ()
    trusted: Sequence[Trusted] = ()
    refined: Sequence[Refined] = ()
    views: Sequence[View] = ()
    serving: Serving = Serving()
    retention_s: Mapping[str, float] = field(default_factory=dict)  # zone -> seconds
    maintenance: Maintenance = Maintenance()
    lineage: LineageServer = LineageServer()
    audit: Audit = Audit()
    file: Path | None = None  # the file it was read from

    @property
    def lake_location(self) -> Lake:
        return Lake.at(self.lake, self.file.parent if self.file is not None else None, self.spark.settings)

    def source(self, name: str) -> Source:
        return by_name(self.sources, name)

    def staging_of(self, source: str) -> list[Staging]:
        return [each for each in self.staging if each.source == source]

    def trusted_of(self, staging: str) -> list[Trusted]:
        return [each for each in self.trusted if each.staging == staging]

    def source_of(self, table: TableName) -> Source | None:
        """The source whose batches change a table; None for a refined table."""
        name = table.name
        if table.zone is Zone.TRUSTED:
            name = by_name(self.trusted, name).staging
        if table.zone in (Zone.TRUSTED, Zone.STAGING):
            name = by_name(self.staging, name).source
        return None if table.zone is Zone.REFINED else self.source(name)

    def event_time_of(self, table: TableName) -> str:
        """The column of event times of a table; empty if none is declared."""
        try:
            source = self.source_of(table)
        except KeyError:
            return ""
        return source.event_time if source is not None else ""
