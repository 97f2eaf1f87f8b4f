"""Kafka's words as v3 writes them: upper case, with underscores."""

from __future__ import annotations

import re

from barnabas.client.admin.configs import ConfigSource
from barnabas.security.acls.vocabulary import Operation, PatternType, Permission, ResourceType

UNKNOWN = "UNKNOWN"
CONFIG_SOURCES = {
    ConfigSource.TOPIC: "DYNAMIC_TOPIC_CONFIG",
    ConfigSource.DYNAMIC_BROKER_LOGGER: "DYNAMIC_BROKER_LOGGER_CONFIG",
    ConfigSource.DYNAMIC_BROKER: "DYNAMIC_BROKER_CONFIG",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    ConfigSource.STATIC_BROKER: "STATIC_BROKER_CONFIG",
    ConfigSource.DEFAULT: "DEFAULT_CONFIG",
    ConfigSource.UNKNOWN: UNKNOWN,
}
RESOURCE_TYPE_WORDS = tuple(each.name for each in ResourceType)
PATTERN_TYPE_WORDS = tuple(each.name for each in PatternType)
OPERATION_WORDS = tuple(each.name for each in Operation)
PERMISSION_WORDS = tuple(each.name for each in Permission)
GROUP_STATES = (
    UNKNOWN,
    "PREPARING_REBALANCE",
    "COMPLETING_REBALANCE",
    "ASSIGNING",
    "RECONCILING",
    "STABLE",
    "DEAD",
    "EMPTY",
)
GROUP_TYPES = (UNKNOWN, "CLASSIC", "CONSUMER", "SHARE")
FORMAT_NAMES = ("BINARY", "JSON", "STRING", "AVRO", "JSONSCHEMA", "PROTOBUF")
STRATEGY_NAMES = ("TOPIC_NAME", "RECORD_NAME", "TOPIC_RECORD_NAME")


def config_source(code: int) -> str:
    return CONFIG_SOURCES.get(code, UNKNOWN)  # type: ignore[call-overload, no-any-return]


def upper(name: str, words: tuple[str, ...]) -> str:
    """`PreparingRebalance` as `PREPARING_REBALANCE`; UNKNOWN for a word that v3 does not have."""
    found = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()
    return found if found in words else UNKNOWN


def resource_type_word(code: int) -> str:
    return next((each.name for each in ResourceType if each == code), UNKNOWN)


def pattern_type_word(code: int) -> str:
    return next((each.name for each in PatternType if each == code), UNKNOWN)


def operation_word(code: int) -> str:
    return next((each.name for each in Operation if each == code), UNKNOWN)


def permission_word(code: int) -> str:
    return next((each.name for each in Permission if each == code), UNKNOWN)


def operation_words(bits: int) -> list[str]:
    """The operations that a field of bits allows."""
    return [each.name for each in Operation if bits >> each & 1]
