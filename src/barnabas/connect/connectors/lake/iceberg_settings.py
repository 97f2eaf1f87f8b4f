"""Settings of the Iceberg sink, with the names of Apache Iceberg's connector and of Tabular's older one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from barnabas.connect.config import ConfigDef, Settings, at_least, regex
from barnabas.connect.plugins import ConnectError

CATALOG = "iceberg.catalog."
TABLE = "iceberg.table."
PER_TABLE = ("id-columns", "partition-by", "commit-branch", "route-regex")
TYPES = ("rest", "sql", "hive", "glue", "dynamodb")
CLASSES = {  # of Java
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.aws.dynamodb.DynamoDbCatalog": "dynamodb",
}
JDBC = re.compile(r"jdbc:(postgresql|sqlite):(.*)")
INTERVAL = "iceberg.control.commit.interval-ms"
UNUSED = {
    "iceberg.control.topic": "control-iceberg",
    "iceberg.control.group-id-prefix": "cg-control",
    "iceberg.connect.group-id": "",
    "iceberg.hadoop-conf-dir": "",
}


@dataclass(frozen=True, slots=True)
class TableRule:
    """The settings of one table."""

    name: str
    keys: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    branch: str = "main"
    route: str = ""  # records whose route field matches this expression


def definitions() -> ConfigDef:
    found = (
        ConfigDef()
        .define("iceberg.tables", "LIST", "", "HIGH", "namespace.table, several.")
        .define("iceberg.tables.dynamic-enabled", "BOOLEAN", False, "MEDIUM",
                "The route field of a record names its table.")
        .define("iceberg.tables.route-field", "STRING", "", "MEDIUM", "The field that chooses tables.")
        .define("iceberg.tables.default-commit-branch", "STRING", "", "MEDIUM", "The branch of commits.")
        .define("iceberg.tables.default-id-columns", "LIST", "", "MEDIUM", "The key of tables, for upserts.")
        .define("iceberg.tables.default-partition-by", "LIST", "", "MEDIUM",
                "Partitions of new tables: column, day(column), bucket(column, 16).")
        .define("iceberg.tables.auto-create-enabled", "BOOLEAN", False, "MEDIUM",
                "Create tables that are missing.")
        .define("iceberg.tables.evolve-schema-enabled", "BOOLEAN", False, "MEDIUM",
                "Add columns that tables lack, and widen numbers; otherwise other fields are left out.")
        .define("iceberg.tables.schema-force-optional", "BOOLEAN", False, "MEDIUM", "Always so.")
        .define("iceberg.tables.schema-case-insensitive", "BOOLEAN", False, "MEDIUM",
                "Columns are found in any case.")
        .define("iceberg.tables.upsert-mode-enabled", "BOOLEAN", False, "MEDIUM",
                "A row replaces that of its key; a record without a value deletes it.")
        .define("iceberg.tables.cdc-field", "STRING", "", "MEDIUM",
                "The field with the operation: I or R, U, D; sets upserts.")
        .define("iceberg.catalog", "STRING", "iceberg", "MEDIUM", "The name of the catalog.")
        .define(INTERVAL, "LONG", 1000, "MEDIUM", "The pace of commits.", validator=at_least(1))
        .define("iceberg.control.commit.timeout-ms", "LONG", 30_000, "LOW")
        .define("iceberg.control.commit.threads", "INT", 4, "LOW")
    )  # fmt: skip
    unused = {
        "iceberg.control.commit.timeout-ms": ("30000", "a commit takes the time that it takes"),
        "iceberg.control.commit.threads": ("4", "one task commits"),
        **{name: (default, "there is no control topic") for name, default in UNUSED.items()},
    }
    return found.without_effect(unused)


def catalog_properties(settings: Settings) -> dict[str, str]:
    """Properties for pyiceberg's catalog. ConnectError if it has no such catalog."""
    given = {name: value for name, value in settings.prefixed(CATALOG).items() if value is not None}
    java, kind = given.pop("catalog-impl", ""), given.pop("type", "").lower()
    given.pop("io-impl", None)  # a class of Java; files are read and written by their scheme here
    if java:
        kind = CLASSES.get(java, "")
        if not kind:
            raise ConnectError(f"{CATALOG}catalog-impl: {java} is unknown; known are {', '.join(CLASSES)}")
    kind = "sql" if kind == "jdbc" else kind
    if kind not in TYPES:
        raise ConnectError(f"{CATALOG}type: {kind or 'nothing'!r} must be one of {', '.join(TYPES)}")
    if "uri" not in given and kind in ("rest", "sql", "hive"):
        raise ConnectError(f"{CATALOG}uri is needed with {CATALOG}type={kind}")
    if kind == "sql":
        given["uri"] = database_url(given["uri"], given.pop("jdbc.user", ""), given.pop("jdbc.password", ""))
    return {"type": kind, **given}


def database_url(url: str, user: str, password: str) -> str:
    """An address of JDBC as one of SQLAlchemy; others as they are."""
    found = JDBC.fullmatch(url)
    if found is None:
        return url
    if found[1] == "sqlite":
        return f"sqlite:///{found[2]}"
    access = f"{user}:{password}@" if user else ""
    return f"postgresql+psycopg://{access}{found[2].removeprefix('//')}"


def rules_of(settings: Settings) -> list[TableRule]:
    """The tables by name, none where records name theirs."""
    names = settings.entries("iceberg.tables")
    route, is_dynamic = (
        settings.text("iceberg.tables.route-field"), settings.flag("iceberg.tables.dynamic-enabled"),
    )  # fmt: skip
    if is_dynamic and not route:
        raise ConnectError("iceberg.tables.route-field is needed with iceberg.tables.dynamic-enabled=true")
    if is_dynamic and names:
        raise ConnectError("iceberg.tables and iceberg.tables.dynamic-enabled exclude each other: keep one")
    if not is_dynamic and not names:
        raise ConnectError("iceberg.tables is needed: namespace.table, or dynamic-enabled with a route-field")
    for name in names:
        if "." not in name.strip("."):
            raise ConnectError(f"iceberg.tables: {name!r} has no namespace; write namespace.table")
    rules = [rule_of(settings, name) for name in names]
    for rule in rules:
        if route and not rule.route:
            raise ConnectError(
                f"{TABLE}{rule.name}.route-regex is needed: it says which values of {route} go there"
            )
    return rules


def rule_of(settings: Settings, name: str) -> TableRule:
    given = {part: (settings.raw.get(f"{TABLE}{name}.{part}") or "").strip() for part in PER_TABLE}
    route = given["route-regex"]
    regex()(f"{TABLE}{name}.route-regex", route)
    keys = entries(given["id-columns"]) or settings.entries("iceberg.tables.default-id-columns")
    by = entries(given["partition-by"]) or settings.entries("iceberg.tables.default-partition-by")
    branch = given["commit-branch"] or settings.text("iceberg.tables.default-commit-branch") or "main"
    return TableRule(name, tuple(keys), tuple(joined(by)), branch, route)


def named_in(settings: Settings) -> list[str]:
    """Tables that have settings of their own."""
    ends = tuple(f".{part}" for part in PER_TABLE)
    found = [name for name in settings.raw if name.startswith(TABLE) and name.endswith(ends)]
    return sorted({name.removeprefix(TABLE).rpartition(".")[0] for name in found})


def entries(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def joined(parts: list[str]) -> list[str]:
    """`bucket(id`, `16)` are one entry."""
    found: list[str] = []
    for each in parts:
        if found and found[-1].count("(") > found[-1].count(")"):
            found[-1] += f",{each}"
        else:
            found.append(each)
    return found


def is_upsert(settings: Settings) -> bool:
    return settings.flag("iceberg.tables.upsert-mode-enabled") or bool(
        settings.text("iceberg.tables.cdc-field")
    )


def table_properties(settings: Settings) -> Mapping[str, str]:
    """Properties of new tables."""
    return {
        name: value
        for name, value in settings.prefixed("iceberg.tables.auto-create-props.").items()
        if value is not None
    }
