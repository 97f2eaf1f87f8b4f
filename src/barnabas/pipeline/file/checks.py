"""Finds all problems of a pipeline that can be found without Spark.

In: a pipeline. Out: problems with names and hints; `reading` adds the lines. Checks references between
sections, columns in keys, rules and SQL if they are declared, cron and regular expressions, masks. Does
not know: YAML, Spark, sources as they are now.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from barnabas.audit.core.buckets import check_width
from barnabas.engine.secrets import IN_ADDRESS, reference
from barnabas.pipeline.file.problems import Problem, did_you_mean
from barnabas.pipeline.file.source_checks import columns_of, cron_wrong, references_wrong, source_problems
from barnabas.pipeline.lake.columns import SYSTEM_COLUMNS
from barnabas.pipeline.lake.tables import TableName, Zone
from barnabas.pipeline.spec.exposure import why_closed
from barnabas.pipeline.spec.model import (
    MASK_HINT,
    MASKS,
    Audit,
    Drift,
    LineageServer,
    Merging,
    Pipeline,
    Refined,
    Rule,
    RuleKind,
    Serving,
    Source,
    Staging,
    Trusted,
    View,
    by_name,
)
from barnabas.pipeline.spec.refined_sql import (
    SqlProblem,
    columns_in,
    in_order,
    outputs_of,
    resolve,
    tables_in,
)
from barnabas.pipeline.views.definition import problems_of as definition_problems
from barnabas.security.clients.references import REFERENCE

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,99}")
RULES_MAX = 62


def problems_of(pipeline: Pipeline) -> list[Problem]:
    return [
        *name_problems(pipeline),
        *[each for source in pipeline.sources for each in source_problems(source)],
        *[each for staging in pipeline.staging for each in staging_problems(pipeline, staging)],
        *[each for trusted in pipeline.trusted for each in trusted_problems(pipeline, trusted)],
        *[each for refined in pipeline.refined for each in refined_problems(pipeline, refined)],
        *circle_problems(pipeline),
        *[each for view in pipeline.views for each in view_problems(pipeline, view)],
        *running_problems(pipeline),
    ]


def name_problems(pipeline: Pipeline) -> Iterator[Problem]:
    if pipeline.name and not NAME.fullmatch(pipeline.name):
        yield Problem("name", f"is {pipeline.name!r}", "letters, digits, _ and -, beginning with a letter")
    if not pipeline.sources:
        yield Problem("sources", "are missing", "name at least one source")
    for section in ("sources", "staging", "trusted", "refined", "views"):
        names = [each.name for each in getattr(pipeline, section)]
        for name, count in Counter(names).items():
            if count > 1:
                yield Problem(f"{section}.{name}", "is given twice", "each name must be unique")
            if not NAME.fullmatch(name):
                yield Problem(
                    f"{section}.{name}", "is not a name", "letters, digits, _ and -, beginning with a letter"
                )
    trusted = {each.name for each in pipeline.trusted}
    for refined in pipeline.refined:
        if refined.name in trusted:
            hint = f"write trusted.{refined.name} and refined.{refined.name} in SQL, or choose another name"
            yield Problem(f"refined.{refined.name}", "has the name of a trusted table", hint)


# -- zones ------------------------------------------------------------------------------------------


def unknown(path: str, what: str, name: str, known: Iterable[str]) -> Problem:
    return Problem(path, f"there is no {what} {name!r}", did_you_mean(name, known))


def source_by(pipeline: Pipeline, name: str) -> Source | None:
    return next((each for each in pipeline.sources if each.name == name), None)


def staging_columns(pipeline: Pipeline, name: str) -> list[str] | None:
    """The columns of a staging table; None if they are unknown or drift may add some."""
    staging = next((each for each in pipeline.staging if each.name == name), None)
    source = source_by(pipeline, staging.source) if staging is not None else None
    if staging is None or source is None:
        return None
    known = columns_of(source)
    return None if known is None or staging.drift is Drift.ADD else [*known, *SYSTEM_COLUMNS]


def table_columns(pipeline: Pipeline, table: TableName, depth: int = 0) -> list[str] | None:
    if table.zone is Zone.STAGING:
        return staging_columns(pipeline, table.name)
    if table.zone is Zone.TRUSTED:
        return staging_columns(pipeline, by_name(pipeline.trusted, table.name).staging)
    refined = next((each for each in pipeline.refined if each.name == table.name), None)
    if refined is None or not refined.sql or depth > len(pipeline.refined):
        return None
    try:
        return outputs_of(refined.sql)
    except SqlProblem:
        return None


def missing(path: str, columns: Iterable[str], known: list[str] | None) -> Iterator[Problem]:
    lowered = {name.lower() for name in known or ()}
    for name in columns:
        if known is not None and name.lower() not in lowered:
            shown = [each for each in known if each not in SYSTEM_COLUMNS]
            yield Problem(path, f"there is no column {name!r}", did_you_mean(name, shown))


def staging_problems(pipeline: Pipeline, staging: Staging) -> Iterator[Problem]:
    path = f"staging.{staging.name}"
    source = source_by(pipeline, staging.source)
    if source is None:
        names = [each.name for each in pipeline.sources]
        yield unknown(f"{path}.source", "source", staging.source, names)
        return
    yield from missing(f"{path}.key", staging.key, staging_columns(pipeline, staging.name))
    for name in columns_of(source) or ():
        if name.startswith("_"):
            hint = "such names belong to the platform; rename the field"
            yield Problem(f"sources.{source.name}.schema", f"the column {name!r} begins with _", hint)
    yield from horizon_problems(f"{path}.key", staging.within_s, source)
    if source.merging is Merging.UPSERT and not staging.key:
        yield Problem(f"{path}.key", "is missing", "changes are applied to the row of their key")


def horizon_problems(path: str, within_s: float | None, source: Source | None) -> Iterator[Problem]:
    if within_s is None:
        return
    if within_s <= 0:
        yield Problem(f"{path}.within", "is not longer than 0", "write a duration, as in 7 days")
    if source is not None and source.merging is not Merging.INSERT_NEW:
        hint = "changes and snapshots replace the row of their key, however old it is"
        yield Problem(f"{path}.within", "has no meaning here", hint)


def trusted_problems(pipeline: Pipeline, trusted: Trusted) -> Iterator[Problem]:
    path = f"trusted.{trusted.name}"
    staging = next((each for each in pipeline.staging if each.name == trusted.staging), None)
    if staging is None:
        names = [each.name for each in pipeline.staging]
        yield unknown(f"{path}.from", "staging table", trusted.staging, names)
        return
    known = staging_columns(pipeline, staging.name)
    source = source_by(pipeline, staging.source)
    if len(trusted.rules) > RULES_MAX:
        yield Problem(f"{path}.rules", f"are {len(trusted.rules)}", f"at most {RULES_MAX}")
    for index, rule in enumerate(trusted.rules):
        yield from rule_problems(pipeline, f"{path}.rules[{index}]", rule, known)
        yield from horizon_problems(f"{path}.rules[{index}].unique", rule.within_s, source)
    for label, count in Counter(rule.label for rule in trusted.rules).items():
        if count > 1:
            yield Problem(f"{path}.rules", f"{count} rules are called {label}", "give them a name")
    yield from missing(f"{path}.mask", trusted.mask, known)
    for way in ("hash", "encrypt", "tokenise"):
        yield from missing(f"{path}.{way}", getattr(trusted, way), known)
    yield from protection_problems(path, staging, trusted)
    for name, way in trusted.mask.items():
        if not MASKS.fullmatch(way):
            yield Problem(f"{path}.mask.{name}", f"there is no mask {way!r}", MASK_HINT)
        if name in trusted.protected:
            yield Problem(f"{path}.mask.{name}", "is masked and hidden in another way", "choose one")
        if name in staging.key:
            yield Problem(
                f"{path}.mask.{name}",
                "is a part of the key",
                "hash it: different keys would get the same mask",
            )
        for rule in trusted.rules:
            if rule.kind is RuleKind.UNIQUE and name in rule.columns:
                yield Problem(
                    f"{path}.mask.{name}",
                    "must be unique",
                    "hash it: different values would get the same mask",
                )


def protection_problems(path: str, staging: Staging, trusted: Trusted) -> Iterator[Problem]:
    """Columns that are hashed, encrypted or tokenised."""
    for name, count in Counter(trusted.protected).items():
        if count > 1:
            yield Problem(f"{path}.encrypt", f"{name} is hidden in {count} ways", "choose one")
    unique = {name for rule in trusted.rules if rule.kind is RuleKind.UNIQUE for name in rule.columns}
    for name in trusted.encrypt:
        if name in staging.key or name in unique:
            yield Problem(f"{path}.encrypt", f"{name} must be unique", "tokenise it: equal values stay equal")
    if (trusted.encrypt or trusted.tokenise) and not trusted.key:
        hint = "as ${env:NAME} or ${file:/path}; `barnabas pipeline key` makes one"
        yield Problem(f"{path}.key", "is missing", hint)
    yield from references_wrong(f"{path}.key", reference(trusted.key))
    yield from references_wrong(f"{path}.salt", reference(trusted.salt))


def rule_problems(pipeline: Pipeline, path: str, rule: Rule, known: list[str] | None) -> Iterator[Problem]:
    yield from missing(path, rule.columns, known)
    if rule.kind is RuleKind.RANGE:
        if rule.low is None and rule.high is None:
            yield Problem(path, "has neither a lower nor an upper end", "as in [0, 10000]; null: no end")
        try:
            if rule.low is not None and rule.high is not None and rule.low > rule.high:
                yield Problem(
                    path, f"the range from {rule.low} to {rule.high} is empty", "the lower end comes first"
                )
        except TypeError:
            yield Problem(path, f"{rule.low!r} and {rule.high!r} cannot be compared")
    elif rule.kind is RuleKind.PATTERN:
        try:
            re.compile(rule.text)
        except re.error as error:
            yield Problem(path, f"{rule.text!r} is not a regular expression: {error}")
    elif rule.kind is RuleKind.EXPRESSION:
        try:
            yield from missing(path, columns_in(f"SELECT 1 WHERE {rule.text}"), known)
        except SqlProblem as error:
            yield Problem(path, f"{rule.text!r} is not an expression: {error}")
    elif rule.kind is RuleKind.REFERENCE:
        yield from reference_problems(pipeline, path, rule)


def reference_problems(pipeline: Pipeline, path: str, rule: Rule) -> Iterator[Problem]:
    name, dot, column = rule.text.rpartition(".")
    table = resolve(pipeline, name) if dot else None
    if table is None:
        names = [f"{each.name}.COLUMN" for each in pipeline.trusted]
        yield Problem(path, f"there is no table {name or rule.text!r}", did_you_mean(f"{name}.COLUMN", names))
        return
    yield from missing(path, [column], table_columns(pipeline, table))


def refined_problems(pipeline: Pipeline, refined: Refined) -> Iterator[Problem]:
    path = f"refined.{refined.name}"
    if bool(refined.sql) == bool(refined.python):
        yield Problem(path, "needs sql or python", "exactly one of them")
    if refined.python:
        yield from python_problems(path, refined)
    yield from cron_wrong(f"{path}.schedule", refined.schedule)
    try:
        names = list(refined.inputs) or (tables_in(refined.sql) if refined.sql else [])
        yield from sql_columns_wrong(pipeline, f"{path}.sql", refined.sql)
    except SqlProblem as error:
        yield Problem(f"{path}.sql", str(error))
        return
    for name in names:
        if resolve(pipeline, name) is None:
            yield unknown(
                f"{path}.{'inputs' if refined.inputs else 'sql'}", "table", name, table_names(pipeline)
            )


def table_names(pipeline: Pipeline) -> list[str]:
    return [each.name for each in (*pipeline.trusted, *pipeline.refined, *pipeline.staging)]


def python_problems(path: str, refined: Refined) -> Iterator[Problem]:
    import importlib.util

    module, colon, name = refined.python.partition(":")
    if not colon or not name.isidentifier():
        yield Problem(f"{path}.python", f"is {refined.python!r}", "module:function")
        return
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None:
        yield Problem(
            f"{path}.python", f"there is no module {module!r}", "is it installed, or on PYTHONPATH?"
        )
    if not refined.inputs:
        yield Problem(f"{path}.inputs", "are missing", "name the tables that the function is called with")


def sql_columns_wrong(pipeline: Pipeline, path: str, sql: str) -> Iterator[Problem]:
    """Columns that no table of the SQL has, if all columns are declared."""
    if not sql:
        return
    known: list[str] = []
    for name in tables_in(sql):
        table = resolve(pipeline, name)
        columns = table_columns(pipeline, table) if table is not None else None
        if columns is None:
            return
        known += columns
    yield from missing(path, columns_in(sql), known)


def circle_problems(pipeline: Pipeline) -> Iterator[Problem]:
    try:
        in_order(pipeline)
    except SqlProblem:
        return
    except ValueError as error:
        yield Problem("refined", str(error), "a table cannot read itself, also not through others")


def view_problems(pipeline: Pipeline, view: View) -> Iterator[Problem]:
    path = f"views.{view.name}"
    if not view.source or not view.sql:
        return  # reported by the reader
    table = resolve(pipeline, view.source)
    if table is None or table.zone is Zone.STAGING or "." not in view.source:
        known = [f"{each.zone}.{each.name}" for each in lake_tables(pipeline)]
        yield unknown(f"{path}.from", "trusted or refined table", view.source, known)
    event_time = pipeline.event_time_of(table) if table is not None else ""
    for message in definition_problems(view, event_time):
        yield Problem(path, message)
    try:
        for name in tables_in(view.sql):
            if resolve(pipeline, name) is None:
                yield unknown(f"{path}.sql", "table", name, table_names(pipeline))
        yield from sql_columns_wrong(pipeline, f"{path}.sql", view.sql)
    except SqlProblem:
        pass  # reported by the definition
    yield from cron_wrong(f"{path}.batch", view.batch)


def lake_tables(pipeline: Pipeline) -> list[TableName]:
    trusted = [TableName(Zone.TRUSTED, each.name) for each in pipeline.trusted]
    return [*trusted, *[TableName(Zone.REFINED, each.name) for each in pipeline.refined]]


# -- running ----------------------------------------------------------------------------------------


def serving_problems(serving: Serving) -> Iterator[Problem]:
    if bool(serving.certificate) != bool(serving.private_key):
        missing_name = "private_key" if serving.certificate else "certificate"
        yield Problem(f"serving.{missing_name}", "is missing", "TLS needs certificate and private_key")
    closed = why_closed(
        serving.host,
        is_guarded=serving.is_guarded,
        has_tls=bool(serving.certificate) or serving.plaintext,
    )
    if closed is not None:
        yield Problem("serving.host", closed)


def lineage_problems(lineage: LineageServer) -> Iterator[Problem]:
    url = reference(lineage.url)
    if url and not url.startswith(("http://", "https://", "${")):
        yield Problem("lineage.url", f"is {url.partition('://')[0]!r}", "http://… or https://…")
    if IN_ADDRESS.search(REFERENCE.sub("", url)):
        yield Problem("lineage.url", "holds a password", "give token beside it, as ${env:NAME}")
    yield from references_wrong("lineage.url", url)
    yield from references_wrong("lineage.token", reference(lineage.token))


def audit_problems(audit: Audit) -> Iterator[Problem]:
    try:
        check_width(int(audit.bucket_s * 1000))
    except ValueError:
        yield Problem("audit.bucket", "does not divide a day", "1 minute, 10 minutes, 1 hour")


def running_problems(pipeline: Pipeline) -> Iterator[Problem]:
    store = reference(pipeline.serving.store)
    if IN_ADDRESS.search(store) and "${" not in store:
        yield Problem("serving.store", "holds a password", "write ${env:NAME} or ${file:/path} instead of it")
    if store and not store.startswith(("duckdb", "postgresql://", "postgres://", "${")):
        shown = f"is {store.partition('://')[0]}://…" if "://" in store else f"is {store!r}"
        yield Problem("serving.store", shown, "duckdb, or postgresql://…")
    yield from serving_problems(pipeline.serving)
    yield from lineage_problems(pipeline.lineage)
    yield from audit_problems(pipeline.audit)
    for name, value in pipeline.spark.settings.items():
        yield from references_wrong(f"spark.settings.{name}", reference(value))
    for zone in pipeline.retention_s:
        if zone not in set(Zone):
            yield unknown(f"retention.{zone}", "zone", zone, Zone)
    yield from cron_wrong("maintenance.compact", pipeline.maintenance.compact)
    master = pipeline.spark.master
    if not re.fullmatch(r"local(\[.+\])?|(spark|k8s|mesos)://.+|yarn.*", master):
        yield Problem("spark.master", f"is {master!r}", "local[*], spark://host:7077, yarn, k8s://…")
    if pipeline.spark.remote and not pipeline.spark.remote.startswith("sc://"):
        yield Problem("spark.remote", f"is {pipeline.spark.remote!r}", "sc://host:15002")
