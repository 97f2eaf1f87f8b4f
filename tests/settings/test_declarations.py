"""The declared settings are Kafka's: names, types, defaults, allowed values, importance and update modes."""

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas.settings.definitions import (
    BROKER_ROWS,
    DYNAMIC_ONLY,
    GROUP_ROWS,
    INTERNAL,
    TOPIC_ROWS,
    default_value,
)
from barnabas.settings.synonyms import TOPIC_TO_BROKER
from barnabas.settings.tables.row import Row, Setting
from barnabas.settings.topic import TopicSettings
from barnabas.settings.validators import accept, check_of, check_value

# Facts of Apache Kafka 4.3.1.
KAFKA = json.loads((Path(__file__).parent / "data/kafka_settings.json").read_text())
ROWS = {
    "broker": {
        name: row
        for name, row in BROKER_ROWS.items()
        if not name.startswith(("barnabas.", "confluent.")) and name not in DYNAMIC_ONLY
    },
    "topic": {
        name: row for name, row in TOPIC_ROWS.items() if not name.startswith(("barnabas.", "confluent."))
    },
    "group": GROUP_ROWS,
}


def as_fact(row: Row) -> dict[str, Any]:
    """A row in the form of the facts; `one or more` is our word for lists that may not be empty."""
    setting = Setting._make(row)
    fact: dict[str, Any] = {"type": setting.type, "importance": setting.importance}
    if setting.required:
        fact["required"] = True
    else:
        fact["default"] = setting.default
    valid = setting.valid.removeprefix("one or more").removeprefix(" of ")
    if valid or setting.type == "list":
        fact["valid"] = valid
    if setting.update != "read-only":
        fact["update"] = setting.update
    if setting.name in INTERNAL:
        fact["internal"] = True
    return fact


@pytest.mark.parametrize("kind", ["broker", "topic", "group"])
def test_every_setting_is_declared_as_kafka_defines_it(kind: str) -> None:
    assert {name: as_fact(row) for name, row in ROWS[kind].items()} == KAFKA[kind]


def test_there_are_as_many_as_kafka_has() -> None:
    assert {kind: len(rows) for kind, rows in ROWS.items()} == {"broker": 360, "topic": 34, "group": 17}


@pytest.mark.parametrize("rows", [BROKER_ROWS, TOPIC_ROWS, GROUP_ROWS], ids=["broker", "topic", "group"])
def test_every_setting_is_documented(rows: dict[str, Row]) -> None:
    assert [name for name, row in rows.items() if not row[6].endswith(".") or len(row[6]) < 15] == []


@pytest.mark.parametrize("rows", [BROKER_ROWS, TOPIC_ROWS, GROUP_ROWS], ids=["broker", "topic", "group"])
def test_every_default_is_allowed(rows: dict[str, Row]) -> None:
    for row in rows.values():
        value = default_value(row)
        if value is not None:
            check_value(Setting._make(row), value)


def test_every_rule_of_the_tables_is_understood() -> None:
    words = {row[3] for rows in (BROKER_ROWS, TOPIC_ROWS, GROUP_ROWS) for row in rows.values()}
    without_check = {valid for valid in words if check_of(valid) is accept}
    assert without_check == {"", "one or more", "non-empty list", "non-null string"}


def test_topic_attributes_have_the_declared_defaults() -> None:
    declared = {name.replace(".", "_"): default_value(row) for name, row in TOPIC_ROWS.items()}
    found = TopicSettings()
    assert {name: getattr(found, name) for name in declared} == declared


def test_broker_settings_behind_topic_settings_exist() -> None:
    assert set(TOPIC_TO_BROKER) < set(TOPIC_ROWS)
    assert set(TOPIC_TO_BROKER.values()) < set(BROKER_ROWS)
