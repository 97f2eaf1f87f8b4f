"""Definitions of settings parse, check and report as Kafka's ConfigDef does."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.connect.config import (
    ConfigDef,
    ConfigError,
    ConfigValue,
    at_least,
    between,
    no_control_characters,
    non_empty,
    one_of,
    one_of_any_case,
)


def definition() -> ConfigDef:
    return (
        ConfigDef()
        .define("name", "string", importance="high", validator=no_control_characters())
        .define("tasks.max", "int", "1", "high", "Tasks.", "Common", validator=at_least(1))
        .define("share", "double", 0.5, validator=between(0, 1))
        .define("mode", "string", "bulk", validator=one_of("bulk", "query"))
        .define("level", "string", "low", validator=one_of_any_case("LOW", "HIGH"))
        .define("topics", "list", "")
        .define("file", "string", None, validator=non_empty())
        .define("secret", "password", None)
        .define("on", "boolean", "true")
    )


def errors(given: dict[str, Any]) -> dict[str, list[str]]:
    return {value.name: value.errors for value in definition().validate(given) if value.errors}


def test_values_are_typed_and_defaults_are_there() -> None:
    settings = definition().parse(
        {"name": " a ", "topics": "x , y,x", "secret": "s3", "tasks.max": 4, "own": "1"}
    )
    assert settings["name"] == "a"
    assert settings["topics"] == ["x", "y"]
    assert settings.integer("tasks.max") == 4
    assert settings.flag("on") is True
    assert settings["file"] is None
    assert settings.text("secret") == "s3"
    assert "s3" not in repr(settings)
    assert settings.raw["own"] == "1"
    assert "own" not in settings


@pytest.mark.parametrize(
    ("given", "messages"),
    [
        ({}, {"name": ['Missing required configuration "name" which has no default value.']}),
        ({"name": ""}, {"name": ["Invalid value  for configuration name: String may not be empty"]}),
        (
            {"name": "a\tb"},
            {
                "name": [
                    "Invalid value a\tb for configuration name: String may not contain control sequences "
                    "but had the following ASCII chars: 9"
                ]
            },
        ),
        (
            {"name": "a", "tasks.max": "word"},
            {
                "tasks.max": [
                    "Invalid value word for configuration tasks.max: Not a number of type INT",
                    "Invalid value null for configuration tasks.max: Value must be non-null",
                ]
            },
        ),
        (
            {"name": "a", "tasks.max": "0"},
            {"tasks.max": ["Invalid value 0 for configuration tasks.max: Value must be at least 1"]},
        ),
        (
            {"name": "a", "mode": "x", "level": "x"},
            {
                "mode": ["Invalid value x for configuration mode: String must be one of: bulk, query"],
                "level": [
                    "Invalid value x for configuration level: String must be one of (case insensitive): "
                    "LOW, HIGH"
                ],
            },
        ),
        (
            {"name": "a", "on": "a: b", "topics": "a,,b", "file": ""},
            {
                "on": ["Invalid value a: b for configuration on: Expected value to be either true or false"],
                "topics": ["Configuration 'topics' values must not be empty."],
                "file": ["Invalid value  for configuration file: String must be non-empty"],
            },
        ),
    ],
)
def test_messages_are_those_of_kafka(given: dict[str, Any], messages: dict[str, list[str]]) -> None:
    assert errors(given) == messages


def test_parse_raises_all_errors_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        definition().parse({"mode": "x", "tasks.max": "0"})
    assert list(raised.value.errors) == ["name", "tasks.max", "mode"]
    assert raised.value.message.count("\n") == 2


def test_an_embedded_definition_has_a_prefix_and_a_group_and_short_names_in_messages() -> None:
    outer = ConfigDef().embed("transforms.a.", "Transforms: a", 0, definition())
    assert outer.keys["transforms.a.name"].group == "Transforms: a"
    assert outer.keys["transforms.a.tasks.max"].group == "Transforms: a: Common"
    assert next(key.name for key in outer) == "transforms.a.name"
    found = {value.name: value.errors for value in outer.validate({"transforms.a.name": ""})}
    assert found["transforms.a.name"] == ["Invalid value  for configuration name: String may not be empty"]


def test_recommended_values_and_hidden_settings() -> None:
    class Tables:
        def valid_values(self, name: str, parsed: Any) -> list[str]:
            return ["a", "b"]

        def visible(self, name: str, parsed: Any) -> bool:
            return parsed["mode"] == "query"

    found = (
        ConfigDef()
        .define("mode", "string", "bulk", dependents=["table", "gone"])
        .define("table", "string", "", recommender=Tables())
        .validate({})
    )
    assert found[1] == ConfigValue("table", "", ["a", "b"], [], False)
    assert found[2].errors == ["gone is referred in the dependents, but not defined."]


def test_settings_without_effect_are_named_unless_they_are_as_by_default() -> None:
    found = (
        ConfigDef()
        .define("size", "INT", 3)
        .without_effect({"size": ("3", "nothing is large"), "queue": ("8", "there is none")})
    )
    assert found.ignored({"size": "3", "queue": "8"}) == {}
    assert found.ignored({"size": "4", "queue": "9", "other": "x"}) == {
        "size": "nothing is large",
        "queue": "there is none",
    }
    assert found.keys["queue"].doc == "Has no effect here: there is none."


def test_misspelt_settings_are_told_apart_from_others() -> None:
    found = ConfigDef().define("batch.size", "INT", 3).define("mongo.errors.topic.name", "STRING", "")
    others = ("errors.topic", "tasks.max")
    given = [
        "batch.szie",
        "task.max",
        "batch.size.orders",
        "errors.topic.name",
        "batch.size",
        "tasks.max",
        "x",
    ]
    assert found.misspelt(given, others) == {"batch.szie": "batch.size", "task.max": "tasks.max"}


def test_settings_that_are_not_built_are_refused_with_a_reason() -> None:
    found = ConfigDef().refused({"tagging": ("false", "objects get no tags"), "acl": (None, "no lists")})
    assert found.parse({"tagging": "FALSE"})["tagging"] == "FALSE"
    with pytest.raises(ConfigError, match=r"objects get no tags\n.*no lists"):
        found.parse({"tagging": "true", "acl": "private"})
