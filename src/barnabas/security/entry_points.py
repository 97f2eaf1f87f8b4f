"""Plug-ins that settings name as a Python entry point: `package.module:name`."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from barnabas.security.errors import SecuritySettingsError


def load_entry_point(entry_point: str) -> Any:
    """The object that is named. SecuritySettingsError if it is not there."""
    module, _, name = entry_point.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SecuritySettingsError(
            f"{entry_point} cannot be loaded ({error}): expected package.module:name of an installed module"
        ) from None
