"""Settings of the objects sinks: Confluent's names, and what they mean together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from barnabas.connect.config import ConfigDef, Settings, at_least, non_empty, one_of, one_of_any_case
from barnabas.connect.connectors.objects import partitioners
from barnabas.connect.connectors.objects.compatibility import LEVELS
from barnabas.connect.connectors.objects.cutting import Rules
from barnabas.connect.connectors.objects.formats import Format
from barnabas.connect.connectors.objects.storage import Storage, storage_at
from barnabas.connect.plugins import ConnectError

S3A = "spark.hadoop.fs.s3a"
VALUES, KEYS, HEADERS = "values", "keys", "headers"
FORMATS = {
    "Parquet": "parquet",
    "Avro": "avro",
    "Json": "json",
    "Csv": "csv",
    "String": "string",
    "ByteArray": "bytearray",
}
PARTITIONERS = (
    "DefaultPartitioner",
    "FieldPartitioner",
    "TimeBasedPartitioner",
    "DailyPartitioner",
    "HourlyPartitioner",
)


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything that decides where and how records are written."""

    storage: Storage
    form: Format
    parts: Mapping[str, Format]  # values, and keys and headers where they are stored
    rules: Rules
    encoder: partitioners.Encoder
    extract: partitioners.Extractor
    topics_dir: str
    file_delim: str
    pad: int
    ends_in_names: bool
    seeks_by_names: bool  # a group of several folders may be written in part: then names do not tell
    on_null: str
    schedule_ms: int
    zone: tzinfo

    def extension_of(self, part: str) -> str:
        return f".{part}{self.parts[part].extension}" if part != VALUES else self.form.extension


def simple(name: str) -> str:
    return name.rsplit(".", 1)[-1]


def parts_of(settings: Settings) -> dict[str, Format]:
    found = {VALUES: format_of(settings)}
    for part in (KEYS, HEADERS):
        if settings.flag(f"store.kafka.{part}"):
            found[part] = format_of(settings, f"{part}.format.class")
            if found[part].name in ("string", "bytearray", "csv") and part == HEADERS:
                raise ConnectError(f"{part}.format.class must be JSON, Avro or Parquet: headers are lists")
    return found


def format_of(settings: Settings, name: str = "format.class") -> Format:
    text = settings.text(name) or settings.text("format.class")
    found = FORMATS.get(simple(text).removesuffix("Format"))
    if found is None:
        known = ", ".join(f"{each}Format" for each in FORMATS)
        raise ConnectError(f"{name} {text!r} is unknown; known are {known}")
    gzipped = settings.text("s3.compression.type") == "gzip" and found in (
        "json",
        "csv",
        "string",
        "bytearray",
    )
    codec = {"parquet": "parquet.codec", "avro": "avro.codec"}.get(found)
    return Format(found, settings.text(codec) if codec else "", gzipped)


def layout_of(settings: Settings) -> Layout:
    zone = zone_of(settings.text("timezone") or "UTC")
    extract = extractor_of(settings)
    return Layout(
        storage=storage_of(settings),
        form=format_of(settings),
        parts=parts_of(settings),
        rules=Rules(
            settings.integer("flush.size"),
            settings.integer("rotate.interval.ms"),
            settings.flag("rotate.file.on.partition.change"),
            settings.text("schema.compatibility").upper(),
            settings.flag("store.kafka.keys"),
        ),
        encoder=encoder_of(settings, zone, extract),
        extract=extract,
        topics_dir=settings.text("topics.dir").strip("/"),
        file_delim=settings.text("file.delim"),
        pad=settings.integer("filename.offset.zero.pad.width"),
        ends_in_names="hdfs.url" in settings,
        seeks_by_names="hdfs.url" in settings
        and simple(settings.text("partitioner.class")) == "DefaultPartitioner",
        on_null=settings.text("behavior.on.null.values"),
        schedule_ms=settings.integer("rotate.schedule.interval.ms"),
        zone=zone,
    )


def storage_of(settings: Settings) -> Storage:
    part_bytes = settings.integer("s3.part.size")
    access = {
        f"{S3A}.endpoint": settings.text("store.url"),
        f"{S3A}.endpoint.region": settings.text("s3.region"),
        f"{S3A}.access.key": settings.text("aws.access.key.id"),
        f"{S3A}.secret.key": settings.text("aws.secret.access.key"),
        f"{S3A}.path.style.access": str(settings.flag("s3.path.style.access.enabled")),
    }
    url = settings.text("hdfs.url") if "hdfs.url" in settings else f"s3://{settings.text('s3.bucket.name')}"
    return storage_at(url, access, part_bytes)


def zone_of(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConnectError(f"timezone {name!r} is unknown: write UTC, Europe/Berlin …") from None


def extractor_of(settings: Settings) -> partitioners.Extractor:
    name = simple(settings.text("timestamp.extractor")).removesuffix("TimestampExtractor")
    found: dict[str, partitioners.Extractor] = {
        "Wallclock": partitioners.wall_clock,
        "Record": partitioners.record_time,
        "RecordField": partitioners.FieldTime(settings.text("timestamp.field")),
    }
    if name not in found:
        raise ConnectError(f"timestamp.extractor {name!r} is none of {', '.join(found)}")
    return found[name]


def encoder_of(settings: Settings, zone: tzinfo, extract: partitioners.Extractor) -> partitioners.Encoder:
    name = simple(settings.text("partitioner.class"))
    if name == "DefaultPartitioner":
        return partitioners.by_kafka_partition
    if name == "FieldPartitioner":
        fields = settings.entries("partition.field.name")
        if not fields:
            raise ConnectError("FieldPartitioner needs partition.field.name")
        return partitioners.ByFields(tuple(fields))
    if name not in PARTITIONERS:
        raise ConnectError(f"partitioner.class {name!r} is none of {', '.join(PARTITIONERS)}")
    fixed = {"DailyPartitioner": partitioners.DAILY, "HourlyPartitioner": partitioners.HOURLY}
    pattern = fixed.get(name) or settings.text("path.format")
    duration_ms = {"DailyPartitioner": 900_000, "HourlyPartitioner": 900_000}.get(
        name, settings.integer("partition.duration.ms")
    )  # zones lie quarters of an hour apart, so periods of 15 minutes never cross midnight
    if not pattern or duration_ms <= 0:
        raise ConnectError("TimeBasedPartitioner needs path.format and partition.duration.ms > 0")
    try:
        return partitioners.ByTime(partitioners.translated(pattern), zone, duration_ms, extract)
    except ValueError as error:
        raise ConnectError(f"path.format: {error}") from None


def definitions(*, for_hdfs: bool) -> ConfigDef:
    found = ConfigDef()
    if for_hdfs:
        found.define(
            "hdfs.url",
            "STRING",
            importance="HIGH",
            doc="A folder, file:///…, or s3://bucket/….",
            validator=non_empty(),
        )
        found.define("logs.dir", "STRING", "logs", "LOW", "Not needed here: names tell the offsets.")
    else:
        found.define("s3.bucket.name", "STRING", importance="HIGH", doc="The bucket.", validator=non_empty())
        found.define(
            "storage.class", "STRING", "io.confluent.connect.s3.storage.S3Storage", "LOW", "Always S3."
        )
    found.define(
        "format.class",
        "CLASS",
        importance="HIGH",
        doc="The format of files: Parquet, Avro, Json, Csv, String, ByteArray.",
    )
    found.define(
        "flush.size",
        "INT",
        importance="HIGH",
        doc="How many records a group of files has.",
        validator=at_least(1),
    )
    found.define(
        "rotate.interval.ms", "LONG", -1, "HIGH", "The span of record timestamps in a file; -1: none."
    )
    found.define(
        "rotate.schedule.interval.ms", "LONG", -1, "MEDIUM", "Close files by the wall clock; -1: never."
    )
    found.define(
        "rotate.file.on.partition.change",
        "BOOLEAN",
        True,
        "LOW",
        "With rotate.interval.ms: another folder closes files.",
    )
    found.define(
        "partitioner.class",
        "CLASS",
        "io.confluent.connect.storage.partitioner.DefaultPartitioner",
        "HIGH",
        "Which folder a record goes to.",
    )
    found.define("partition.field.name", "LIST", [], "MEDIUM", "Fields of FieldPartitioner.")
    found.define(
        "path.format", "STRING", "", "MEDIUM", "Folders of TimeBasedPartitioner: 'year'=YYYY/'month'=MM."
    )
    found.define("partition.duration.ms", "LONG", -1, "MEDIUM", "The period of TimeBasedPartitioner.")
    found.define("locale", "STRING", "", "LOW", "Accepted; folders have numbers only.")
    found.define("timezone", "STRING", "UTC", "MEDIUM", "The zone of folders and schedules.")
    found.define("timestamp.extractor", "STRING", "Wallclock", "MEDIUM", "Wallclock, Record or RecordField.")
    found.define("timestamp.field", "STRING", "timestamp", "MEDIUM", "The field of RecordField.")
    found.define("topics.dir", "STRING", "topics", "HIGH", "The first folder.", validator=non_empty())
    found.define("file.delim", "STRING", "+", "LOW", "Between the parts of a name.", validator=non_empty())
    found.define(
        "filename.offset.zero.pad.width",
        "INT",
        10,
        "LOW",
        "Digits of offsets in names.",
        validator=at_least(0),
    )
    found.define(
        "parquet.codec",
        "STRING",
        "snappy",
        "LOW",
        "The codec of Parquet.",
        validator=one_of("none", "snappy", "gzip", "zstd", "lz4", "brotli"),
    )
    found.define(
        "avro.codec",
        "STRING",
        "null",
        "LOW",
        "The codec of Avro.",
        validator=one_of("null", "deflate", "snappy", "bzip2"),
    )
    found.define(
        "s3.compression.type",
        "STRING",
        "none",
        "LOW",
        "gzip packs JSON, CSV, text and bytes.",
        validator=one_of("none", "gzip"),
    )
    found.define(
        "behavior.on.null.values",
        "STRING",
        "fail",
        "LOW",
        "Records without a value: fail or ignore.",
        validator=one_of("fail", "ignore"),
    )
    found.define(
        "schema.compatibility", "STRING", "NONE", "HIGH",
        "NONE: every change of schema closes files; others fit records of another version to the open file.",
        validator=one_of_any_case(*LEVELS),
    )  # fmt: skip
    for part in (KEYS, HEADERS):
        found.define(f"store.kafka.{part}", "BOOLEAN", False, "LOW", f"Store {part} of records, too.")
        found.define(f"{part}.format.class", "CLASS", None, "LOW", f"The format of {part}.")
    return define_store(found)


def define_store(found: ConfigDef, *, has_part_size: bool = True) -> ConfigDef:
    """Where an object store is, and the key to it."""
    found.define("s3.region", "STRING", "us-west-2", "MEDIUM", "The region.")
    if has_part_size:
        found.define("s3.part.size", "INT", 26214400, "HIGH", "Bytes of a part of an upload.",
                     validator=at_least(5 << 20))  # fmt: skip
    found.define("store.url", "STRING", "", "LOW", "The address of a store that is not Amazon's.")
    found.define("s3.path.style.access.enabled", "BOOLEAN", True, "LOW", "The bucket is in the path.")
    found.define("aws.access.key.id", "STRING", "", "HIGH", "The id of the key; else from the environment.")
    return found.define("aws.secret.access.key", "PASSWORD", None, "HIGH", "The key.")
