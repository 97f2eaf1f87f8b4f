"""Settings of the objects sinks: Confluent's names, and what they mean together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from barnabas.connect.config import ConfigDef, Settings, at_least, between, non_empty, one_of, one_of_any_case
from barnabas.connect.connectors.objects import partitioners
from barnabas.connect.connectors.objects.compatibility import LEVELS
from barnabas.connect.connectors.objects.cutting import Rules
from barnabas.connect.connectors.objects.formats import Format
from barnabas.connect.connectors.objects.hdfs_address import is_hdfs, place_of
from barnabas.connect.connectors.objects.hdfs_kerberos import Negotiate
from barnabas.connect.connectors.objects.hdfs_storage import HdfsStorage
from barnabas.connect.connectors.objects.storage import RETRIES, Storage, storage_at
from barnabas.connect.connectors.stores.http_client import tls_properties
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
WITHOUT_EFFECT = {
    "locale": (None, "folders have numbers only"),
    "shutdown.timeout.ms": ("3000", "the worker's task.shutdown.graceful.timeout.ms counts"),
    "partitioner.max.open.files": ("-1", "open files beyond 8 MB lie on the disk"),
}
REFUSED = {
    "directory.delim": ("/", "folders are divided by / only"),
}
S3_WITHOUT_EFFECT = {
    "hdfs.namenode.principal": (None, "the namenode is HTTP@host"),
    "kerberos.ticket.renew.period.ms": ("3600000", "tickets are renewed when they expire"),
    "storage.class": ("io.confluent.connect.s3.storage.S3Storage", "it is always S3"),
    "s3.credentials.provider.class": (
        "com.amazonaws.auth.DefaultAWSCredentialsProviderChain",
        "classes of Java are not loaded; keys come from aws.access.key.id or the environment",
    ),
    "enable.conditional.writes": ("true", "a file that is written again replaces itself"),
    "s3.elastic.buffer.enable": ("false", "open files beyond 8 MB lie on the disk"),
    "s3.http.send.expect.continue": ("true", "requests are sent without it"),
}
S3_REFUSED = {
    "s3.acl.canned": (None, "access control lists are not set: give rights by the policy of the bucket"),
    "s3.sse.customer.key": (None, "keys of customers are not built: take s3.ssea.name=aws:kms"),
    "s3.object.tagging": ("false", "objects get no tags"),
    "s3.proxy.url": (None, "proxies are not built"),
    "s3.wan.mode": ("false", "accelerated endpoints are not built: set store.url"),
}
HDFS_WITHOUT_EFFECT = {
    "logs.dir": ("logs", "names of files tell the offsets"),
    "hadoop.home": (None, "HDFS is reached over HTTP"),
    "storage.class": ("io.confluent.connect.hdfs.storage.HdfsStorage", "hdfs.url decides"),
}
HDFS_REFUSED = {
    "hive.integration": ("false", "tables of Hive are not made"),
}


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
    tombstones: str  # their folder
    extract_of_tombstones: partitioners.Extractor
    schedule_ms: int
    zone: tzinfo
    backoff_ms: int

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
    own = settings.text("format.bytearray.extension") if found == "bytearray" else ""
    if own and not re.fullmatch(r"\.[\w.-]+", own):
        raise ConnectError(f"format.bytearray.extension {own!r} must be a dot and letters, as .bin")
    separator = settings.raw.get("format.bytearray.separator")  # line ends and blanks count
    return Format(
        found,
        settings.text(codec) if codec else "",
        gzipped,
        settings.integer("s3.compression.level") if "s3.compression.level" in settings else -1,
        "json.decimal.format" in settings and settings.text("json.decimal.format").upper() == "NUMERIC",
        own,
        b"\n" if separator is None else separator.encode(),
    )


def layout_of(settings: Settings) -> Layout:
    zone = zone_of(settings.text("timezone") or "UTC")
    extract = extractor_of(settings)
    field = isinstance(extract, partitioners.FieldTime)  # which tombstones do not have
    on_null = settings.text("behavior.on.null.values")
    if on_null == "write" and not settings.flag("store.kafka.keys"):
        raise ConnectError("behavior.on.null.values=write needs store.kafka.keys=true: it stores keys")
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
        and on_null != "write"
        and simple(settings.text("partitioner.class")) == "DefaultPartitioner",
        on_null=on_null,
        tombstones=settings.text("tombstone.encoded.partition"),
        extract_of_tombstones=partitioners.record_time if field else extract,
        schedule_ms=settings.integer("rotate.schedule.interval.ms"),
        zone=zone,
        backoff_ms=settings.integer("retry.backoff.ms"),
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
    url = url_of(settings)
    if is_hdfs(url):
        place = place_of(
            url,
            settings.entries("barnabas.webhdfs.url"),
            settings.text("hadoop.conf.dir"),
            settings.text("barnabas.hdfs.user"),
        )
        return HdfsStorage(place, tls_properties(settings, "barnabas.webhdfs.ssl."), login_of(settings))
    return storage_at(url, access, part_bytes, encryption_of(settings), retries_of(settings))


def login_of(settings: Settings) -> Negotiate | None:
    """The login at a cluster with Kerberos."""
    if not settings.flag("hdfs.authentication.kerberos"):
        return None
    if settings.text("barnabas.hdfs.user"):
        raise ConnectError(
            "barnabas.hdfs.user has no place beside Kerberos: connect.hdfs.principal is the user"
        )
    return Negotiate(settings.text("connect.hdfs.principal"), settings.text("connect.hdfs.keytab"))


def url_of(settings: Settings) -> str:
    """The address of the files. `store.url` is the newer name of `hdfs.url`, and for buckets the address of
    their store."""
    if "hdfs.url" not in settings:
        return f"s3://{settings.text('s3.bucket.name')}"
    url = settings.text("hdfs.url") or settings.text("store.url")
    if not url:
        raise ConnectError("hdfs.url is needed: hdfs://host:port, a folder, or s3://bucket")
    return url


def encryption_of(settings: Settings) -> dict[str, str]:
    """How the store encrypts objects, in the words of its client."""
    if "s3.ssea.name" not in settings:
        return {}
    name, key = settings.text("s3.ssea.name"), settings.text("s3.sse.kms.key.id")
    if key and not name.startswith("aws:kms"):
        raise ConnectError("s3.sse.kms.key.id needs s3.ssea.name=aws:kms")
    found = {"aws_server_side_encryption": name, "aws_sse_kms_key_id": key}
    return {each: value for each, value in found.items() if value}


def retries_of(settings: Settings) -> tuple[int, float]:
    """How often a request to the store is sent again, and seconds before the first time."""
    if "s3.part.retries" not in settings:
        return RETRIES
    return settings.integer("s3.part.retries"), settings.integer("s3.retry.backoff.ms") / 1000


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
    fixed_ms = {"DailyPartitioner": 86_400_000, "HourlyPartitioner": 3_600_000}
    duration_ms = fixed_ms.get(name) or settings.integer("partition.duration.ms")
    if not pattern or duration_ms <= 0:
        raise ConnectError("TimeBasedPartitioner needs path.format and partition.duration.ms > 0")
    try:
        return partitioners.ByTime(partitioners.translated(pattern), zone, duration_ms, extract)
    except ValueError as error:
        raise ConnectError(f"path.format: {error}") from None


def definitions(*, for_hdfs: bool) -> ConfigDef:
    found = ConfigDef()
    if for_hdfs:
        define_hdfs(found)
        found.without_effect(HDFS_WITHOUT_EFFECT).refused(HDFS_REFUSED)
    else:
        found.define("s3.bucket.name", "STRING", importance="HIGH", doc="The bucket.", validator=non_empty())
        found.without_effect(S3_WITHOUT_EFFECT).refused(S3_REFUSED)
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
    found.without_effect(WITHOUT_EFFECT).refused(REFUSED)
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
    found.define("s3.compression.level", "INT", -1, "LOW", "The level of gzip; -1: its default.",
                 validator=between(-1, 9))  # fmt: skip
    found.define("json.decimal.format", "STRING", "BASE64", "MEDIUM",
                 "Decimals in JSON: BASE64 (the unscaled number) or NUMERIC.",
                 validator=one_of_any_case("BASE64", "NUMERIC"))  # fmt: skip
    define_bytes(found)
    found.define("retry.backoff.ms", "LONG", 5000, "LOW", "The pause before files are written again.",
                 validator=at_least(0))  # fmt: skip
    found.define(
        "behavior.on.null.values",
        "STRING",
        "fail",
        "LOW",
        "Records without a value: fail, ignore, or write their keys.",
        validator=one_of("fail", "ignore", "write"),
    )
    found.define("tombstone.encoded.partition", "STRING", "tombstone", "LOW",
                 "The folder of the keys of records without a value.", validator=non_empty())  # fmt: skip
    found.define(
        "schema.compatibility", "STRING", "NONE", "HIGH",
        "NONE: every change of schema closes files; others fit records of another version to the open file.",
        validator=one_of_any_case(*LEVELS),
    )  # fmt: skip
    for part in (KEYS, HEADERS):
        found.define(f"store.kafka.{part}", "BOOLEAN", False, "LOW", f"Store {part} of records, too.")
        found.define(f"{part}.format.class", "CLASS", None, "LOW", f"The format of {part}.")
    return define_store(found)


def define_bytes(found: ConfigDef) -> ConfigDef:
    """The format ByteArray."""
    return found.define(
        "format.bytearray.extension", "STRING", ".bin", "LOW", "Names of files of bytes."
    ).define(
        "format.bytearray.separator", "STRING", None, "LOW", "Behind each record of bytes; none: a line end."
    )


def define_hdfs(found: ConfigDef) -> ConfigDef:
    """The address of an HDFS."""
    found.define(
        "hdfs.url", "STRING", "", "HIGH",
        "hdfs://host:port/…, webhdfs://…, swebhdfs://…, a folder, file:///…, or s3://bucket/….",
    )  # fmt: skip
    found.define("hadoop.conf.dir", "STRING", "", "HIGH", "The folder of core-site.xml and hdfs-site.xml.")
    found.define(
        "barnabas.webhdfs.url", "LIST", [], "MEDIUM",
        "HTTP addresses of namenodes, or of HttpFS; none: port 9870, or as hdfs-site.xml tells.",
    )  # fmt: skip
    found.define("hdfs.authentication.kerberos", "BOOLEAN", False, "HIGH", "Log in with Kerberos.")
    found.define(
        "connect.hdfs.principal", "STRING", "", "HIGH",
        "The principal, with _HOST for this host's name; none: that of the ticket cache.",
    )  # fmt: skip
    found.define("connect.hdfs.keytab", "STRING", "", "HIGH", "Its key table; none: the ticket cache.")
    return found.define(
        "barnabas.hdfs.user",
        "STRING",
        "",
        "MEDIUM",
        "The user in HDFS; none: HADOOP_USER_NAME, or the worker's.",
    )


def define_store(found: ConfigDef, *, has_part_size: bool = True) -> ConfigDef:
    """The address of an object store, and its credentials."""
    found.define("s3.region", "STRING", "us-west-2", "MEDIUM", "The region.")
    if has_part_size:
        found.define("s3.part.size", "INT", 26214400, "HIGH", "Bytes of a part of an upload.",
                     validator=at_least(5 << 20))  # fmt: skip
        found.define("s3.ssea.name", "STRING", "", "LOW", "How the store encrypts: AES256, aws:kms.",
                     validator=one_of("", "AES256", "aws:kms", "aws:kms:dsse"))  # fmt: skip
        found.define("s3.sse.kms.key.id", "STRING", "", "LOW", "The key of KMS; none: that of the bucket.")
        found.define("s3.part.retries", "INT", 3, "MEDIUM", "How often a request is sent again.",
                     validator=between(0, 100))  # fmt: skip
        found.define("s3.retry.backoff.ms", "LONG", 200, "LOW", "The pause before the first of them.",
                     validator=at_least(0))  # fmt: skip
    found.define("store.url", "STRING", "", "LOW", "The address of a store that is not Amazon's.")
    found.define("s3.path.style.access.enabled", "BOOLEAN", True, "LOW", "The bucket is in the path.")
    found.define("aws.access.key.id", "STRING", "", "HIGH", "The id of the key; else from the environment.")
    return found.define("aws.secret.access.key", "PASSWORD", None, "HIGH", "The key.")
