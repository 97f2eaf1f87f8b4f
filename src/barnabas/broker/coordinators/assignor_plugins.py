"""Assignors from other packages, named in `group.consumer.assignors` as entry points: `package.module:Name`.

In: the names in the setting. Out: assignors by those names, created once. SettingsError says what is wrong.
Does not know: groups, what an assignor does.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING

from barnabas.settings.errors import invalid_value

if TYPE_CHECKING:
    from barnabas.groups.assignors.spec import Assignor

SETTING = "group.consumer.assignors"


def load(names: Iterable[str]) -> dict[str, Assignor]:
    """Load the names that are entry points; the others are built in."""
    return {name: load_one(name) for name in names if ":" in name}


def load_one(name: str) -> Assignor:
    module, _, attribute = name.partition(":")
    try:
        assignor: Assignor = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError) as error:
        raise invalid_value(SETTING, name, f"it cannot be created: {error}") from error
    if not isinstance(getattr(assignor, "name", None), str) or not callable(
        getattr(assignor, "assign", None)
    ):
        raise invalid_value(SETTING, name, "an assignor has a `name` and a method `assign(spec)`")
    return assignor
