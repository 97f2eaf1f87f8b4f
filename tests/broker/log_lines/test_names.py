"""Kafka's names of loggers mean loggers of ours, and their lines go to Kafka's files."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from barnabas.broker.log_lines import levels
from barnabas.broker.log_lines.names import (
    AUTHORIZER,
    CLASSES,
    KAFKAS,
    REQUESTS,
    STATE_CHANGES,
    file_of,
    ours,
)
from barnabas.controller.configs import Operation
from barnabas.protocol import KafkaError


@pytest.mark.parametrize(
    ("kafkas", "name"),
    [
        ("kafka.controller.KafkaController", "barnabas.quorum.controller"),
        ("org.apache.kafka.controller.QuorumController", "barnabas.quorum.controller"),
        ("org.apache.kafka.raft.KafkaRaftClient", "barnabas.quorum"),
        ("kafka.log.LogCleaner", "barnabas.cleaner"),
        ("kafka.server.ReplicaManager", "barnabas.replicas"),
        ("kafka.server.KafkaApis", "barnabas"),
        (REQUESTS, REQUESTS),
        ("barnabas.tls", "barnabas.tls"),
        ("com.example", "com.example"),
    ],
)
def test_a_name_of_kafka_means_one_of_ours(kafkas: str, name: str) -> None:
    assert ours(kafkas) == name


def test_classes_that_the_page_names_are_listed() -> None:
    """`kafka-configs` refuses a name that a broker does not list."""
    page = (Path(__file__).parents[3] / "docs" / "logs.md").read_text()
    named = set(re.findall(r"`((?:org\.apache\.kafka|kafka)\.[\w.]+\.[A-Z]\w+)`", page))
    assert len(named) >= 2
    assert named <= set(levels.levels())
    assert all(ours(name) != name for name in CLASSES)


@pytest.mark.parametrize(
    ("logger", "file"),
    [
        ("barnabas.quorum.controller", "controller"),
        ("barnabas.quorum", "controller"),
        ("barnabas.quorums", "server"),
        (STATE_CHANGES, "state-change"),
        (REQUESTS, "kafka-request"),
        (AUTHORIZER, "kafka-authorizer"),
        ("barnabas.cleaner", "log-cleaner"),
        ("barnabas.storage.compaction.job", "log-cleaner"),
        ("barnabas.storage.logs", "server"),
        ("asyncio", "server"),
    ],
)
def test_a_line_goes_to_the_file_that_kafka_writes_it_to(logger: str, file: str) -> None:
    assert file_of(logger) == file


@pytest.fixture(autouse=True)
def same_levels_afterwards() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in (*set(KAFKAS.values()), REQUESTS)]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def change(name: str, level: str | None) -> SimpleNamespace:
    operation = Operation.DELETE if level is None else Operation.SET
    return SimpleNamespace(name=name, value=level, config_operation=operation)


def test_a_level_set_by_kafkas_name_counts_for_our_logger() -> None:
    changes = [
        change("org.apache.kafka.raft.KafkaRaftClient", "TRACE"),
        change("kafka.log.LogCleaner", "ERROR"),
    ]
    levels.check(changes)
    levels.apply(changes)
    assert logging.getLogger("barnabas.quorum").level == levels.TRACE
    assert levels.levels(["kafka.log.LogCleaner", "barnabas.cleaner"]) == {
        "kafka.log.LogCleaner": "ERROR"
    } | ({"barnabas.cleaner": "ERROR"} if "barnabas.cleaner" in levels.known() else {})
    levels.apply([change("kafka.log.LogCleaner", None)])
    assert logging.getLogger("barnabas.cleaner").level == logging.NOTSET


def test_a_name_of_nobody_is_refused() -> None:
    with pytest.raises(KafkaError, match="does not exist!"):
        levels.check([change("com.example", "INFO")])
