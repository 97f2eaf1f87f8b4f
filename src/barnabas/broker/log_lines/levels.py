"""Loggers as a configurable resource: their levels, read and changed while running, with Kafka's names.

In: changes of levels. Out: Python's loggers with those levels, until the process ends; as in Kafka, nothing
is stored. `root` is the logger that all others inherit from. Kafka's names of loggers are understood
(`names`). Does not know: where log lines go.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Any

from barnabas.broker.log_lines.names import (
    AUTHORIZER,
    CLASSES,
    KAFKAS,
    OURS,
    OWN_OF_KAFKA,
    REQUESTS,
    STATE_CHANGES,
    is_kafkas,
    ours,
)
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
# Levels of loggers that are not the root's at the start, as in Kafka's log4j2.yaml.
FIRST_LEVELS = {REQUESTS: logging.WARNING, STATE_CHANGES: logging.INFO, AUTHORIZER: logging.INFO}


def set_first_levels() -> None:
    logging.addLevelName(TRACE, "TRACE")
    for name, level in FIRST_LEVELS.items():
        logging.getLogger(name).setLevel(level)


def known() -> dict[str, logging.Logger]:
    """The root logger, the loggers of Barnabas by name, and Kafka's names that mean one of them."""
    found = {ROOT: logging.getLogger()}
    for name in OWN_OF_KAFKA:
        found[name] = logging.getLogger(name)
    for name in (*KAFKAS, *CLASSES):
        found[name] = logging.getLogger(ours(name))
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


def logger_of(loggers: dict[str, logging.Logger], name: str) -> logging.Logger:
    """The logger of a name; classes of Kafka mean the logger of their package."""
    found = loggers.get(name)
    return found if found is not None else logging.getLogger(ours(name))


def check_logger(loggers: dict[str, logging.Logger], name: str) -> None:
    if name not in loggers and not is_kafkas(name):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")


def apply(changes: Collection[Any]) -> None:
    """Apply changes that `check` accepted."""
    logging.addLevelName(TRACE, "TRACE")
    loggers = known()
    for change in changes:
        if change.config_operation == Operation.SET:
            logger_of(loggers, change.name).setLevel(LEVELS[change.value])
        else:
            logger_of(loggers, change.name).setLevel(logging.NOTSET)
