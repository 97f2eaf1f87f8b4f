"""Quotas of a plug-in: `client.quota.callback.class` names a Python entry point, `package.module:Name`.

In: the setting. Out: limits that the plug-in decides, in place of Kafka's levels. The class is called without
arguments. It has a method `limit(kind, user, client_id)` that returns None for no limit, or the limit and the
name of the group of clients that share it: `(1_000_000.0, "team-a")`. Kinds are `producer_byte_rate`,
`consumer_byte_rate`, `request_percentage` and `controller_mutation_rate`. It may have a method
`quotas_changed(quotas)`, called with the quotas of the metadata at the start and when they change; limits are
asked anew afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from barnabas.quotas.levels import Entity, Levels, Limit
from barnabas.runtime.unexpected import UnexpectedErrors
from barnabas.settings.errors import invalid_value

SETTING = "client.quota.callback.class"


class QuotaCallback(Protocol):
    def limit(self, kind: str, user: str, client_id: str) -> tuple[float, str] | None: ...


class CallbackLevels(Levels):
    """The limits of one kind, as the plug-in decides them. An exception of the plug-in means no limit."""

    __slots__ = ("_callback", "_kind", "_unexpected")

    def __init__(self, callback: QuotaCallback, kind: str, unexpected: UnexpectedErrors) -> None:
        super().__init__({})
        self._callback = callback
        self._kind = kind
        self._unexpected = unexpected

    def limit(self, user: str, client_id: str) -> Limit | None:
        try:
            found = self._callback.limit(self._kind, user, client_id)
            return None if found is None else Limit((str(found[1]), ""), float(found[0]))
        except Exception:
            self._unexpected.note("asking for a quota", SETTING)
            return None


def load(name: str | None) -> QuotaCallback | None:
    """The plug-in that the setting names. SettingsError says what is wrong with it."""
    if not name:
        return None
    module, _, attribute = name.partition(":")
    try:
        callback: QuotaCallback = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError) as error:
        raise invalid_value(SETTING, name, f"it cannot be created: {error}") from error
    if not callable(getattr(callback, "limit", None)):
        raise invalid_value(SETTING, name, "it needs a method `limit(kind, user, client_id)`")
    return callback


def tell(callback: Any, quotas: Mapping[Entity, Mapping[str, float]], unexpected: UnexpectedErrors) -> None:
    changed = getattr(callback, "quotas_changed", None)
    if changed is not None:
        try:
            changed(quotas)
        except Exception:
            unexpected.note("telling quotas", SETTING)
