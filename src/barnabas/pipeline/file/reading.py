"""Reads `pipeline.yaml`; reports all problems at once.

In: a file. Out: a `Pipeline`, or `FileProblems` with line, name and hint of each. Needs no Spark.
docs/pipelines.md explains the names of the file. Does not know: what runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, ScalarNode

from barnabas.engine.secrets import Text, is_literal_secret, text
from barnabas.engine.spark_settings import SparkSettings
from barnabas.pipeline.file.checks import problems_of
from barnabas.pipeline.file.document import Document, Section
from barnabas.pipeline.file.problems import FileProblems, Problem, did_you_mean, with_lines
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
KEEP_SECRETS_OUT = "write ${env:NAME}, ${file:/path} or ${file:/path:key}: the file must not hold secrets"


def read_pipeline(path: str | Path) -> Pipeline:
    """Read a file. FileProblems lists everything that is wrong."""
    file = Path(path).absolute()
    try:
        content = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise FileProblems([Problem("file", f"cannot be read: {error}")], file) from None
    return read_text(content, file)


def pipeline_from(document: Mapping[str, Any]) -> Pipeline:
    """The pipeline of a document, as `writing.document` makes it."""
    return read_text(yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True), None)


def read_text(content: str, file: Path | None = None) -> Pipeline:
    document = Document()
    root = document.root(content)
    if root is None:
        raise FileProblems(document.problems, file)
    pipeline = read_root(root, file)
    found = with_lines(problems_of(pipeline), document.lines)
    # A section that could not be read would be reported again as missing.
    read_wrong = {each.path for each in document.problems}
    found = [each for each in found if not within(each.path, read_wrong)]
    if document.problems or found:
        raise FileProblems([*document.problems, *found], file)
    return pipeline


def within(path: str, sections: set[str]) -> bool:
    return any(path == section or path.startswith((f"{section}.", f"{section}[")) for section in sections)


def read_root(root: Section, file: Path | None) -> Pipeline:
    pipeline = Pipeline(
        name=root.text("name", required=True, hint="a short name: letters, digits, _"),
        lake=root.text("lake", required=True, hint="a folder or URL, as in ./lake"),
        spark=read_spark(root),
        sources=tuple(read_source(name, section, file) for name, section in root.sections("sources")),
        staging=tuple(read_staging(name, section) for name, section in root.sections("staging")),
        trusted=tuple(read_trusted(name, section) for name, section in root.sections("trusted")),
        refined=tuple(read_refined(name, section) for name, section in root.sections("refined")),
        views=tuple(read_view(name, section) for name, section in root.sections("views")),
        serving=read_serving(root),
        retention_s=read_retention(root),
        maintenance=read_maintenance(root),
        file=file,
    )
    if "sources" not in root:
        root.wrong("sources", "is missing", "name at least one source")
    root.finish()
    return pipeline


def read_spark(root: Section) -> SparkSettings:
    section = root.section("spark")
    if section is None:
        return SparkSettings()
    found = SparkSettings(
        section.text("master", "local[*]"), section.text("remote"), secrets(section, "settings")
    )
    section.finish()
    return found


# -- sources ----------------------------------------------------------------------------------------


def read_source(name: str, section: Section, file: Path | None) -> Source:
    kinds = [kind for kind in KINDS if kind in section]
    if len(kinds) != 1:
        said = f"has {' and '.join(kinds)}" if kinds else "has no place to read from"
        close = [
            did_you_mean(each, KINDS)
            for each in section.values
            if did_you_mean(each, KINDS).startswith("did you")
        ]
        section.wrong("", said, close[0] if close else f"give exactly one of {', '.join(KINDS)}")
    common: dict[str, Any] = {
        "name": name,
        "format": section.choice("format", Format, Format.JSON),
        "schema": read_schema(section, file),
        "event_time": section.text("event_time"),
        "lateness_s": section.read("lateness", durations.seconds, None),
        "bandwidth_bytes_s": section.read("bandwidth", durations.bytes_per_second, None),
        "changes": section.text("changes"),
        "rows_per_batch_max": section.number("rows_per_batch", None, 1),
    }
    kind = kinds[0] if kinds else "files"
    default = {"topic": model.REAL_TIME, "table": model.EVERY_MINUTE, "files": model.EVERY_TEN_SECONDS}[kind]
    common["frequency"] = read_frequency(section, default)
    inner = section.section(kind)
    for other in kinds[1:]:
        section.section(other)
    section.finish(KINDS)
    if inner is None:
        return FilesSource(path="", **common)
    readers = {"topic": read_topic, "table": read_table, "files": read_files}
    found = readers[kind](inner, common)
    inner.finish()
    return found


def secret(section: Section, name: str, default: str = "", *, required: bool = False) -> Text:
    """A text that may refer to secrets. A literal secret is a problem."""
    value = section.text(name, default, required=required)
    if is_literal_secret(name, value):
        section.wrong(name, "holds a secret", KEEP_SECRETS_OUT)
    return text(value)


def secrets(section: Section, name: str) -> dict[str, Text]:
    found = section.settings(name)
    for key, value in found.items():
        if is_literal_secret(key, value):
            section.wrong(name, f"{key} holds a secret", KEEP_SECRETS_OUT)
    return {key: text(value) for key, value in found.items()}


def read_topic(section: Section, common: dict[str, Any]) -> Source:
    servers = "bootstrap_servers" if "bootstrap_servers" in section else "bootstrap.servers"
    return TopicSource(
        bootstrap_servers=secret(section, servers, required=True),
        subscribe=section.text("subscribe"),
        pattern=section.text("pattern"),
        starting=section.text("starting", "earliest"),
        settings=secrets(section, "settings"),
        **common,
    )


def read_table(section: Section, common: dict[str, Any]) -> Source:
    return TableSource(
        url=secret(section, "url", required=True),
        table=section.text("table", required=True),
        user=secret(section, "user"),
        password=secret(section, "password"),
        mode=section.choice("mode", TableMode, TableMode.SNAPSHOT),
        incrementing=section.text("incrementing"),
        timestamp=section.text("timestamp"),
        window_s=section.read("window", durations.seconds, model.WINDOW_S),
        snapshot_below=section.number("snapshot_below", model.SNAPSHOT_BELOW),
        settings=secrets(section, "settings"),
        **common,
    )


def read_files(section: Section, common: dict[str, Any]) -> Source:
    return FilesSource(
        path=section.text("path", required=True, hint="a folder, a file or a URL"),
        kind=section.choice("kind", FileKind, FileKind.JSON),
        pattern=section.text("pattern"),
        recursive=section.flag("recursive", True),
        settings=section.settings("settings"),
        **common,
    )


def read_frequency(section: Section, default: Frequency) -> Frequency:
    node = section.node_of("frequency")
    if node is None:
        return default
    if isinstance(node, ScalarNode):
        word = str(node.value)
        if word == model.Pace.REAL_TIME:
            return model.REAL_TIME
        hint = 'real_time, {near_real_time: 1 minute} or {batch: "0 2 * * *"}'
        section.wrong("frequency", f"is {word!r}", hint)
        return default
    inner = section.section("frequency")
    if inner is None:
        return default
    if len(inner.values) != 1:
        section.wrong("frequency", "must be one of near_real_time and batch")
    found = default
    if "near_real_time" in inner:
        found = model.every(inner.read("near_real_time", durations.seconds, 60.0))
    elif "batch" in inner:
        found = model.on_schedule(inner.text("batch"))
    inner.finish(("near_real_time", "batch"))
    return found


def read_schema(section: Section, file: Path | None) -> Schema:
    node = section.node_of("schema")
    if node is None:
        return Schema()
    if isinstance(node, ScalarNode):
        return Schema(infer_samples=1000) if node.value == "infer" else Schema(ddl=str(node.value))
    inner = section.section("schema")
    if inner is None:
        return Schema()
    found = Schema()
    if "infer" in inner:
        samples = inner.section("infer")
        found = Schema(infer_samples=samples.number("samples", 1000, 1, 1_000_000) if samples else 1000)
        if samples:
            samples.finish()
    elif "avro" in inner:
        found = Schema(avro=read_avro(inner, file))
    elif "registry" in inner:
        found = Schema(
            registry=secret(inner, "registry", required=True),
            subject=inner.text("subject"),
            version=read_version(inner),
            message=inner.text("message"),
            registry_settings=secrets(inner, "settings"),
        )
    elif "protobuf" in inner:
        path = beside(file, inner.text("protobuf"))
        if not path.exists():
            inner.wrong("protobuf", f"{path} does not exist", "make it with protoc --descriptor_set_out")
        found = Schema(protobuf=str(path), message=inner.text("message", required=True))
    else:
        found = Schema(ddl=inner.text("ddl", required=True, hint="or avro, protobuf, registry, infer"))
    inner.finish(("ddl", "avro", "protobuf", "registry", "infer"))
    return found


def read_version(section: Section) -> int:
    """The number of a version; 0 stands for `latest`."""
    if section.text("version", "latest").strip().lower() == "latest":
        return 0
    return section.number("version", 0, 1)


def read_avro(section: Section, file: Path | None) -> str:
    node = section.node_of("avro")
    if isinstance(node, MappingNode):
        from barnabas.pipeline.file.document import plain

        return json.dumps(plain(node))
    written = section.text("avro")
    if written.lstrip().startswith(("{", "[", '"')):
        return written
    path = beside(file, written)
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        section.wrong("avro", f"is neither a schema in JSON nor a file that can be read: {error}")
        return ""


def beside(file: Path | None, path: str) -> Path:
    return (file.parent if file is not None else Path.cwd()) / Path(path).expanduser()


# -- zones and views --------------------------------------------------------------------------------


def read_key(section: Section) -> tuple[tuple[str, ...], float | None]:
    """`key: [id]`, or `key: {columns: [id], within: 7 days}`: the columns and the horizon in seconds."""
    if not isinstance(section.node_of("key"), MappingNode):
        return section.texts("key"), None
    inner = section.section("key")
    assert inner is not None
    columns, within_s = inner.texts("columns"), inner.read("within", durations.seconds, None)
    if not columns:
        inner.wrong("columns", "is missing", "name the columns of the key, as in [order_id]")
    inner.finish()
    return columns, within_s


def read_staging(name: str, section: Section) -> Staging:
    key, within_s = read_key(section)
    found = Staging(
        name=name,
        source=section.text("source", name),
        key=key,
        within_s=within_s,
        drift=section.choice("drift", Drift, Drift.RESCUE),
    )
    section.finish()
    return found


def read_trusted(name: str, section: Section) -> Trusted:
    # A placeholder for an unreadable rule keeps the numbers of those behind it.
    rules = [
        read_rule(each) or model.expression("true", f"unreadable {index}")
        for index, each in enumerate(section.items("rules"))
    ]
    found = Trusted(
        name=name,
        staging=section.text("from", name).removeprefix("staging."),
        rules=tuple(rules),
        mask=section.settings("mask"),
        hash=section.texts("hash"),
        salt=text(section.text("salt")),
        encrypt=section.texts("encrypt"),
        tokenise=section.texts("tokenise"),
        key=text(section.text("key")),
    )
    for name in ("salt", "key"):
        if is_literal_secret("secret", section.text(name)):
            section.wrong(name, "holds a secret", KEEP_SECRETS_OUT)
    section.finish()
    return found


def read_refined(name: str, section: Section) -> Refined:
    found = Refined(
        name=name,
        sql=section.text("sql"),
        python=section.text("python"),
        inputs=section.texts("inputs"),
        refresh=section.choice("refresh", Refresh, Refresh.AUTO),
        schedule=section.text("schedule"),
    )
    section.finish()
    return found


def read_view(name: str, section: Section) -> View:
    found = View(
        name=name,
        source=section.text("from", required=True, hint="trusted.NAME or refined.NAME"),
        sql=section.text("sql", required=True),
        keys=section.texts("keys"),
        measures=section.settings("measures"),
        batch=section.text("batch"),
        settings=section.settings("settings"),
    )
    section.finish()
    return found


def read_serving(root: Section) -> Serving:
    section = root.section("serving")
    if section is None:
        return Serving()
    found = Serving(
        store=secret(section, "store", "duckdb"),
        host=section.text("host", "127.0.0.1"),
        port=section.number("port", 8088, 0, 65535),
        token=secret(section, "token"),
        tokens=read_tokens(section),
        users=read_users(section),
        certificate=section.text("certificate"),
        private_key=section.text("private_key"),
        plaintext=section.flag("plaintext", False),
        keep_horizons=section.number("keep_horizons", 3, 1, 10_000),
    )
    section.finish()
    return found


def read_tokens(section: Section) -> tuple[Text, ...]:
    found = section.texts("tokens")
    if any(is_literal_secret("token", each) for each in found):
        section.wrong("tokens", "hold a secret", KEEP_SECRETS_OUT)
    return tuple(text(each) for each in found)


def read_users(section: Section) -> dict[str, Text]:
    found = section.settings("users")
    for name, password in found.items():
        if is_literal_secret("password", password):
            section.wrong("users", f"{name} has a password", KEEP_SECRETS_OUT)
    return {name: text(password) for name, password in found.items()}


def read_retention(root: Section) -> dict[str, float]:
    section = root.section("retention")
    if section is None:
        return {}
    found = {zone: section.read(zone, durations.seconds, 0.0) for zone in Zone}
    section.finish()
    return {str(zone): value for zone, value in found.items() if value}


def read_maintenance(root: Section) -> Maintenance:
    section = root.section("maintenance")
    if section is None:
        return Maintenance()
    found = Maintenance(
        compact=section.text("compact"),
        vacuum_s=section.read("vacuum", durations.seconds, Maintenance().vacuum_s),
        file_bytes_target=section.read("file_size", durations.size_bytes, Maintenance().file_bytes_target),
    )
    section.finish()
    return found
