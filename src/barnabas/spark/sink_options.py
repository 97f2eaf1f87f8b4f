"""The output of a query: options of the sink, and the columns it may have.

In: options as Spark hands them over, the schema of the rows. Out: one frozen value, or an error that names
the option or the column. Does not know: clusters, Arrow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.records.compression import Compression
from barnabas.spark.basics.settings import (
    ClientSettings,
    OptionError,
    client_settings,
    flag,
    kafka_settings,
    number,
)
from barnabas.spark.formats.formats import Format
from barnabas.spark.interceptors import NO_INTERCEPTORS, Interceptors, interceptors_of
from barnabas.spark.options import OTHER_OPTIONS, check_names, formats_of
from barnabas.spark.writing.packing import LEVELS

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

SINK_OPTIONS = ("topic", "includeHeaders", "exactlyOnce", "compression", "batchBytes")
COLUMN_TYPES = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("timestamp",),
    "headers": ("array<struct<key:string,value:binary>>",),
}
ACKS = ("all", "-1", "0", "1")  # rows are acknowledged by all in-sync replicas in any case
BATCH_BYTES = 1_000_000  # just below what brokers take unless told otherwise: few requests, few headers
BATCH_BYTES_MAX = 512 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SinkOptions:
    client: ClientSettings
    topic: str | None = None
    is_exactly_once: bool = False
    compression: int = Compression.NONE
    compression_level: int | None = None
    batch_bytes: int = BATCH_BYTES
    delivery_timeout_ms: int = 120_000
    transaction_timeout_ms: int = 60_000
    formats: tuple[Format, ...] = ()
    interceptors: Interceptors = NO_INTERCEPTORS


def sink_options(given: Mapping[str, str], schema: StructType) -> SinkOptions:
    options = {name.lower(): value for name, value in given.items()}
    check_names(options, (*SINK_OPTIONS, *OTHER_OPTIONS))
    client = client_settings(options)
    kafka = kafka_settings(options)
    topic = options.get("topic", "").strip() or None
    formats = formats_of(options)
    for each in formats:
        if each.ids_in_headers:
            raise each.wrong("schema.id.location", "is header: the sink writes ids before payloads")
    check_columns(schema, topic, {each.side for each in formats})
    acks = kafka.get("acks", "all")
    if acks not in ACKS:
        raise OptionError(f"the option kafka.acks is {acks!r}, it may be {', '.join(ACKS)}")
    codec = compression(options, kafka)
    return SinkOptions(
        client=client,
        topic=topic,
        is_exactly_once=flag(options.get("exactlyonce", "false"), "exactlyOnce"),
        compression=codec,
        compression_level=compression_level(codec, kafka),
        batch_bytes=batch_bytes(options, kafka),
        delivery_timeout_ms=number(kafka, "delivery.timeout.ms", 120_000, 1),
        transaction_timeout_ms=number(kafka, "transaction.timeout.ms", 60_000, 1),
        formats=formats,
        interceptors=interceptors_of(options),
    )


def check_columns(schema: StructType, topic: str | None, formatted: set[str]) -> None:
    """Columns that have a format may be of any type: the format says what it takes. As Spark's connector, the
    sink leaves other columns out: rows that were read from a topic can be written as they are."""
    types = {each.name.lower(): each.dataType.simpleString() for each in schema.fields}
    if "value" not in types:
        raise OptionError("a column named value is needed: what the records hold")
    if "topic" not in types and topic is None:
        raise OptionError(
            "the option topic is missing, and there is no column topic that names one for each row"
        )
    for name, allowed in COLUMN_TYPES.items():
        found = types.get(name)
        if found is not None and found not in allowed and name not in formatted and name != "timestamp":
            raise OptionError(f"the column {name} is of type {found}, it must be {' or '.join(allowed)}")


def compression(options: Mapping[str, str], kafka: Mapping[str, str]) -> Compression:
    name = options.get("compression") or kafka.get("compression.type", "none")
    try:
        return Compression[name.strip().upper()]
    except KeyError:
        allowed = ", ".join(each.name.lower() for each in Compression)
        raise OptionError(f"the option compression is {name!r}, it may be {allowed}") from None


def compression_level(codec: Compression, kafka: Mapping[str, str]) -> int | None:
    """`kafka.compression.zstd.level` and its relatives; None when the one of the codec is not given."""
    name = f"compression.{codec.name.lower()}.level"
    if codec not in LEVELS or name not in kafka:
        return None
    least, most, _ = LEVELS[codec]
    level = number(kafka, name, 0, least)
    if level > most:
        raise OptionError(f"the option kafka.{name} is {level}, it may be {least} to {most}")
    return level


def batch_bytes(options: Mapping[str, str], kafka: Mapping[str, str]) -> int:
    if "batchbytes" in options:
        return number({"batchBytes": options["batchbytes"]}, "batchBytes", BATCH_BYTES, 1, "")
    return min(number(kafka, "batch.size", BATCH_BYTES, 1), BATCH_BYTES_MAX)
