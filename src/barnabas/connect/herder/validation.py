"""Validates the configuration of a connector as a whole, and renders the result as Connect does.

In: a configuration, the plugins, the worker's settings and config providers. Out: definitions with
values and errors: common settings, those of sources or sinks, transforms and predicates by alias, the
connector's own, client overrides. Secrets are hidden in the result.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from barnabas.connect.config.connector_settings import common_settings
from barnabas.connect.config.definition import ConfigDef, ConfigKey, ConfigValue, missing
from barnabas.connect.config.errors import ConfigError
from barnabas.connect.config.providers import Providers
from barnabas.connect.config.secrets import HIDDEN, Redaction, hidden_parts, is_secret, shown_value
from barnabas.connect.config.types import Password, config_text
from barnabas.connect.herder.errors import Refused
from barnabas.connect.herder.plugin_settings import (
    NOT_FOUND,
    add_aliases,
    aliases,
    converter_settings,
    offer_plugins,
    override_settings,
    version_problems,
)
from barnabas.connect.plugins import Connector, Plugins
from barnabas.connect.plugins.errors import ConnectError, UnknownPluginError

log = logging.getLogger("barnabas.connect")

SUPPORT, BOUNDARY = "exactly.once.support", "transaction.boundary"
UNKNOWN_SUPPORT = (
    "The connector does not implement the API required for preflight validation of exactly-once source "
    "support. Please consult the documentation for the connector to determine whether it supports "
    "exactly-once semantics, and then consider reconfiguring the connector to use the value "
    '"requested" for this property '
    "(which will disable this preflight check and allow the connector to be created)."
)
NO_SUPPORT = "The connector does not support exactly-once semantics with the provided configuration."
NO_BOUNDARIES = (
    "The connector does not support connector-defined transaction boundaries with the given configuration. "
    "Please reconfigure it to use a different transaction boundary definition."
)
UNEXPECTED = "An unexpected error occurred during validation"
NAMING = ("transforms", "predicates", "topic.creation.groups")  # settings whose words are parts of names
TOPIC = re.compile(r"(?!\.{1,2}$)[a-zA-Z0-9._-]{1,249}")
NO_TOPIC = "a topic has at most 249 of the letters a-z, A-Z, 0-9, '.', '_' and '-', and is not '.' or '..'"
NULL_VALUE = "Null value can not be supplied as the configuration value."


@dataclass(slots=True)
class Validation:
    """The result: values with their definitions, by name."""

    name: str
    groups: list[str]
    keys: dict[str, ConfigKey]
    values: dict[str, ConfigValue] = field(default_factory=dict)
    redaction: Redaction = field(default_factory=lambda: Redaction({}, {}, {}))

    @property
    def error_count(self) -> int:
        return sum(len(value.errors) for value in self.values.values())

    def add_error(self, name: str, message: str) -> None:
        self.values.setdefault(name, ConfigValue(name)).errors.append(message)

    def add_null(self, name: str) -> None:
        """A null that was given: it stands for no default, and nothing is missing."""
        self.add_error(name, NULL_VALUE)
        found = self.values[name]
        found.value = None
        found.errors = [each for each in found.errors if each != missing(name)]

    def body(self) -> dict[str, Any]:
        configs = []
        for name, value in self.values.items():
            key = self.keys.get(name)
            shown = value_body(value, self.shown(value, key), self.redaction)
            configs.append({"definition": None if key is None else key_body(key), "value": shown})
        body = {"name": self.name, "error_count": self.error_count, "groups": self.groups, "configs": configs}
        if any(self.redaction.has_reference(each) for each in NAMING):
            return {**body, "groups": self._named(self.groups), "configs": self._named(configs)}
        return body

    def shown(self, value: ConfigValue, key: ConfigKey | None) -> str | None:
        """The value for a response: with references as the user gave them, without secrets."""
        text = config_text(value.value)
        if not text or isinstance(value.value, Password):
            return text
        if self.redaction.has_reference(value.name):
            return self.redaction.shown(value.name)
        return HIDDEN if key is None and is_secret(value.name) else hidden_parts(text)

    def _named(self, part: Any) -> Any:
        """Names that aliases are part of: a reference may stand for an alias."""
        if isinstance(part, dict):
            return {name: self._named(each) for name, each in part.items()}
        if isinstance(part, list):
            return [self._named(each) for each in part]
        return self.redaction.text(part) if isinstance(part, str) else part

    def refusal(self) -> Refused | None:
        if not self.error_count:
            return None
        lines = [self.redaction.text(each) for value in self.values.values() for each in value.errors]
        first = f"Connector configuration is invalid and contains the following {len(lines)} error(s):"
        last = (
            "You can also find the above list of errors at the endpoint "
            "`/connector-plugins/{connectorType}/config/validate`"
        )
        return Refused(400, "\n".join([first, *lines, last]))


def key_body(key: ConfigKey) -> dict[str, Any]:
    return {
        "name": key.name,
        "type": str(key.type),
        "required": key.is_required,
        "default_value": None if key.is_required else config_text(key.default),
        "importance": str(key.importance),
        "documentation": key.doc,
        "group": key.group,
        "width": str(key.width),
        "display_name": key.display_name,
        "dependents": list(key.dependents),
        "order_in_group": key.order,
    }


def value_body(value: ConfigValue, shown: str | None, redaction: Redaction) -> dict[str, Any]:
    return {
        "name": value.name,
        "value": shown,
        "recommended_values": [config_text(each) for each in value.recommended_values],
        "errors": [redaction.text(each) for each in value.errors],
        "visible": value.visible,
    }


def connector_class(plugins: Plugins, name: str) -> type[Connector]:
    try:
        return plugins.connector(name)
    except UnknownPluginError as error:
        raise Refused(
            400,
            f"Failed to find any class that implements Connector and which name matches {name}, "
            f"available connectors are: {', '.join(error.known)}",
        ) from None
    except ConnectError as error:
        raise Refused(400, str(error)) from None


def validate(
    config: Mapping[str, str | None], plugins: Plugins, worker: Mapping[str, str], providers: Providers
) -> Validation:
    """Check everything that can be checked without starting the connector."""
    redaction = providers.redaction({name: value for name, value in config.items() if value is not None})
    given = dict(redaction.resolved)
    name = given.get("connector.class")
    if name is None:
        values = {key: shown_value(key, config[key]) for key in sorted(config)}
        shown = ", ".join(f"{key}={'null' if value is None else value}" for key, value in values.items())
        raise Refused(400, f"Connector config {{{shown}}} contains no connector type")
    try:
        found = connector_class(plugins, name)
    except Refused as error:
        raise Refused(error.status, redaction.text(error.message)) from None
    redaction = replace(redaction, definition=found.CONFIG)
    definition = common_settings(found.KIND, worker)
    offer_plugins(definition, given, plugins, found.KIND)
    problems = add_aliases(definition, given, plugins)
    result = Validation(
        redaction.text(name), [], {**definition.keys, **found.CONFIG.keys}, redaction=redaction
    )
    collect(result, definition, given)
    collect(result, found.CONFIG, given)
    converters, more = converter_settings(given, plugins)
    for key, each in [*converters, *override_settings(found.KIND, given, worker)]:
        result.values[each.name] = each
        if key is not None:
            result.keys[each.name] = key
            if key.group is not None and key.group not in result.groups:
                result.groups.append(key.group)
    problems += [*more, *version_problems(given, plugins, found.KIND)]
    for setting, message in problems:
        result.add_error(setting, message)
        if message.endswith(NOT_FOUND):
            result.values[setting].value = None  # as a value that cannot be parsed
    for setting, value in config.items():
        if value is None:
            result.add_null(setting)
    check_kind(result, found, given, worker)
    for setting, messages in connector_errors(found, given).items():
        for message in messages:
            result.add_error(setting, message)
    return result


def collect(result: Validation, definition: ConfigDef, given: Mapping[str, str]) -> None:
    result.groups += [group for group in definition.groups if group not in result.groups]
    for value in definition.validate(given):
        result.values[value.name] = value


def check_kind(
    result: Validation, found: type[Connector], given: Mapping[str, str], worker: Mapping[str, str]
) -> None:
    if found.KIND == "sink":
        check_sink(result, given)
        return
    check_exactly_once(result, found, given, worker)
    check_topic_creation(result, given)


def check_exactly_once(
    result: Validation, found: type[Connector], given: Mapping[str, str], worker: Mapping[str, str]
) -> None:
    if given.get(SUPPORT, "").strip().lower() == "required":
        if worker.get("exactly.once.source.support", "disabled").strip().lower() != "enabled":
            result.add_error(SUPPORT, "This worker does not have exactly-once source support enabled.")
        judged = judgement(lambda: found().exactly_once_support(given))
        if judged is not True:
            result.add_error(SUPPORT, judged or (UNKNOWN_SUPPORT if judged is None else NO_SUPPORT))
    if given.get(BOUNDARY, "").strip().lower() == "connector":
        judged = judgement(lambda: found().defines_transactions(given))
        if judged is not True:
            result.add_error(BOUNDARY, judged or NO_BOUNDARIES)


def judgement(ask: Callable[[], bool | None]) -> bool | str | None:
    """The word of a connector about itself, or a text if asking fails."""
    try:
        return ask()
    except Exception as error:
        log.exception("a connector could not be asked about exactly-once support")
        reason = str(error).strip()
        return UNEXPECTED + (f": {reason}" if reason else "; please see the worker logs for more details.")


def check_sink(result: Validation, given: Mapping[str, str]) -> None:
    topics, pattern = aliases(given, "topics"), given.get("topics.regex", "").strip()
    if bool(topics) == bool(pattern):
        message = (
            "topics and topics.regex are mutually exclusive options, but both are set."
            if topics
            else "Must configure one of topics or topics.regex"
        )
        result.add_error("topics", message)
        result.add_error("topics.regex", message)
    letters = given.get("errors.deadletterqueue.topic.name", "").strip()
    for setting, names in (("topics", topics), ("errors.deadletterqueue.topic.name", [letters])):
        for name in names:
            if name and not TOPIC.fullmatch(name):
                result.add_error(setting, f"Invalid value {name} for configuration {setting}: {NO_TOPIC}")
    if letters and letters in topics:
        shown = ", ".join(topics)
        reason = f"may not be included in the list of topics ('topics=[{shown}]') consumed by the connector"
        result.add_error("topics", f"The DLQ topic '{letters}' {reason}")
    elif letters and pattern and matches(pattern, letters):
        reason = f"may not be matched by the regex for the topics ('topics.regex={pattern}') consumed by"
        result.add_error("topics.regex", f"The DLQ topic '{letters}' {reason} the connector")


def matches(pattern: str, text: str) -> bool:
    try:
        return re.fullmatch(pattern, text) is not None
    except re.error:
        return False


def check_topic_creation(result: Validation, given: Mapping[str, str]) -> None:
    """Refuse at once what would fail a task later."""
    groups = aliases(given, "topic.creation.groups")
    if not groups and not any(name.startswith("topic.creation.default.") for name in given):
        return
    for group in ["default", *groups]:
        prefix = f"topic.creation.{group}."
        for name in (f"{prefix}replication.factor", f"{prefix}partitions"):
            text = given.get(name)
            if text is None and group == "default":
                result.add_error(name, missing(name))
            elif text is not None and not is_count(text):
                reason = "Value must be positive, or -1 for the broker's default"
                result.add_error(name, f"Invalid value {text} for configuration {name}: {reason}")
        if group != "default" and not given.get(f"{prefix}include"):
            result.add_error(f"{prefix}include", missing(f"{prefix}include"))


def is_count(text: str) -> bool:
    try:
        return int(text) == -1 or int(text) > 0
    except ValueError:
        return False


def connector_errors(found: type[Connector], given: Mapping[str, str]) -> dict[str, list[str]]:
    try:
        return found().check(given)
    except ConfigError as error:
        return {name or "connector.class": texts for name, texts in error.errors.items()}
    except ConnectError as error:
        return {"connector.class": [str(error)]}
