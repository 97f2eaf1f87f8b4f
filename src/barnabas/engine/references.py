"""Finds a source by its reference: the one way from a name to a DataFrame.

In: a reference as text, or as a value. Out: a DataFrame, of what the source has now or of a stream. Topics
are read by the data source `barnabas`, with all of its options. Does not know: what is done with the rows.

    topic:orders                                     a topic of the default cluster
    topic:eu/orders                                  a topic of the cluster `eu`
    kafka://host1:9092,host2:9092/orders             a topic of a cluster by its address
    table:trusted.orders, table:trusted.orders@12    a table of the lake, as of a version
    delta:s3a://bucket/lake/trusted/orders           a Delta table by its path
    jdbc:postgresql://host/shop#public.customers     a table of a database
    files:/data/orders/*.json                        files; the format is that of the ending
    files:parquet:/data/orders                       files of a format
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from barnabas.engine.secrets import Text, reveal, revealed, scrubbed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULT_CLUSTER = "default"
TOPIC_FORMAT = "barnabas"
FILE_FORMATS = {
    "avro": "avro",
    "csv": "csv",
    "json": "json",
    "jsonl": "json",
    "ndjson": "json",
    "orc": "orc",
    "parquet": "parquet",
    "txt": "text",
    "xml": "xml",
}
VERSION = re.compile(r"(.+)@(\d+)")
TABLE_NAME = re.compile(r"[A-Za-z_][\w]*\.[\w.-]+")


class WrongReference(ValueError):
    """A reference that names no source; the message says what is wrong and how to write it."""


@dataclass(frozen=True, slots=True)
class TopicReference:
    """`topic` may be several names with commas, or with `is_pattern` a regular expression."""

    topic: str
    client: Mapping[str, Text]  # settings of Kafka's clients, `bootstrap.servers` among them
    is_pattern: bool = False


@dataclass(frozen=True, slots=True)
class TableReference:
    """A Delta table by its folder or URL."""

    path: str
    version: int | None = None


@dataclass(frozen=True, slots=True)
class JdbcReference:
    """A table of a database, or a query over it."""

    url: Text
    table: str = ""
    query: str = ""


@dataclass(frozen=True, slots=True)
class FilesReference:
    path: str
    format: str
    schema: str = ""  # in Spark's words; streams of files need one


Reference = TopicReference | TableReference | JdbcReference | FilesReference


@dataclass(frozen=True, slots=True)
class Sources:
    """Context in which references are resolved: clusters by name, each with settings of Kafka's clients, and
    the folder or URL of a lake."""

    clusters: Mapping[str, Mapping[str, Text]] = field(default_factory=dict)
    lake: str = ""

    def find(self, text: str) -> Reference:
        """The reference of a text. WrongReference says how to write one."""
        scheme, colon, rest = text.partition(":")
        if colon and rest:
            if scheme == "topic":
                return self._topic(rest)
            if scheme == "kafka":
                return address_of_topic(text)
            if scheme == "table":
                return self._table(rest)
            if scheme == "delta":
                return versioned(rest)
            if scheme == "jdbc":
                return jdbc(text)
            if scheme == "files":
                return files(rest)
        raise WrongReference(
            f"{scrubbed(text)!r} names no source: write topic:NAME, kafka://HOST:PORT/NAME, table:ZONE.NAME,"
            " delta:PATH, jdbc:URL#TABLE or files:PATH"
        )

    def _topic(self, rest: str) -> TopicReference:
        cluster, slash, topic = rest.partition("/")
        if not slash:
            cluster, topic = DEFAULT_CLUSTER, rest
        if cluster not in self.clusters:
            known = ", ".join(sorted(self.clusters)) or "none is configured"
            raise WrongReference(f"topic:{rest}: there is no cluster {cluster!r} ({known})")
        return TopicReference(topic, self.clusters[cluster])

    def _table(self, rest: str) -> TableReference:
        if not self.lake:
            raise WrongReference(f"table:{rest}: no lake is configured; write delta:PATH")
        found = versioned(rest)
        if not TABLE_NAME.fullmatch(found.path):
            raise WrongReference(f"table:{rest}: write ZONE.NAME, as in table:trusted.orders")
        zone, _, name = found.path.partition(".")
        return TableReference(f"{self.lake.rstrip('/')}/{zone}/{name}", found.version)


def versioned(text: str) -> TableReference:
    match = VERSION.fullmatch(text)
    return TableReference(text) if match is None else TableReference(match[1], int(match[2]))


def address_of_topic(text: str) -> TopicReference:
    servers, slash, topic = text.removeprefix("kafka://").partition("/")
    if not slash or not topic or not servers or not text.startswith("kafka://"):
        raise WrongReference(f"{text!r}: write kafka://HOST:PORT/TOPIC")
    return TopicReference(topic, {"bootstrap.servers": servers})


def jdbc(text: str) -> JdbcReference:
    url, sharp, table = text.rpartition("#")
    if not sharp or not table:
        raise WrongReference(
            f"{scrubbed(text)!r}: name the table behind a #, as in jdbc:postgresql://host/db#t"
        )
    return JdbcReference(url, table)


def files(rest: str) -> FilesReference:
    first, colon, path = rest.partition(":")
    if colon and first in FILE_FORMATS:
        return FilesReference(path, FILE_FORMATS[first])
    ending = rest.rstrip("/*").rpartition(".")[2].lower()
    if ending not in FILE_FORMATS:
        raise WrongReference(
            f"files:{rest}: the ending names no format; write files:FORMAT:PATH, with one of"
            f" {', '.join(sorted(FILE_FORMATS))}"
        )
    return FilesReference(rest, FILE_FORMATS[ending])


def frame_of(
    spark: SparkSession,
    reference: Reference,
    options: Mapping[str, Any] | None = None,
    *,
    streaming: bool = False,
) -> DataFrame:
    """The rows of a source: all that it has now, or a stream of them. `options` are those of Spark's reader,
    and win. Secrets are revealed here."""
    reader: Any = spark.readStream if streaming else spark.read
    given = dict(options or {})
    if isinstance(reference, TopicReference):
        client = {f"kafka.{name}": value for name, value in revealed(reference.client).items()}
        subscription = "subscribePattern" if reference.is_pattern else "subscribe"
        every = {**client, subscription: reference.topic, **given}
        return reader.format(TOPIC_FORMAT).options(**every).load()  # type: ignore[no-any-return]
    if isinstance(reference, TableReference):
        if reference.version is not None:
            name = "startingVersion" if streaming else "versionAsOf"
            given = {name: reference.version, **given}
        return reader.format("delta").options(**given).load(reference.path)  # type: ignore[no-any-return]
    if isinstance(reference, JdbcReference):
        if streaming:
            raise WrongReference(
                "a table of a database cannot be read as a stream: capture its changes in a topic"
            )
        what = {"query": reference.query} if reference.query else {"dbtable": reference.table}
        every = {"url": reveal(reference.url), **what, **given}
        return reader.format("jdbc").options(**every).load()  # type: ignore[no-any-return]
    if reference.schema:
        reader = reader.schema(reference.schema)
    return reader.format(reference.format).options(**given).load(reference.path)  # type: ignore[no-any-return]
