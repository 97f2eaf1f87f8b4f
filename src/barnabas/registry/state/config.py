"""Configurations and modes of subjects and contexts.

In: the JSON of a record or a request. Out: a `Config`, fields that are not set are None.
Does not know: which configuration applies to a subject; the state does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from barnabas.registry.state.contracts import Metadata, RuleSet, metadata_of, rule_set_of, shaped


class Level(StrEnum):
    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        return self.endswith("_TRANSITIVE")

    @property
    def reads_old(self) -> bool:
        """The new schema must read data of older ones."""
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def is_read_by_old(self) -> bool:
        return self.startswith(("FORWARD", "FULL"))


class Mode(StrEnum):
    READWRITE = "READWRITE"
    READONLY = "READONLY"
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    IMPORT = "IMPORT"
    FORWARD = "FORWARD"

    @property
    def is_read_only(self) -> bool:
        return self in (Mode.READONLY, Mode.READONLY_OVERRIDE)


POLICIES = ("STRICT", "LENIENT", "LOGICAL")


@dataclass(frozen=True, slots=True)
class Config:
    """The order of the fields is that of the records."""

    level: Level | None = None
    alias: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    policy: str | None = None
    group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None
    alias_for_deks: str | None = None

    def to_json(self, level_name: str = "compatibilityLevel") -> dict[str, Any]:
        """Fields that are set. Requests call the level `compatibility`."""
        shown: dict[str, Any] = {}
        for name, field in JSON_NAMES.items():
            value = getattr(self, field)
            if value is not None:
                shown[level_name if field == "level" else name] = (
                    value.to_json() if isinstance(value, Metadata | RuleSet) else value
                )
        return shown

    def under(self, other: Config) -> Config:
        """This configuration, with its empty fields taken from a wider scope. An alias is not inherited."""
        missing = {
            field.name: getattr(other, field.name)
            for field in fields(self)
            if getattr(self, field.name) is None and not field.name.startswith("alias")
        }
        return replace(self, **missing)

    def changed(self, changes: Mapping[str, Any]) -> Config:
        """The configuration after a request: `changes` has names of fields, None clears one."""
        return replace(self, **changes)

    @property
    def rule_sets(self) -> list[RuleSet]:
        return [each for each in (self.default_rule_set, self.override_rule_set) if each is not None]


JSON_NAMES = {
    "compatibilityLevel": "level",
    "alias": "alias",
    "normalize": "normalize",
    "validateFields": "validate_fields",
    "validateNewSchemas": "validate_new_schemas",
    "validateRules": "validate_rules",
    "compatibilityPolicy": "policy",
    "compatibilityGroup": "group",
    "defaultMetadata": "default_metadata",
    "overrideMetadata": "override_metadata",
    "defaultRuleSet": "default_rule_set",
    "overrideRuleSet": "override_rule_set",
    "aliasForDeks": "alias_for_deks",
}
EMPTY = Config()


def changes_of(source: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that a JSON object has, by their names in `Config`. ValueError says what has another shape;
    a wrong level is a `WrongLevel`. Fields that are unknown are ignored."""
    changes: dict[str, Any] = {}
    if "compatibility" in source:
        source = {"compatibilityLevel": source["compatibility"], **source}
    for name, value in source.items():
        field = JSON_NAMES.get(name)
        if field is not None:
            changes[field] = None if value is None else read_field(field, value, name)
    return changes


class WrongLevel(ValueError):
    pass


def read_field(field: str, value: Any, name: str) -> Any:
    if field == "level":
        try:
            return Level(str(value).upper())
        except ValueError:
            raise WrongLevel(str(value)) from None
    if field.startswith(("normalize", "validate")):
        return shaped(value, bool, name)
    if field.endswith("metadata"):
        return metadata_of(value)
    if field.endswith("rule_set"):
        return rule_set_of(value)
    text: str = shaped(value, str, name)
    if field == "policy":
        text = text.upper()
        if text not in POLICIES:
            raise ValueError(f"{name} is {text[:100]!r}; allowed: {', '.join(POLICIES)}")
    return text


def config_of(source: Mapping[str, Any]) -> Config:
    """The configuration of a record."""
    return EMPTY.changed(changes_of(source))
