"""Settings of connectors: definitions, parsing, checks with Kafka's messages, providers, hidden secrets."""

from barnabas.connect.config.definition import ConfigDef, ConfigKey, ConfigValue, Recommender
from barnabas.connect.config.errors import ConfigError, invalid
from barnabas.connect.config.settings import Settings
from barnabas.connect.config.types import REQUIRED, ConfigType, Importance, Password, Width
from barnabas.connect.config.validators import (
    Validator,
    all_of,
    at_least,
    between,
    checked,
    entries,
    list_of,
    no_control_characters,
    non_empty,
    non_empty_list,
    non_null,
    one_of,
    one_of_any_case,
    regex,
)

__all__ = [
    "REQUIRED",
    "ConfigDef",
    "ConfigError",
    "ConfigKey",
    "ConfigType",
    "ConfigValue",
    "Importance",
    "Password",
    "Recommender",
    "Settings",
    "Validator",
    "Width",
    "all_of",
    "at_least",
    "between",
    "checked",
    "entries",
    "invalid",
    "list_of",
    "no_control_characters",
    "non_empty",
    "non_empty_list",
    "non_null",
    "one_of",
    "one_of_any_case",
    "regex",
]
