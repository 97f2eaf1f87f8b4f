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

from barnabas.engine.secrets import Text, text
from barnabas.engine.spark_settings import SparkSettings
from barnabas.pipeline.file.checks import problems_of
from barnabas.pipeline.file.document import Document, plain_tree
from barnabas.pipeline.file.problems import FileProblems, Problem, did_you_mean, with_lines
from barnabas.pipeline.file.shape import (
    FilesShape,
    PipelineShape,
    RefinedShape,
    SchemaShape,
    ServingShape,
    SourceShape,
    StagingShape,
    TableShape,
    TopicShape,
    TrustedShape,
    ViewShape,
)
from barnabas.pipeline.file.shape_problems import read_shape
from barnabas.pipeline.spec import model
from barnabas.pipeline.spec.model import (
    Audit,
    FilesSource,
    Frequency,
    LineageServer,
    Maintenance,
    Pipeline,
    Refined,
    Schema,
    Serving,
    Source,
    Staging,
    TableSource,
    TopicSource,
    Trusted,
    View,
)

__all__ = ["FileProblems", "Problem", "pipeline_from", "read_pipeline", "read_text"]

KINDS = ("topic", "table", "files")


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
    document = Document(content)
    shape = read_shape(document)
    if shape is None:
        raise FileProblems(with_lines(document.problems, document.lines), file)
    pipeline = made(shape, document, file)
    # A section that could not be read would be reported again as missing.
    read_wrong = {each.path for each in document.problems}
    found = [each for each in problems_of(pipeline) if not within(each.path, read_wrong)]
    if document.problems or found:
        raise FileProblems(with_lines([*document.problems, *found], document.lines), file)
    return pipeline


def within(path: str, sections: set[str]) -> bool:
    return any(path == section or path.startswith((f"{section}.", f"{section}[")) for section in sections)


def made(shape: PipelineShape, document: Document, file: Path | None) -> Pipeline:
    """The pipeline of a shape."""
    tree = document.tree or {}
    if "sources" not in tree:
        document.wrong("sources", "is missing", "name at least one source")
    lineage, audit = shape.lineage, shape.audit
    return Pipeline(
        name=shape.name,
        lake=shape.lake,
        spark=SparkSettings(shape.spark.master, shape.spark.remote, texts(shape.spark.settings)),
        sources=tuple(source(name, each, document, file) for name, each in shape.sources.items()),
        staging=tuple(staging(name, each) for name, each in shape.staging.items()),
        trusted=tuple(trusted(name, each) for name, each in shape.trusted.items()),
        refined=tuple(refined(name, each) for name, each in shape.refined.items()),
        views=tuple(view(name, each) for name, each in shape.views.items()),
        serving=serving(shape.serving),
        retention_s={zone: value for zone, value in shape.retention.model_dump().items() if value},
        maintenance=Maintenance(
            shape.maintenance.compact, shape.maintenance.vacuum, shape.maintenance.file_size
        ),
        lineage=LineageServer()
        if lineage is None
        else LineageServer(text(lineage.url), lineage.endpoint, text(lineage.token), lineage.timeout),
        audit=Audit() if audit is None else Audit(True, audit.topic, audit.bucket, audit.sums),
        file=file,
    )


def texts(settings: Mapping[str, str]) -> dict[str, Text]:
    return {name: text(value) for name, value in settings.items()}


# -- sources ----------------------------------------------------------------------------------------


def source(name: str, shape: SourceShape, document: Document, file: Path | None) -> Source:
    path = f"sources.{name}"
    kinds = [kind for kind in KINDS if getattr(shape, kind) is not None]
    given = list(((document.tree or {}).get("sources") or {}).get(name) or ())
    if len(kinds) != 1 and not set(given) & set(KINDS) - set(kinds):
        said = f"has {' and '.join(kinds)}" if kinds else "has no place to read from"
        close = [did_you_mean(each, KINDS) for each in given]
        close = [each for each in close if each.startswith("did you")]
        document.wrong(path, said, close[0] if close else f"give exactly one of {', '.join(KINDS)}")
    kind = next(iter(kinds), "files")
    default = {"topic": model.REAL_TIME, "table": model.EVERY_MINUTE, "files": model.EVERY_TEN_SECONDS}[kind]
    common: dict[str, Any] = {
        "name": name,
        "format": shape.format,
        "schema": schema(shape.record_schema, f"{path}.schema", document, file),
        "event_time": shape.event_time,
        "lateness_s": shape.lateness,
        "bandwidth_bytes_s": shape.bandwidth,
        "changes": shape.changes,
        "change_types": dict(shape.change_types),
        "rows_per_batch_max": shape.rows_per_batch,
        "frequency": frequency(shape, default, f"{path}.frequency", document),
    }
    if shape.topic is not None:
        return topic(shape.topic, common)
    if shape.table is not None:
        return table(shape.table, common)
    return files(shape.files, common)


def topic(shape: TopicShape, common: dict[str, Any]) -> Source:
    return TopicSource(
        bootstrap_servers=text(shape.bootstrap_servers),
        subscribe=shape.subscribe,
        pattern=shape.pattern,
        starting=shape.starting,
        settings=texts(shape.settings),
        **common,
    )


def table(shape: TableShape, common: dict[str, Any]) -> Source:
    return TableSource(
        url=text(shape.url),
        table=shape.table,
        user=text(shape.user),
        password=text(shape.password),
        mode=shape.mode,
        incrementing=shape.incrementing,
        timestamp=shape.timestamp,
        window_s=shape.window,
        snapshot_below=shape.snapshot_below,
        connections=shape.connections,
        split_by=shape.split_by,
        settings=texts(shape.settings),
        **common,
    )


def files(shape: FilesShape | None, common: dict[str, Any]) -> Source:
    if shape is None:
        return FilesSource(path="", **common)
    return FilesSource(
        path=shape.path,
        kind=shape.kind,
        pattern=shape.pattern,
        recursive=shape.recursive,
        settings=shape.settings,
        **common,
    )


def frequency(shape: SourceShape, default: Frequency, path: str, document: Document) -> Frequency:
    found = shape.frequency
    if found is None:
        return default
    given = (document.tree or {})["sources"][path.split(".", 2)[1]]["frequency"]
    if isinstance(given, dict) and (found.near_real_time is None) == (found.batch is None):
        if not any(each.path.startswith(f"{path}.") for each in document.problems):
            document.wrong(path, "must be one of near_real_time and batch")
        return default
    if found.near_real_time is not None:
        return model.every(found.near_real_time)
    return model.on_schedule(found.batch) if found.batch is not None else model.REAL_TIME


def schema(shape: SchemaShape | None, path: str, document: Document, file: Path | None) -> Schema:
    if shape is None:
        return Schema()
    if shape.infer is not None:
        return Schema(infer_samples=shape.infer.samples)
    if shape.avro is not None:
        return Schema(avro=avro(shape.avro, f"{path}.avro", document, file))
    if shape.registry:
        return Schema(
            registry=text(shape.registry),
            subject=shape.subject,
            version=shape.version,
            message=shape.message,
            registry_settings=texts(shape.settings),
        )
    if shape.protobuf:
        place = beside(file, shape.protobuf)
        if not place.exists():
            hint = "make it with protoc --descriptor_set_out"
            document.wrong(f"{path}.protobuf", f"{place} does not exist", hint)
        if not shape.message:
            document.wrong(f"{path}.message", "is missing")
        return Schema(protobuf=str(place), message=shape.message)
    return Schema(ddl=shape.ddl)


def avro(written: Any, path: str, document: Document, file: Path | None) -> str:
    if not isinstance(written, str):
        return json.dumps(plain_tree(written))
    if written.lstrip().startswith(("{", "[", '"')):
        return str(written)
    try:
        return beside(file, written).read_text()
    except (OSError, UnicodeDecodeError) as error:
        document.wrong(path, f"is neither a schema in JSON nor a file that can be read: {error}")
        return ""


def beside(file: Path | None, path: str) -> Path:
    return (file.parent if file is not None else Path.cwd()) / Path(path).expanduser()


# -- zones and views --------------------------------------------------------------------------------


def staging(name: str, shape: StagingShape) -> Staging:
    key = shape.key
    return Staging(
        name=name,
        source=shape.source or name,
        key=() if key is None else tuple(each for each in key.columns if each),
        within_s=None if key is None else key.within,
        drift=shape.drift,
    )


def trusted(name: str, shape: TrustedShape) -> Trusted:
    return Trusted(
        name=name,
        staging=(shape.staging or name).removeprefix("staging."),
        rules=tuple(shape.rules),
        mask=shape.mask,
        hash=shape.hash,
        salt=text(shape.salt),
        encrypt=shape.encrypt,
        tokenise=shape.tokenise,
        key=text(shape.key),
    )


def refined(name: str, shape: RefinedShape) -> Refined:
    return Refined(
        name=name,
        sql=shape.sql,
        python=shape.python,
        inputs=shape.inputs,
        refresh=shape.refresh,
        schedule=shape.schedule,
    )


def view(name: str, shape: ViewShape) -> View:
    return View(
        name=name,
        source=shape.source,
        sql=shape.sql,
        keys=shape.keys,
        measures=shape.measures,
        batch=shape.batch,
        settings=shape.settings,
    )


def serving(shape: ServingShape) -> Serving:
    return Serving(
        store=text(shape.store),
        host=shape.host,
        port=shape.port,
        token=text(shape.token),
        tokens=tuple(text(each) for each in shape.tokens),
        users=texts(shape.users),
        certificate=shape.certificate,
        private_key=shape.private_key,
        plaintext=shape.plaintext,
        keep_horizons=shape.keep_horizons,
        memory_bytes=shape.memory,
        threads=shape.threads,
        temp_folder=shape.temp,
    )
