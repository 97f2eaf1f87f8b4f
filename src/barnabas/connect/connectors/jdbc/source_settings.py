"""Settings of the JDBC source, and what must fit together."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.config import ConfigDef, at_least, one_of, one_of_any_case
from barnabas.connect.connectors.jdbc.column_mappings import (
    NUMBER_BY_TABLE,
    TIMES_BY_TABLE,
    mapping_errors,
)
from barnabas.connect.connectors.jdbc.common_settings import connection_errors, define_connection

MODE, CONNECTOR, SPARK = "Mode", "Connector", "Spark"
PARTITIONS, SLICE_ROWS = "barnabas.spark.partitions", "barnabas.spark.slice.rows"
KEY_COLUMN = "barnabas.spark.range.column"
SPARK_MODES = ("bulk", "incrementing")
MODES = ("bulk", "incrementing", "timestamp", "timestamp+incrementing")
GRANULARITIES = (
    "connect_logical",
    "micros_long",
    "nanos_long",
    "micros_string",
    "nanos_string",
    "micros_iso_datetime_string",
    "nanos_iso_datetime_string",
)
ISOLATIONS = ("READ_UNCOMMITTED", "READ_COMMITTED", "REPEATABLE_READ", "SERIALIZABLE")
MAPPINGS = ("none", "precision_only", "best_fit", "best_fit_eager_double")

CONFIG = (
    define_connection(ConfigDef())
    .define(
        "catalog.pattern",
        "STRING",
        None,
        "MEDIUM",
        "Catalogs whose tables are read, as LIKE.",
        "Database",
        "SHORT",
        "Schema pattern",
    )
    .define(
        "schema.pattern",
        "STRING",
        None,
        "HIGH",
        "Schemas whose tables are read, as LIKE.",
        "Database",
        "SHORT",
        "Schema pattern",
    )
    .define(
        "table.whitelist",
        "LIST",
        "",
        "MEDIUM",
        "Tables that are read.",
        "Database",
        "LONG",
        "Table Whitelist",
    )
    .define(
        "table.blacklist",
        "LIST",
        "",
        "MEDIUM",
        "Tables that are not read.",
        "Database",
        "LONG",
        "Table Blacklist",
    )
    .define(
        "table.include.list",
        "LIST",
        "",
        "MEDIUM",
        "Patterns of full names of tables that are read.",
        "Database",
        "LONG",
        "Table Include List",
    )
    .define(
        "table.exclude.list",
        "LIST",
        "",
        "MEDIUM",
        "Patterns of full names of tables that are not read.",
        "Database",
        "LONG",
        "Table Exclude List",
    )
    .define(
        "numeric.precision.mapping",
        "BOOLEAN",
        False,
        "LOW",
        "Old name of numeric.mapping=precision_only.",
        "Database",
        "SHORT",
        "Map Numeric Values By Precision (deprecated)",
    )
    .define(
        "numeric.mapping",
        "STRING",
        None,
        "LOW",
        "How NUMERIC columns are mapped. With none they are Decimals, which JSON shows as bytes in base64;"
        " best_fit gives numbers wherever 18 digits are enough.",
        "Database",
        "SHORT",
        "Map Numeric Values, Integral or Decimal, By Precision and Scale",
    )
    .define(
        "mode",
        "STRING",
        importance="HIGH",
        doc="How new rows are found.",
        group=MODE,
        width="MEDIUM",
        display_name="Table Loading Mode",
        validator=one_of(*MODES),
        dependents=("incrementing.column.name", "timestamp.column.name", "validate.non.null"),
    )
    .define(
        "incrementing.column.name",
        "STRING",
        "",
        "MEDIUM",
        "The growing column; empty: it is looked for.",
        MODE,
        "MEDIUM",
        "Incrementing Column Name",
    )
    .define(
        "timestamp.column.name",
        "LIST",
        "",
        "MEDIUM",
        "Columns with the time of the last change.",
        MODE,
        "MEDIUM",
        "Timestamp Column Name",
    )
    .define(
        TIMES_BY_TABLE,
        "LIST",
        "",
        "MEDIUM",
        "Columns with the time of the last change, by tables: expression:[column|column], several.",
        MODE,
        "MEDIUM",
        "Table to timestamp columns mappings",
    )
    .define(
        NUMBER_BY_TABLE,
        "LIST",
        "",
        "MEDIUM",
        "The growing column, by tables: expression:column, several.",
        MODE,
        "MEDIUM",
        "Table to incrementing column mappings",
    )
    .define(
        "timestamp.initial",
        "LONG",
        None,
        "LOW",
        "Milliseconds to begin at; -1: now; not set: all rows.",
        MODE,
        "MEDIUM",
        "Unix time value of initial timestamp",
    )
    .define(
        "validate.non.null",
        "BOOLEAN",
        True,
        "LOW",
        "Refuse columns of positions that may be null.",
        MODE,
        "SHORT",
        "Validate Non Null",
    )
    .define("query", "STRING", "", "MEDIUM", "A query in place of tables.", MODE, "SHORT", "Query")
    .define(
        "query.masked",
        "PASSWORD",
        None,
        "MEDIUM",
        "A query that is not shown.",
        MODE,
        "SHORT",
        "Query Masked",
    )
    .define("query.suffix", "STRING", "", "LOW", "Added to each query.", MODE, "MEDIUM", "Query suffix")
    .define(
        "query.retry.attempts",
        "INT",
        -1,
        "LOW",
        "Retries of a failed query; -1: without end.",
        MODE,
        "SHORT",
        "Query Retry Attempts",
        at_least(-1),
    )
    .define(
        "transaction.isolation.mode",
        "STRING",
        "DEFAULT",
        "LOW",
        "The isolation of the transactions that read; DEFAULT: that of the database.",
        MODE,
        "MEDIUM",
        "Transaction Isolation Mode",
        one_of_any_case("DEFAULT", *ISOLATIONS),
    )
    .define(
        "table.types",
        "LIST",
        "TABLE",
        "LOW",
        "Types of tables that are read.",
        CONNECTOR,
        "MEDIUM",
        "Table Types",
    )
    .define(
        "poll.interval.ms",
        "INT",
        5000,
        "HIGH",
        "Pause between polls of a table.",
        CONNECTOR,
        "SHORT",
        "Poll Interval (ms)",
        at_least(0),
    )
    .define(
        "batch.max.rows",
        "INT",
        1000,
        "LOW",
        "Rows of one poll.",
        CONNECTOR,
        "SHORT",
        "Max Rows Per Batch",
        at_least(1),
    )
    .define(
        "table.poll.interval.ms",
        "LONG",
        60000,
        "LOW",
        "Pause between looks for new tables.",
        CONNECTOR,
        "SHORT",
        "Metadata Change Monitoring Interval (ms)",
        at_least(1),
    )
    .define(
        "topic.prefix",
        "STRING",
        importance="HIGH",
        doc="Comes before the name of the table; with a query it is the whole topic.",
        group=CONNECTOR,
        width="MEDIUM",
        display_name="Topic Prefix",
    )
    .define(
        "timestamp.delay.interval.ms",
        "LONG",
        0,
        "HIGH",
        "Rows wait this long, for transactions that commit late.",
        CONNECTOR,
        "MEDIUM",
        "Delay Interval (ms)",
        at_least(0),
    )
    .define(
        "timestamp.granularity",
        "STRING",
        "connect_logical",
        "LOW",
        "The form of timestamps.",
        CONNECTOR,
        "MEDIUM",
        "Timestamp granularity for timestamp columns",
        one_of(*GRANULARITIES),
    )
    .define(
        "barnabas.key.from.table",
        "BOOLEAN",
        False,
        "LOW",
        "Give records the primary key of their table.",
        CONNECTOR,
        "SHORT",
        "Key From Table",
    )
    .define(
        "barnabas.topic.format",
        "STRING",
        "",
        "LOW",
        "Topic of a table, with ${catalog}, ${schema} and ${table}; empty: topic.prefix and the table.",
        CONNECTOR,
        "MEDIUM",
        "Topic Format",
    )
    .define(
        PARTITIONS,
        "INT",
        0,
        "MEDIUM",
        "Run as a Spark job, and read so many ranges of keys side by side; 0: two for each core of the"
        " cluster, if spark.master or spark.remote is set, else tasks in threads.",
        SPARK,
        "SHORT",
        "Partitions Of A Slice",
        at_least(0),
    )
    .define(
        SLICE_ROWS,
        "INT",
        500_000,
        "LOW",
        "Rows of a slice of a Spark job; offsets are stored after each.",
        SPARK,
        "SHORT",
        "Rows Of A Slice",
        at_least(1),
    )
    .define(
        KEY_COLUMN,
        "STRING",
        "",
        "LOW",
        "The whole number that cuts tables into ranges in mode bulk; empty: the primary key.",
        SPARK,
        "MEDIUM",
        "Range Column",
    )
    .define(
        "tables", "LIST", "", "LOW", "Tables of one task; set by the connector.", CONNECTOR, "LONG", "Tables"
    )
    .without_effect(
        {
            "date.calendar.system": ("LEGACY", "dates are those of the Gregorian calendar"),
            "max.buffer.size": ("0", "batch.max.rows bounds what waits"),
            "poll.linger.ms": ("5000", "rows are sent as they are read"),
        }
    )
)


def runs_on_spark(config: Mapping[str, str | None]) -> bool:
    """Whether the settings ask for a Spark job: partitions, or a cluster of the connector's own."""
    partitions = (config.get(PARTITIONS) or "0").strip()
    return partitions not in ("", "0") or bool(config.get("spark.master") or config.get("spark.remote"))


def query_of(config: Mapping[str, str]) -> str:
    return (config.get("query") or config.get("query.masked") or "").strip()


def source_errors(config: Mapping[str, str]) -> dict[str, list[str]]:
    """Settings that do not fit together."""
    errors = connection_errors(config)

    def wrong(name: str, text: str) -> None:
        errors.setdefault(name, []).append(text)

    mapping = config.get("numeric.mapping")
    if mapping is not None and mapping.lower() not in MAPPINGS:
        wrong(
            "numeric.mapping",
            f"Invalid value {mapping} for configuration numeric.mapping: must be one of"
            f" {', '.join(MAPPINGS)}",
        )
    if config.get("table.whitelist") and config.get("table.blacklist"):
        for name in ("table.whitelist", "table.blacklist"):
            wrong(name, "table.whitelist and table.blacklist are exclusive: set one of them")
    query = query_of(config)
    if query and any(
        config.get(each) for each in ("table.whitelist", "table.blacklist", "table.include.list")
    ):
        wrong(
            "query",
            "query may not be combined with whole-table copying settings: remove table.whitelist,"
            " table.blacklist and table.include.list, or the query",
        )
    mode = config.get("mode", "")
    for name, text in mapping_errors(config, has_query=bool(query)):
        wrong(name, text)
    if mode in ("timestamp", "timestamp+incrementing") and not (
        config.get("timestamp.column.name") or config.get(TIMES_BY_TABLE)
    ):
        wrong(
            "timestamp.column.name",
            f"mode {mode} needs timestamp.column.name, the column with the time of the last change",
        )
    if mode == "bulk":
        for name in ("incrementing.column.name", "timestamp.column.name", TIMES_BY_TABLE, NUMBER_BY_TABLE):
            if config.get(name):
                wrong(name, f"{name} has no use in mode bulk: remove it, or choose another mode")
    if runs_on_spark(config):
        if query:
            wrong("query", f"a Spark job reads tables by ranges of keys: remove {PARTITIONS} or the query")
        if mode and mode not in SPARK_MODES:
            wrong("mode", f"a Spark job reads in mode {' or '.join(SPARK_MODES)}: {mode} needs threads")
        if (config.get("transaction.isolation.mode") or "DEFAULT").upper() != "DEFAULT":
            wrong(
                "transaction.isolation.mode",
                "a Spark job reads with the isolation of the database: remove transaction.isolation.mode",
            )
        if config.get("query.suffix"):
            wrong("query.suffix", "a Spark job makes its own queries: remove query.suffix")
    if query and "incrementing" in mode and not config.get("incrementing.column.name"):
        wrong("incrementing.column.name", "a query has no catalogue to look in: name the growing column")
    return errors
