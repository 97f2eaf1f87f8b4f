"""Conversations with a broker, one module an API; `everything()` finds them all."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable

from ..talk import Talk

Scenario = Callable[[Talk], None]


def everything() -> dict[str, Scenario]:
    """Every public function of every module here, by `module.function`."""
    found: dict[str, Scenario] = {}
    for module_info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{__name__}.{module_info.name}")
        for name, value in vars(module).items():
            if callable(value) and getattr(value, "is_scenario", False):
                found[f"{module_info.name}.{name}"] = value
    return found
