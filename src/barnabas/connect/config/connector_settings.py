"""Settings that every connector has, those of sources, and those of sinks.

Names, types, defaults, groups and places are Kafka's. Defaults of converters are those of the worker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.connect.config.definition import ConfigDef, ConfigKey
from barnabas.connect.config.types import REQUIRED, ConfigType, Importance, Width
from barnabas.connect.config.validators import (
    Validator,
    at_least,
    entries,
    no_control_characters,
    non_empty,
    not_negative,
    one_of,
    one_of_any_case,
    regex,
    unique_aliases,
)

Row = tuple[str, str, Any, str, str, int, str, str, Validator | None, str]
ERRORS = "Error Handling"
ONCE = "Exactly Once Support"

# name, type, default, importance, group, place, width, display name, validator, documentation
# fmt: off
COMMON: tuple[Row, ...] = (
    ("name", "STRING", REQUIRED, "HIGH", "Common", 1, "MEDIUM", "Connector name", no_control_characters(),
     "The connector's name, unique in its cluster of workers."),
    ("connector.class", "STRING", REQUIRED, "HIGH", "Common", 2, "LONG", "Connector class", None,
     "The class of the connector: its full name, its simple name, or that without the word Connector."),
    ("connector.plugin.version", "STRING", None, "MEDIUM", "Common", 3, "MEDIUM", "Connector version", None,
     "The version of the connector's plugin."),
    ("tasks.max", "INT", "1", "HIGH", "Common", 4, "SHORT", "Tasks max", at_least(1),
     "The largest number of tasks."),
    ("tasks.max.enforce", "BOOLEAN", "true", "LOW", "Common", 5, "SHORT", "Enforce tasks max", None,
     "Whether a connector that makes more tasks than tasks.max fails."),
    ("key.converter", "CLASS", None, "LOW", "Common", 6, "SHORT", "Key converter class", None,
     "The converter of keys; the worker's where it is not set."),
    ("key.converter.plugin.version", "STRING", None, "LOW", "Common", 7, "SHORT", "Key converter version",
     None,
     "The version of the converter of keys."),
    ("value.converter", "CLASS", None, "LOW", "Common", 8, "SHORT", "Value converter class", None,
     "The converter of values; the worker's where it is not set."),
    ("value.converter.plugin.version", "STRING", None, "LOW", "Common", 9, "SHORT", "Value converter version",
     None, "The version of the converter of values."),
    ("header.converter", "CLASS", None, "LOW", "Common", 10, "SHORT", "Header converter class", None,
     "The converter of headers; the worker's where it is not set."),
    ("header.converter.plugin.version", "STRING", None, "LOW", "Common", 11, "SHORT",
     "Header converter version", None, "The version of the converter of headers."),
    ("transforms", "LIST", "", "LOW", "Transforms", 12, "LONG", "Transforms",
     unique_aliases("transformation aliases"), "Aliases of the transforms that records pass, in order."),
    ("predicates", "LIST", "", "LOW", "Predicates", 13, "LONG", "Predicates",
     unique_aliases("predicate aliases"), "Aliases of the predicates that transforms use."),
    ("config.action.reload", "STRING", "restart", "LOW", "Common", 14, "MEDIUM", "Reload Action",
     one_of("none", "restart"), "What happens when a value of a config provider changes."),
    ("errors.retry.timeout", "LONG", "0", "MEDIUM", ERRORS, 1, "MEDIUM", "Retry Timeout for Errors", None,
     "For how many milliseconds an operation is tried again; -1 without end."),
    ("errors.retry.delay.max.ms", "LONG", "60000", "MEDIUM", ERRORS, 2, "MEDIUM",
     "Maximum Delay Between Retries for Errors", None, "The longest pause between two attempts."),
    ("errors.tolerance", "STRING", "none", "MEDIUM", ERRORS, 3, "SHORT", "Error Tolerance",
     one_of("none", "all"), "Whether a record with an error fails the task (none) or is skipped (all)."),
    ("errors.log.enable", "BOOLEAN", "false", "MEDIUM", ERRORS, 4, "SHORT", "Log Errors", None,
     "Write each error to the log."),
    ("errors.log.include.messages", "BOOLEAN", "false", "MEDIUM", ERRORS, 5, "SHORT", "Log Error Details",
     None,
     "Write topic, partition, offset and timestamp of the record with the error to the log."),
)
SINK: tuple[Row, ...] = (
    ("topics", "LIST", "", "HIGH", "Common", 4, "LONG", "Topics", entries(), "Topics to read."),
    ("topics.regex", "STRING", "", "HIGH", "Common", 4, "LONG", "Topics regex", regex(),
     "Regular expression of the topics to read, in place of topics."),
    ("errors.deadletterqueue.topic.name", "STRING", "", "MEDIUM", ERRORS, 6, "MEDIUM",
     "Dead Letter Queue Topic Name", None, "The topic for records with errors. Empty: none."),
    ("errors.deadletterqueue.topic.replication.factor", "SHORT", "3", "MEDIUM", ERRORS, 7, "MEDIUM",
     "Dead Letter Queue Topic Replication Factor", None, "Replicas of that topic when it is made."),
    ("errors.deadletterqueue.context.headers.enable", "BOOLEAN", "false", "MEDIUM", ERRORS, 8, "MEDIUM",
     "Enable Error Context Headers", None, "Add headers that say where and why the record failed."),
)
SOURCE: tuple[Row, ...] = (
    ("topic.creation.groups", "LIST", "", "LOW", "Topic Creation", 1, "LONG", "Topic Creation Groups",
     unique_aliases("topic creation groups"), "Groups of settings for topics that are made."),
    ("exactly.once.support", "STRING", "requested", "MEDIUM", ONCE, 2, "SHORT", "Exactly once support",
     one_of_any_case("REQUIRED", "REQUESTED"), "Whether the connector must be able to write exactly once."),
    ("transaction.boundary", "STRING", "poll", "MEDIUM", ONCE, 3, "SHORT", "Transaction Boundary",
     one_of_any_case("INTERVAL", "POLL", "CONNECTOR"), "Where transactions of exactly-once tasks end."),
    ("transaction.boundary.interval.ms", "LONG", None, "LOW", ONCE, 4, "SHORT",
     "Transaction boundary interval", not_negative(),
     "The time of a transaction with transaction.boundary=interval."),
    ("offsets.storage.topic", "STRING", None, "LOW", "offsets.topic", 1, "LONG", "Offsets topic", non_empty(),
     "A topic of the connector's own for its offsets."),
)
# fmt: on


def key_of(row: Row) -> ConfigKey:
    name, kind, default, importance, group, place, width, display, validator, doc = row
    return ConfigKey(
        name,
        ConfigType(kind),
        default,
        Importance(importance),
        doc,
        group,
        place,
        Width(width),
        display,
        validator,
    )


def common_settings(kind: str = "", worker: Mapping[str, str] | None = None) -> ConfigDef:
    """Settings of a `source`, a `sink`, or of both kinds; `worker` gives the defaults of converters."""
    rows = (*COMMON, *(SOURCE if kind == "source" else SINK if kind == "sink" else ()))
    found = ConfigDef()
    for row in rows:
        default = (worker or {}).get(row[0]) if row[0].endswith(".converter") else None
        found.add(key_of(row if default is None else (*row[:2], default, *row[3:])))
    return found
