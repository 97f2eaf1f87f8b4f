"""Registered schemas of a source: which version its tables follow, and when they go on to a newer one.

In: a source with `schema: {registry: …}`, the columns of its tables. Out: the source with the number of a
version. A newer version is drift, and the compatibility level of its subject judges it: BACKWARD and FULL
promise that it reads old records, so its columns are added; FORWARD promises that the present version reads
new records, so it stays; NONE promises nothing, so a person decides. `drift: stop` always asks, `drift:
rescue` stays with the present version.
Does not know: Spark, tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from barnabas.engine.errors import NeedsDecision, SourceUnavailable
from barnabas.engine.secrets import reveal, revealed
from barnabas.pipeline.spec.model import Drift, Schema, Source, TopicSource
from barnabas.schemas import RegistryError, SchemaRegistryClient
from barnabas.spark.formats.ddl import parse_columns
from barnabas.spark.formats.formats import Format, Registered
from barnabas.spark.formats.registry import client_of

VERSIONS_MAX = 100  # that a start looks at
LEVELS_THAT_READ_OLD = re.compile(r"(BACKWARD|FULL)(_TRANSITIVE)?")
LEVELS_THAT_STAY = re.compile(r"FORWARD(_TRANSITIVE)?")


def subject_of(source: Source) -> str:
    if source.schema.subject or not isinstance(source, TopicSource):
        return source.schema.subject
    return f"{source.subscribe}-value"


def registry_format(source: Source) -> Format:
    """The codec of the version that the source follows, as text that travels to executors."""
    schema = source.schema
    version = schema.version or _latest(source)
    registered = Registered(_properties(schema), subject_of(source), version)
    return Format("value", str(source.format), "", schema.message, registered)


def at_start(source: Source, tables: Sequence[Iterable[str]]) -> Source:
    """The source with the version that its tables have: the newest one whose columns all of them hold.

    Without tables, and if no version fits, it is the latest.
    """
    if source.schema.version:
        return source
    latest = _latest(source)
    if tables:
        known = [{name.lower() for name in columns} for columns in tables]
        for version in range(latest, max(0, latest - VERSIONS_MAX), -1):
            columns = _columns(source, version)
            if columns is not None and all(columns <= names for names in known):
                return _with_version(source, version)
    return _with_version(source, latest)


def newer(source: Source, drifts: Sequence[Drift]) -> Source | None:
    """The source with the latest version if its tables should go on to it. NeedsDecision if nobody knows."""
    present = source.schema.version
    try:
        latest = _latest(source)
    except SourceUnavailable:
        return None  # the present version still reads records of schemas that are known here
    if latest <= present:
        return None
    subject = subject_of(source)
    if Drift.STOP in drifts:
        raise NeedsDecision(
            f"source {source.name}: {subject} has version {latest}, the tables have version {present};"
            f" name a version in the schema, or set drift to {Drift.ADD} or {Drift.RESCUE}"
        )
    if all(drift is Drift.RESCUE for drift in drifts):
        return None
    level = _level(source)
    if LEVELS_THAT_READ_OLD.fullmatch(level):
        return _with_version(source, latest)
    if LEVELS_THAT_STAY.fullmatch(level):
        return None
    raise NeedsDecision(
        f"source {source.name}: {subject} has version {latest}, the tables have version {present}, and the"
        f" registry's level {level} does not promise that either reads records of the other; name a version"
        f" in the schema, set the level to BACKWARD, or set drift to {Drift.RESCUE}"
    )


def _with_version(source: Source, version: int) -> Source:
    return replace(source, schema=replace(source.schema, version=version))


def _columns(source: Source, version: int) -> set[str] | None:
    """Names of the columns of a version; none if the version is gone or has no columns."""
    try:
        ddl = registry_format(_with_version(source, version)).codec().ddl
        return {field.name.lower() for field in parse_columns(f"value {ddl}")[0].kind.fields}
    except ValueError:
        return None


def _properties(schema: Schema) -> tuple[tuple[str, str], ...]:
    found = {"url": reveal(schema.registry), **revealed(schema.registry_settings)}
    return tuple(sorted(found.items()))


def _client(source: Source) -> SchemaRegistryClient:
    try:
        return client_of(_properties(source.schema))
    except ValueError as error:
        raise NeedsDecision(f"source {source.name}: the schema's registry cannot be used: {error}") from None


def _latest(source: Source) -> int:
    subject = subject_of(source)
    try:
        return _client(source).get_version(subject).version or 0
    except RegistryError as error:
        raise _failure(source, f"the latest version of {subject}", error) from None


def _level(source: Source) -> str:
    try:
        config = _client(source).get_config(subject_of(source), default_to_global=True)
    except RegistryError as error:
        raise _failure(source, f"the level of {subject_of(source)}", error) from None
    return str(config.get("compatibilityLevel") or "NONE")


def _failure(source: Source, wanted: str, error: RegistryError) -> SourceUnavailable | NeedsDecision:
    text = f"source {source.name}: the schema registry did not give {wanted}: {error}"
    return NeedsDecision(text) if error.status in (401, 403, 404, 422) else SourceUnavailable(text)
