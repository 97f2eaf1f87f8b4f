"""Imports all handlers: each module of this folder declares its endpoints when it is imported."""

from __future__ import annotations

import importlib
import pkgutil

from barnabas.broker import handlers


def load_handlers() -> None:
    """Import every handler module, so that `api.routes` knows all endpoints."""
    for module in pkgutil.iter_modules(handlers.__path__):
        importlib.import_module(f"{handlers.__name__}.{module.name}")
