"""Settings of the objects sources: Confluent's names, and what they mean together."""

from __future__ import annotations

import re
from dataclasses import dataclass

from barnabas.connect.config import ConfigDef, Settings, at_least, non_empty, one_of_any_case
from barnabas.connect.connectors.objects.formats import EXTENSIONS, Format
from barnabas.connect.connectors.objects.object_settings import (
    HEADERS,
    KEYS,
    define_bytes,
    define_hdfs,
    define_store,
    format_of,
    storage_of,
)
from barnabas.connect.connectors.objects.storage import Storage
from barnabas.connect.plugins import ConnectError


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The objects to read, and how to read them."""

    storage: Storage
    form: Format
    parts: dict[str, Format]  # formats of keys and headers
    topics_dir: str
    name: re.Pattern[str]  # of files that the sink wrote
    generic: tuple[tuple[str, re.Pattern[str]], ...]  # topics and the files that go there; empty: restore
    batch: int
    interval_s: float
    since_ms: int  # files that were written before are not read
    skips_errors: bool
    keeps_partitions: bool


def definitions(*, for_hdfs: bool) -> ConfigDef:
    found = ConfigDef()
    if for_hdfs:
        define_hdfs(found)
    else:
        found.define("s3.bucket.name", "STRING", importance="HIGH", doc="The bucket.", validator=non_empty())
    (
        found.define("mode", "STRING", "RESTORE_BACKUP", "HIGH",
                     "RESTORE_BACKUP reads what the sink wrote; GENERIC reads files by topic.regex.list.",
                     validator=one_of_any_case("RESTORE_BACKUP", "GENERIC"))
        .define("format.class", "CLASS", importance="HIGH", doc="The format of files.")
        .define("keys.format.class", "CLASS", None, "LOW", "The format of keys; none: that of values.")
        .define("headers.format.class", "CLASS", None, "LOW", "The format of headers; none: that of values.")
        .define("topics.dir", "STRING", "topics", "MEDIUM", "The first folder.", validator=non_empty())
        .define("file.delim", "STRING", "+", "LOW", "Between the parts of a name.", validator=non_empty())
        .define("topic.regex.list", "LIST", "", "MEDIUM", "GENERIC: topic:expression, several.")
        .define("s3.poll.interval.ms", "LONG", 60_000, "MEDIUM", "Between two looks for new files.",
                validator=at_least(1))
        .define("record.batch.max.size", "INT", 200, "MEDIUM", "Records of one poll.", validator=at_least(1))
        .define("file.discovery.starting.timestamp", "LONG", 0, "LOW",
                "Files that were written before this time (milliseconds) are not read.",
                validator=at_least(0))
        .define("behavior.on.error", "STRING", "fail", "LOW", "Files that cannot be read: fail or ignore.",
                validator=one_of_any_case("fail", "ignore"))
        .define("barnabas.keep.partitions", "BOOLEAN", True, "LOW",
                "RESTORE_BACKUP: records go to the partition that they came from.")
        .without_effect(
            {
                "parquet.codec": ("snappy", "files tell it"),
                "avro.codec": ("null", "files tell it"),
                "s3.compression.type": ("none", "names of files tell it"),
                "s3.part.size": ("26214400", "files are read in pieces of 1 MB"),
            }
        )
    )  # fmt: skip
    define_bytes(found)
    return define_store(found, has_part_size=False)


def plan_of(settings: Settings) -> SourcePlan:
    is_generic = settings.text("mode").upper() == "GENERIC"
    form, delim = format_of(settings), re.escape(settings.text("file.delim"))
    generic = []
    for each in settings.entries("topic.regex.list"):
        topic, colon, text = each.partition(":")
        try:
            if not (colon and topic and text):
                raise re.error("write topic:expression")
            generic.append((topic, re.compile(text)))
        except re.error as error:
            raise ConnectError(
                f"topic.regex.list: {each!r} is no pair of topic and expression: {error}"
            ) from None
    if is_generic and not generic:
        raise ConnectError("topic.regex.list is needed with mode=GENERIC: topic:expression")
    extension = re.escape(form.own_extension or EXTENSIONS[form.name])
    return SourcePlan(
        storage=storage_of(settings),
        form=form,
        parts={part: format_of(settings, f"{part}.format.class") for part in (KEYS, HEADERS)},
        topics_dir=settings.text("topics.dir").strip("/"),
        name=re.compile(
            rf"(?P<topic>.+?){delim}(?P<partition>\d+){delim}(?P<start>\d+)(?:{delim}\d+)?"
            rf"(?:\.\w+)?{extension}(?:\.gz)?"
        ),
        generic=tuple(generic) if is_generic else (),
        batch=settings.integer("record.batch.max.size"),
        interval_s=settings.integer("s3.poll.interval.ms") / 1000,
        since_ms=settings.integer("file.discovery.starting.timestamp"),
        skips_errors=settings.text("behavior.on.error").lower() == "ignore",
        keeps_partitions=settings.flag("barnabas.keep.partitions") and not is_generic,
    )
