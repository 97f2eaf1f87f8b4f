"""Secrets in settings: which names hold them, and texts that hide them.

A setting is secret if its definition says PASSWORD, or if its name says so. References to providers
(`${file:/x:password}`) hold no secret and are shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from barnabas.connect.config.definition import ConfigDef
from barnabas.connect.config.types import ConfigType

HIDDEN = "[hidden]"
SECRET_NAME = re.compile(
    r"(?i)(^|[._-])(password|passwd|passphrase|secret|token|credentials?|api[._-]?key|access[._-]?key[._-]?secret"
    r"|private[._-]?key|jaas[._-]?config|user[._-]?info|keystore[._-]key)([._-]|$)"
)
REFERENCE = re.compile(r"\$\{[^}:]*:[^}]*\}")


def is_secret(name: str, definition: ConfigDef | None = None) -> bool:
    """Whether the value of a setting must not be shown."""
    key = definition.keys.get(name) if definition is not None else None
    if key is not None:
        return key.type is ConfigType.PASSWORD
    return SECRET_NAME.search(name) is not None


def shown_value(name: str, value: str | None, definition: ConfigDef | None = None) -> str | None:
    """The value, or `[hidden]`. A value that is a reference as a whole is shown."""
    if value is None or not is_secret(name, definition) or REFERENCE.fullmatch(value):
        return value
    return HIDDEN


def masked(config: Mapping[str, str | None], definition: ConfigDef | None = None) -> dict[str, str | None]:
    """A configuration for logs and responses."""
    return {name: shown_value(name, value, definition) for name, value in config.items()}


def restored(config: Mapping[str, str | None], stored: Mapping[str, str]) -> dict[str, str | None]:
    """A configuration that a client sends back as it was shown: hidden values are those that are stored."""
    return {name: stored.get(name, value) if value == HIDDEN else value for name, value in config.items()}
