"""Writes a pipeline as a document: for plans, and for processes that start from Python objects.

In: a pipeline. Out: a document that `reading` reads, with references in place of secrets. Does not know:
files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from barnabas.engine.secrets import reference, references
from barnabas.pipeline.spec.durations import duration_text
from barnabas.pipeline.spec.model import (
    AUDIT_BUCKET_S,
    Audit,
    FilesSource,
    Frequency,
    LineageServer,
    Maintenance,
    Pace,
    Pipeline,
    Rule,
    RuleKind,
    Schema,
    Serving,
    Source,
    TableSource,
    TopicSource,
    Trusted,
)

Document = dict[str, Any]


def to_yaml(pipeline: Pipeline) -> str:
    return yaml.safe_dump(document(pipeline), sort_keys=False, allow_unicode=True, width=110)


def document(pipeline: Pipeline) -> Document:
    """The document, without empty values and with the absolute place of the lake."""
    found: Document = {"name": pipeline.name, "lake": pipeline.lake_location.root}
    spark = pipeline.spark
    found["spark"] = without_empty(
        {"master": spark.master, "remote": spark.remote, "settings": references(spark.settings)}
    )
    found["sources"] = {each.name: source_document(each) for each in pipeline.sources}
    found["staging"] = {
        each.name: {
            "source": each.source,
            "key": horizon_document(each.key, each.within_s),
            "drift": str(each.drift),
        }
        for each in pipeline.staging
    }
    found["trusted"] = {each.name: trusted_document(each) for each in pipeline.trusted}
    found["refined"] = {
        each.name: without_empty(
            {
                "sql": each.sql,
                "python": each.python,
                "inputs": list(each.inputs),
                "refresh": str(each.refresh),
                "schedule": each.schedule,
            }
        )
        for each in pipeline.refined
    }
    found["views"] = {
        each.name: without_empty(
            {
                "from": each.source,
                "sql": each.sql,
                "keys": list(each.keys),
                "measures": dict(each.measures),
                "batch": each.batch,
                "settings": dict(each.settings),
            }
        )
        for each in pipeline.views
    }
    found["serving"] = serving_document(pipeline.serving)
    found["retention"] = {zone: duration_text(value) for zone, value in pipeline.retention_s.items()}
    found["maintenance"] = maintenance_document(pipeline.maintenance)
    found["lineage"] = lineage_document(pipeline.lineage)
    found["audit"] = audit_document(pipeline.audit)
    return without_empty(found)


def source_document(source: Source) -> Document:
    found: Document = {}
    if isinstance(source, TopicSource):
        found["topic"] = without_empty(
            {
                "bootstrap.servers": reference(source.bootstrap_servers),
                "subscribe": source.subscribe,
                "pattern": source.pattern,
                "starting": source.starting,
                "settings": references(source.settings),
            }
        )
    elif isinstance(source, TableSource):
        found["table"] = without_empty(
            {
                "url": reference(source.url),
                "table": source.table,
                "user": reference(source.user),
                "password": reference(source.password),
                "mode": str(source.mode),
                "incrementing": source.incrementing,
                "timestamp": source.timestamp,
                "settings": references(source.settings),
            }
        )
        found["table"]["snapshot_below"] = source.snapshot_below
        found["table"]["window"] = duration_text(source.window_s)
        found["table"]["connections"] = source.connections
        if source.split_by:
            found["table"]["split_by"] = source.split_by
    elif isinstance(source, FilesSource):
        found["files"] = without_empty(
            {
                "path": source.path,
                "kind": str(source.kind),
                "pattern": source.pattern,
                "settings": dict(source.settings),
            }
        )
        found["files"]["recursive"] = source.recursive
    found["format"] = str(source.format)
    found["schema"] = schema_document(source.schema)
    found["frequency"] = frequency_document(source.frequency)
    found["event_time"] = source.event_time
    if source.lateness_s is not None:
        found["lateness"] = duration_text(source.lateness_s)
    if source.bandwidth_bytes_s is not None:
        found["bandwidth"] = f"{source.bandwidth_bytes_s:.0f} B/s"
    found["changes"] = source.changes
    found["change_types"] = dict(source.change_types)
    found["rows_per_batch"] = source.rows_per_batch_max
    return without_empty(found)


def schema_document(schema: Schema) -> Any:
    if schema.ddl:
        return schema.ddl
    if schema.avro:
        return {"avro": schema.avro}
    if schema.protobuf:
        return {"protobuf": schema.protobuf, "message": schema.message}
    if schema.registry:
        found = {
            "registry": reference(schema.registry),
            "subject": schema.subject,
            "version": schema.version or "latest",
            "message": schema.message,
            "settings": {name: reference(value) for name, value in schema.registry_settings.items()},
        }
        return without_empty(found)
    return {"infer": {"samples": schema.infer_samples}} if schema.infer_samples else None


def frequency_document(frequency: Frequency) -> Any:
    if frequency.pace is Pace.REAL_TIME:
        return str(Pace.REAL_TIME)
    if frequency.pace is Pace.BATCH:
        return {"batch": frequency.cron}
    return {"near_real_time": duration_text(frequency.interval_s)}


def horizon_document(columns: Sequence[str], within_s: float | None) -> list[str] | Document:
    """Columns of a key or of a rule `unique`, with how long their values are remembered."""
    if within_s is None:
        return list(columns)
    return {"columns": list(columns), "within": duration_text(within_s)}


def trusted_document(trusted: Trusted) -> Document:
    return without_empty(
        {
            "from": trusted.staging,
            "rules": [rule_document(rule) for rule in trusted.rules],
            "mask": dict(trusted.mask),
            "hash": list(trusted.hash),
            "salt": reference(trusted.salt),
            "encrypt": list(trusted.encrypt),
            "tokenise": list(trusted.tokenise),
            "key": reference(trusted.key),
        }
    )


def rule_document(rule: Rule) -> Document:
    values: dict[RuleKind, Any] = {
        RuleKind.NOT_NULL: list(rule.columns),
        RuleKind.UNIQUE: horizon_document(rule.columns, rule.within_s),
        RuleKind.EXPRESSION: rule.text,
    }
    if rule.kind in values:
        value = values[rule.kind]
    elif rule.kind is RuleKind.RANGE:
        value = {rule.columns[0]: [rule.low, rule.high]}
    elif rule.kind is RuleKind.FRESHNESS:
        value = {rule.columns[0]: duration_text(rule.age_s)}
    else:
        value = {rule.columns[0]: rule.text}
    return {str(rule.kind): value, **({"name": rule.name} if rule.name else {})}


def serving_document(serving: Serving) -> Document:
    return without_empty(
        {
            "store": reference(serving.store),
            "host": serving.host,
            "port": serving.port,
            "token": reference(serving.token),
            "tokens": [reference(each) for each in serving.tokens],
            "users": references(serving.users),
            "certificate": serving.certificate,
            "private_key": serving.private_key,
            "plaintext": serving.plaintext,
            "keep_horizons": serving.keep_horizons,
            "memory": f"{serving.memory_bytes} B",
            "threads": serving.threads,
            "temp": serving.temp_folder,
        }
    )


def maintenance_document(maintenance: Maintenance) -> Document:
    return without_empty(
        {
            "compact": maintenance.compact,
            "vacuum": duration_text(maintenance.vacuum_s),
            "file_size": f"{maintenance.file_bytes_target} B",
        }
    )


def lineage_document(lineage: LineageServer) -> Document:
    if not lineage.url:
        return {}
    return without_empty(
        {
            "url": reference(lineage.url),
            "endpoint": lineage.endpoint,
            "token": reference(lineage.token),
            "timeout": duration_text(lineage.timeout_s),
        }
    )


def audit_document(audit: Audit) -> Document | bool | None:
    if not audit.is_enabled:
        return None
    bucket = "" if audit.bucket_s == AUDIT_BUCKET_S else duration_text(audit.bucket_s)
    return without_empty({"topic": audit.topic, "bucket": bucket, "sums": audit.has_sums}) or True


def without_empty(values: Document) -> Document:
    return {name: value for name, value in values.items() if value not in ("", None, {}, [])}
