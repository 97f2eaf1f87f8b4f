"""Loggers as a configurable resource: their levels, read and changed while running, with Kafka's names.

In: changes of levels. Out: Python's loggers with those levels, until the process ends; as in Kafka, nothing
is stored. `root` is the logger that all others inherit from. Does not know: where log lines go.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from barnabas.controller.configs import Operation
from barnabas.protocol import ErrorCode, KafkaError

ROOT = "root"
TRACE = 5  # below DEBUG; Python has none
LEVELS = {
    "TRACE": TRACE,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
OURS = "barnabas"


def known() -> dict[str, logging.Logger]:
    """The loggers of Barnabas by name, and the root logger."""
    found = {ROOT: logging.getLogger()}
    for name, logger in sorted(logging.root.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and (name == OURS or name.startswith(f"{OURS}.")):
            found[name] = logger
    return found


def levels(names: Collection[str] | None = None) -> dict[str, str]:
    """The effective level of each logger, its own or inherited."""
    return {
        name: level_name(logger.getEffectiveLevel())
        for name, logger in known().items()
        if not names or name in names
    }


def level_name(level: int) -> str:
    return max(
        (name for name, number in LEVELS.items() if number <= level),
        key=lambda name: LEVELS[name],
        default="TRACE",
    )


def check_node(name: str, node_id: int) -> None:
    try:
        asked = int(name) if name.strip() == name else None
    except ValueError:
        asked = None
    if asked is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Node id must be an integer, but it is: {name}")
    if asked != node_id:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"Unexpected node id. Expected {node_id}, but received {name}"
        )


def check(changes: Collection[Any]) -> None:
    """Raise KafkaError unless all changes are valid; each has name, config_operation and value."""
    loggers = known()
    for change in changes:
        operation = change.config_operation
        if operation == Operation.SET:
            check_logger(loggers, change.name)
            if change.value not in LEVELS:
                raise KafkaError(
                    ErrorCode.INVALID_CONFIG,
                    f"Cannot set the log level of {change.name} to {change.value} as it is not a supported "
                    f"log level. Valid log levels are {', '.join(sorted(LEVELS))}",
                )
        elif operation == Operation.DELETE:
            check_logger(loggers, change.name)
            if change.name == ROOT:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed"
                )
        elif operation in (Operation.APPEND, Operation.SUBTRACT):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"{Operation(operation).name} operation is not allowed for the BROKER_LOGGER resource",
            )
        else:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource",
            )


def check_logger(loggers: dict[str, logging.Logger], name: str) -> None:
    if name not in loggers:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")


def apply(changes: Collection[Any]) -> None:
    """Apply changes that `check` accepted."""
    logging.addLevelName(TRACE, "TRACE")
    loggers = known()
    for change in changes:
        if change.config_operation == Operation.SET:
            loggers[change.name].setLevel(LEVELS[change.value])
        else:
            loggers[change.name].setLevel(logging.NOTSET)
