"""Facts from outside that analysis needs, as values, and the question which ones a statement needs.

The caller asks `lookups_of(statement, …)`, looks those topics and schemas up, and gives them to `analyze` as
`Facts`. Analysis itself waits for nothing. Does not know: clients of brokers and registries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from barnabas.sql.metastore.schemas import Column

NOTHING: Mapping[str, str] = MappingProxyType({})

DEFAULT_KEY_FORMAT = "ksql.persistence.default.format.key"
DEFAULT_VALUE_FORMAT = "ksql.persistence.default.format.value"
WRAP_SINGLE_VALUES = "ksql.persistence.wrap.single.values"
TOPIC_PREFIX = "ksql.output.topic.name.prefix"
SERVICE_ID = "ksql.service.id"
TABLE_SCANS = "ksql.query.pull.table.scan.enabled"
SINK_PARTITIONS = "ksql.sink.partitions"
SINK_REPLICAS = "ksql.sink.replicas"
SETTINGS: Mapping[str, str] = MappingProxyType(
    {
        DEFAULT_KEY_FORMAT: "KAFKA",
        WRAP_SINGLE_VALUES: "true",
        TOPIC_PREFIX: "",
        SERVICE_ID: "default_",
        TABLE_SCANS: "true",
    }
)


@dataclass(frozen=True, slots=True)
class TopicFact:
    """A topic that exists."""

    name: str
    partitions: int
    replicas: int = 1
    retention_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SchemaLookup:
    """Columns to infer: from the latest schema of `<topic>-key` or `-value`, or from one schema by its id.

    `format` is AVRO, JSON_SR or PROTOBUF; `full_name` picks one record or message of the schema."""

    topic: str
    is_key: bool
    format: str
    schema_id: int | None = None
    full_name: str | None = None

    @property
    def subject(self) -> str:
        return f"{self.topic}-{'key' if self.is_key else 'value'}"


@dataclass(frozen=True, slots=True)
class InferredSchema:
    """Columns of a registered schema; their roles are set by the analysis. `is_bare`: it is no record,
    so it has one column without a name."""

    schema_id: int
    columns: tuple[Column, ...]
    is_bare: bool = False


@dataclass(frozen=True, slots=True)
class Lookups:
    """Facts to look up for a statement."""

    topics: tuple[str, ...] = ()
    schemas: tuple[SchemaLookup, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """`topics` and `schemas` have what exists of the lookups. `settings` are the server's; a statement's own
    properties come before them, both before `SETTINGS`. `now_ms` is the ROWTIME of inserted rows."""

    topics: Mapping[str, TopicFact] = field(default_factory=lambda: MappingProxyType({}))
    schemas: Mapping[SchemaLookup, InferredSchema] = field(default_factory=lambda: MappingProxyType({}))
    settings: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    now_ms: int = 0

    def setting(self, name: str, properties: Mapping[str, str] = NOTHING) -> str | None:
        """A setting by its name, with or without the prefix `ksql.streams.`."""
        for given in (properties, self.settings, SETTINGS):
            for key in (name, f"ksql.streams.{name}"):
                if key in given:
                    return given[key]
        return None
