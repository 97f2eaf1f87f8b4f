"""Checks of settings that do not fit each other: errors of the functions that read them, by setting.

In: a definition, a configuration, functions of settings that raise ConnectError. Does not know: connectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.connect.config import ConfigDef, ConfigError
from barnabas.connect.plugins import ConnectError


def errors_of(definition: ConfigDef, config: Mapping[str, str], *checks: Any) -> dict[str, list[str]]:
    """Errors of functions that read settings, by the setting that their messages begin with."""
    try:
        settings = definition.parse(config)
    except ConfigError:
        return {}  # reported by name already
    errors: dict[str, list[str]] = {}
    for each in checks:
        try:
            each(settings)
        except ConnectError as error:
            text = str(error)
            named = [name for name in definition.keys if text.startswith((f"{name} ", f"{name}:"))]
            errors.setdefault(named[0] if named else next(iter(definition.keys)), []).append(text)
    return errors
