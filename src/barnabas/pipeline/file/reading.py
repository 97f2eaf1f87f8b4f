"""`pipeline.yaml` becomes a pipeline; everything that is wrong with it is said at once.

In: a file. Out: a `Pipeline`, or `FileProblems` with line, name and hint of each. Spark is not needed for it.
Does not know: what runs. The names of the file are explained in docs/pipelines.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, ScalarNode

from barnabas.pipeline.engine.secrets import Text, is_literal_secret, text
from barnabas.pipeline.engine.spark_settings import SparkPart
from barnabas.pipeline.file.checks import problems_of
from barnabas.pipeline.file.document import Document, Part
from barnabas.pipeline.file.problems import FileProblems, Problem, meant, with_lines
from barnabas.pipeline.file.reading_rules import read_rule
from barnabas.pipeline.lake.tables import Zone
from barnabas.pipeline.spec import durations, model
from barnabas.pipeline.spec.model import (
    Drift,
    FileKind,
    FilesSource,
    Format,
    Frequency,
    Maintenance,
    Pipeline,
    Refined,
    Refresh,
    Schema,
    Serving,
    Source,
    Staging,
    TableMode,
    TableSource,
    TopicSource,
    Trusted,
    View,
)

__all__ = ["FileProblems", "Problem", "pipeline_from", "read_pipeline", "read_text"]

KINDS = ("topic", "table", "files")
KEEP_SECRETS_OUT = "write ${env:NAME} or ${file:/path}: secrets do not belong into the file"


def read_pipeline(path: str | Path) -> Pipeline:
    """FileProblems says everything that is wrong."""
    file = Path(path).absolute()
    try:
        content = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise FileProblems([Problem("file", f"cannot be read: {error}")], file) from None
    return read_text(content, file)


def pipeline_from(document: Mapping[str, Any]) -> Pipeline:
    """The opposite of `writing.document`."""
    return read_text(yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True), None)


def read_text(content: str, file: Path | None = None) -> Pipeline:
    document = Document()
    root = document.root(content)
    if root is None:
        raise FileProblems(document.problems, file)
    pipeline = read_root(root, file)
    found = with_lines(problems_of(pipeline), document.lines)
    # What could not be read would only be reported a second time as missing.
    read_wrong = {each.path for each in document.problems}
    found = [each for each in found if not within(each.path, read_wrong)]
    if document.problems or found:
        raise FileProblems([*document.problems, *found], file)
    return pipeline


def within(path: str, parts: set[str]) -> bool:
    return any(path == part or path.startswith((f"{part}.", f"{part}[")) for part in parts)


def read_root(root: Part, file: Path | None) -> Pipeline:
    pipeline = Pipeline(
        name=root.text("name", required=True, hint="a short name: letters, digits, _"),
        lake=root.text("lake", required=True, hint="a folder or URL, as in ./lake"),
        spark=read_spark(root),
        sources=tuple(read_source(name, part, file) for name, part in root.parts("sources")),
        staging=tuple(read_staging(name, part) for name, part in root.parts("staging")),
        trusted=tuple(read_trusted(name, part) for name, part in root.parts("trusted")),
        refined=tuple(read_refined(name, part) for name, part in root.parts("refined")),
        views=tuple(read_view(name, part) for name, part in root.parts("views")),
        serving=read_serving(root),
        retention_s=read_retention(root),
        maintenance=read_maintenance(root),
        file=file,
    )
    if "sources" not in root:
        root.wrong("sources", "is missing", "name at least one source")
    root.finish()
    return pipeline


def read_spark(root: Part) -> SparkPart:
    part = root.part("spark")
    if part is None:
        return SparkPart()
    found = SparkPart(part.text("master", "local[*]"), part.text("remote"), part.settings("settings"))
    part.finish()
    return found


# -- sources ----------------------------------------------------------------------------------------


def read_source(name: str, part: Part, file: Path | None) -> Source:
    kinds = [kind for kind in KINDS if kind in part]
    if len(kinds) != 1:
        said = f"has {' and '.join(kinds)}" if kinds else "says not where rows come from"
        close = [meant(each, KINDS) for each in part.values if meant(each, KINDS).startswith("did you")]
        part.wrong("", said, close[0] if close else f"give exactly one of {', '.join(KINDS)}")
    common: dict[str, Any] = {
        "name": name,
        "format": part.choice("format", Format, Format.JSON),
        "schema": read_schema(part, file),
        "event_time": part.text("event_time"),
        "lateness_s": part.read("lateness", durations.seconds, None),
        "bandwidth_bytes_s": part.read("bandwidth", durations.bytes_per_second, None),
        "changes": part.text("changes"),
        "rows_per_batch_max": part.number("rows_per_batch", None, 1),
    }
    kind = kinds[0] if kinds else "files"
    default = {"topic": model.REAL_TIME, "table": model.EVERY_MINUTE, "files": model.EVERY_TEN_SECONDS}[kind]
    common["frequency"] = read_frequency(part, default)
    inner = part.part(kind)
    for other in kinds[1:]:
        part.part(other)
    part.finish(KINDS)
    if inner is None:
        return FilesSource(path="", **common)
    readers = {"topic": read_topic, "table": read_table, "files": read_files}
    found = readers[kind](inner, common)
    inner.finish()
    return found


def secret(part: Part, name: str, default: str = "", *, required: bool = False) -> Text:
    """A text that may refer to secrets, and must where it is one."""
    value = part.text(name, default, required=required)
    if is_literal_secret(name, value):
        part.wrong(name, "holds a secret", KEEP_SECRETS_OUT)
    return text(value)


def secrets(part: Part, name: str) -> dict[str, Text]:
    found = part.settings(name)
    for key, value in found.items():
        if is_literal_secret(key, value):
            part.wrong(name, f"{key} holds a secret", KEEP_SECRETS_OUT)
    return {key: text(value) for key, value in found.items()}


def read_topic(part: Part, common: dict[str, Any]) -> Source:
    servers = "bootstrap_servers" if "bootstrap_servers" in part else "bootstrap.servers"
    return TopicSource(
        bootstrap_servers=secret(part, servers, required=True),
        subscribe=part.text("subscribe"),
        pattern=part.text("pattern"),
        starting=part.text("starting", "earliest"),
        settings=secrets(part, "settings"),
        **common,
    )


def read_table(part: Part, common: dict[str, Any]) -> Source:
    return TableSource(
        url=secret(part, "url", required=True),
        table=part.text("table", required=True),
        user=secret(part, "user"),
        password=secret(part, "password"),
        mode=part.choice("mode", TableMode, TableMode.SNAPSHOT),
        incrementing=part.text("incrementing"),
        timestamp=part.text("timestamp"),
        snapshot_below=part.number("snapshot_below", model.SNAPSHOT_BELOW),
        settings=secrets(part, "settings"),
        **common,
    )


def read_files(part: Part, common: dict[str, Any]) -> Source:
    return FilesSource(
        path=part.text("path", required=True, hint="a folder, a file or a URL"),
        kind=part.choice("kind", FileKind, FileKind.JSON),
        pattern=part.text("pattern"),
        recursive=part.flag("recursive", True),
        settings=part.settings("settings"),
        **common,
    )


def read_frequency(part: Part, default: Frequency) -> Frequency:
    node = part.node_of("frequency")
    if node is None:
        return default
    if isinstance(node, ScalarNode):
        word = str(node.value)
        if word == model.Pace.REAL_TIME:
            return model.REAL_TIME
        hint = 'real_time, {near_real_time: 1 minute} or {batch: "0 2 * * *"}'
        part.wrong("frequency", f"is {word!r}", hint)
        return default
    inner = part.part("frequency")
    if inner is None:
        return default
    if len(inner.values) != 1:
        part.wrong("frequency", "must be one of near_real_time and batch")
    found = default
    if "near_real_time" in inner:
        found = model.every(inner.read("near_real_time", durations.seconds, 60.0))
    elif "batch" in inner:
        found = model.on_schedule(inner.text("batch"))
    inner.finish(("near_real_time", "batch"))
    return found


def read_schema(part: Part, file: Path | None) -> Schema:
    node = part.node_of("schema")
    if node is None:
        return Schema()
    if isinstance(node, ScalarNode):
        return Schema(infer_samples=1000) if node.value == "infer" else Schema(ddl=str(node.value))
    inner = part.part("schema")
    if inner is None:
        return Schema()
    found = Schema()
    if "infer" in inner:
        samples = inner.part("infer")
        found = Schema(infer_samples=samples.number("samples", 1000, 1, 1_000_000) if samples else 1000)
        if samples:
            samples.finish()
    elif "avro" in inner:
        found = Schema(avro=read_avro(inner, file))
    elif "protobuf" in inner:
        path = beside(file, inner.text("protobuf"))
        if not path.exists():
            inner.wrong("protobuf", f"{path} is not there", "make it with protoc --descriptor_set_out")
        found = Schema(protobuf=str(path), message=inner.text("message", required=True))
    else:
        found = Schema(ddl=inner.text("ddl", required=True, hint="or avro, protobuf, infer"))
    inner.finish(("ddl", "avro", "protobuf", "infer"))
    return found


def read_avro(part: Part, file: Path | None) -> str:
    node = part.node_of("avro")
    if isinstance(node, MappingNode):
        from barnabas.pipeline.file.document import plain

        return json.dumps(plain(node))
    written = part.text("avro")
    if written.lstrip().startswith(("{", "[", '"')):
        return written
    path = beside(file, written)
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        part.wrong("avro", f"is neither a schema in JSON nor a file that can be read: {error}")
        return ""


def beside(file: Path | None, path: str) -> Path:
    return (file.parent if file is not None else Path.cwd()) / Path(path).expanduser()


# -- zones and views --------------------------------------------------------------------------------


def read_staging(name: str, part: Part) -> Staging:
    found = Staging(
        name=name,
        source=part.text("source", name),
        key=part.texts("key"),
        drift=part.choice("drift", Drift, Drift.RESCUE),
    )
    part.finish()
    return found


def read_trusted(name: str, part: Part) -> Trusted:
    # A rule that cannot be read leaves its place: those behind it keep their numbers.
    rules = [
        read_rule(each) or model.expression("true", f"unreadable {index}")
        for index, each in enumerate(part.items("rules"))
    ]
    found = Trusted(
        name=name,
        staging=part.text("from", name).removeprefix("staging."),
        rules=tuple(rules),
        mask=part.settings("mask"),
        hash=part.texts("hash"),
        salt=text(part.text("salt")),
    )
    if is_literal_secret("secret", part.text("salt")):
        part.wrong("salt", "holds a secret", KEEP_SECRETS_OUT)
    part.finish()
    return found


def read_refined(name: str, part: Part) -> Refined:
    found = Refined(
        name=name,
        sql=part.text("sql"),
        python=part.text("python"),
        inputs=part.texts("inputs"),
        refresh=part.choice("refresh", Refresh, Refresh.AUTO),
        schedule=part.text("schedule"),
    )
    part.finish()
    return found


def read_view(name: str, part: Part) -> View:
    found = View(
        name=name,
        source=part.text("from", required=True, hint="trusted.NAME or refined.NAME"),
        sql=part.text("sql", required=True),
        keys=part.texts("keys"),
        measures=part.settings("measures"),
        batch=part.text("batch"),
        settings=part.settings("settings"),
    )
    part.finish()
    return found


def read_serving(root: Part) -> Serving:
    part = root.part("serving")
    if part is None:
        return Serving()
    found = Serving(
        store=secret(part, "store", "duckdb"),
        host=part.text("host", "127.0.0.1"),
        port=part.number("port", 8088, 0, 65535),
        token=secret(part, "token"),
        keep_horizons=part.number("keep_horizons", 3, 1, 10_000),
    )
    part.finish()
    return found


def read_retention(root: Part) -> dict[str, float]:
    part = root.part("retention")
    if part is None:
        return {}
    found = {zone: part.read(zone, durations.seconds, 0.0) for zone in Zone}
    part.finish()
    return {str(zone): value for zone, value in found.items() if value}


def read_maintenance(root: Part) -> Maintenance:
    part = root.part("maintenance")
    if part is None:
        return Maintenance()
    found = Maintenance(
        compact=part.text("compact"),
        vacuum_s=part.read("vacuum", durations.seconds, Maintenance().vacuum_s),
        file_bytes_target=part.read("file_size", durations.size_bytes, Maintenance().file_bytes_target),
    )
    part.finish()
    return found
